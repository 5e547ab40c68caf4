/* Roles, fits, predictions, findings: what was concluded. */
#include <math.h>
#include <stdio.h>

#include "report/jobdb_insert.h"

static void put_roles(struct jobdb *db, const struct view *view)
{
    for (int i = 0; i < view->roles->nroles; i++) {
        const struct ct_role *r = &view->roles->roles[i];
        char reasons[CT_REASONS * 124] = "";
        size_t used = 0;

        for (int k = 0; k < CT_REASONS; k++)
            if (r->reasons[k][0])
                used +=
                    (size_t)snprintf(reasons + used, sizeof reasons - used,
                                     "%s%s", used ? "; " : "", r->reasons[k]);
        jobdb_start(db, JOBDB_T_role);
        jobdb_int(db, view->number);
        jobdb_int(db, (int64_t)view->job->comms[r->comm].uid);
        jobdb_text(db, r->use);
        jobdb_text(db, ct_role_names[r->role]);
        jobdb_real(db, r->confidence);
        jobdb_text(db, ct_role_names[r->second]);
        jobdb_text(db, reasons);
        jobdb_end(db);
    }
}

static void put_fits(struct jobdb *db, const struct view *view)
{
    for (int i = 0; i < view->model->nfits; i++) {
        const struct ct_fit *f = &view->model->fits[i];

        jobdb_start(db, JOBDB_T_fit);
        jobdb_int(db, view->number);
        jobdb_int(db, f->link);
        jobdb_int(db, f->base);
        jobdb_int(db, f->nranks);
        jobdb_int(db, f->sizes);
        jobdb_int(db, f->samples);
        jobdb_real(db, f->alpha_us);
        jobdb_real(db, f->algbw_GBps);
        jobdb_text(db, f->why);
        jobdb_end(db);
    }
}

static void put_predictions(struct jobdb *db, const struct view *view)
{
    for (int i = 0; i < view->model->npredictions; i++) {
        const struct ct_prediction *p = &view->model->predictions[i];

        jobdb_start(db, JOBDB_T_prediction);
        jobdb_int(db, view->number);
        jobdb_int(db, p->link);
        jobdb_int(db, p->base);
        jobdb_int(db, p->nranks);
        jobdb_int(db, (int64_t)p->bytes);
        jobdb_int(db, p->calls);
        jobdb_int(db, p->samples);
        jobdb_real(db, p->observed_us);
        jobdb_real(db, p->fit_us);
        jobdb_real(db, p->prior_us);
        jobdb_real(db, p->nccl_us);
        jobdb_real(db, p->algbw_GBps);
        jobdb_real(db, p->busbw_GBps);
        jobdb_end(db);
    }
}

static void put_findings(struct jobdb *db, const struct view *view)
{
    for (int i = 0; i < view->findings->n; i++) {
        const struct ct_finding_row *f = &view->findings->rows[i];

        jobdb_start(db, JOBDB_T_finding);
        jobdb_int(db, view->number);
        jobdb_text(db, ct_finding_infos[f->id].code);
        jobdb_text(db, ct_finding_infos[f->id].severity);
        if (f->comm == CT_NONE)
            jobdb_none(db);
        else
            jobdb_int(db, (int64_t)view->job->comms[f->comm].uid);
        jobdb_real(db, view->job->nsteps ? f->loss_ms : NAN);
        jobdb_real(db, f->confidence);
        jobdb_text(db, f->text);
        jobdb_text(db, f->advice);
        jobdb_end(db);
    }
}

void jobdb_put_verdicts(struct jobdb *db, const struct view *view)
{
    put_roles(db, view);
    put_fits(db, view);
    put_predictions(db, view);
    put_findings(db, view);
}
