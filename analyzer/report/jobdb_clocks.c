/* Tables host_clock and clock_piece. */
#include "report/clock_facts.h"
#include "report/jobdb_insert.h"

static void put_clock(struct jobdb *db, const struct view *view, int i)
{
    const struct ct_clock *c = &view->job->clocks[i];
    const bool tied = c->parent != CT_NONE;

    jobdb_start(db, JOBDB_T_host_clock);
    jobdb_int(db, view->number);
    jobdb_int(db, i);
    jobdb_index(db, c->node);
    jobdb_int(db, c->nprocesses);
    jobdb_int(db, c->group);
    jobdb_index(db, c->parent);
    jobdb_text(db, ct_clock_tie_names[c->tie]);
    jobdb_int(db, c->ties);
    jobdb_time(db, tied ? c->first_ns : CT_NO_TIME);
    jobdb_time(db, tied ? c->last_ns : CT_NO_TIME);
    jobdb_time(db, tied ? (int64_t)clock_offset_ns(c) : CT_NO_TIME);
    if (tied)
        jobdb_real(db, clock_drift_ppm(c));
    else
        jobdb_none(db);
    jobdb_time(db, tied ? (int64_t)c->residual_ns : CT_NO_TIME);
    jobdb_time(db, tied ? (int64_t)c->error_ns : CT_NO_TIME);
    jobdb_int(db, c->checked);
    jobdb_int(db, c->contradicted);
    jobdb_end(db);
}

static void put_pieces(struct jobdb *db, const struct view *view, int i)
{
    const struct ct_clock *c = &view->job->clocks[i];

    for (int k = 0; k < c->npieces; k++) {
        const struct ct_clock_piece *piece = &c->pieces[k];

        jobdb_start(db, JOBDB_T_clock_piece);
        jobdb_int(db, view->number);
        jobdb_int(db, i);
        if (k == 0)
            jobdb_none(db);
        else
            jobdb_int(db, piece->from_ns);
        jobdb_int(db, piece->own_ns);
        jobdb_int(db, piece->common_ns);
        jobdb_real(db, piece->rate);
        jobdb_end(db);
    }
}

void jobdb_put_clocks(struct jobdb *db, const struct view *view)
{
    for (int i = 0; i < view->job->nclocks; i++) {
        put_clock(db, view, i);
        put_pieces(db, view, i);
    }
}
