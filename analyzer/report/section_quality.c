#include "report/sections.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/units.h"

struct process_line { /* a process that something is to be said about */
    int rank;
    const char *host;
    int pid;
    int ops;
    int64_t lost;
    int refused, in_flight, recovered;
    char first[64]; /* in flight: what the others queue behind */
    const char *end;
    const char *file;
};

static const struct out_column columns[] = {
    OUT_COL(struct process_line, rank, "rank", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct process_line, host, "host", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct process_line, pid, "pid", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct process_line, ops, "ops", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct process_line, lost, "lost", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct process_line, refused, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct process_line, in_flight, "in flight", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct process_line, first, "the first of them", OUT_BUFFER, 0,
            OUT_OPTIONAL),
    OUT_COL(struct process_line, recovered, "from ring", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct process_line, end, "ended", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct process_line, file, "file", OUT_TEXT, 0, OUT_DATA),
};

static const struct out_table table =
    OUT_TABLE_OF(struct process_line, columns, 16);

struct times_line {
    int64_t event, group, kernel, host, none;
};

static const struct out_column times_columns[] = {
    OUT_COL(struct times_line, event, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct times_line, group, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct times_line, kernel, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct times_line, host, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct times_line, none, "", OUT_COUNT, 0, OUT_BOTH),
};

static const struct out_table times_table =
    OUT_TABLE(struct times_line, times_columns);

static void describe_op(char *text, size_t size, const struct ct_process *p,
                        const struct ct_op_row *op)
{
    const struct ct_op_class_row *cls = &p->classes[op->cls];
    char bytes[UNITS_SIZE];

    snprintf(text, size, "%s %s, comm %d #%" PRIu32,
             ct_op_infos[cls->kind].name, units_size(bytes, cls->bytes),
             p->comms[cls->comm].comm, op->ordinal);
}

static void find_in_flight(struct process_line *line, const struct ct_job *job,
                           const struct ct_process *p)
{
    for (int i = 0; job->in_flight && i < p->nops; i++) {
        if (!(p->ops[i].flags & (CT_FLAG_IN_CALL | CT_FLAG_RUNNING)))
            continue;
        if (!line->in_flight++)
            describe_op(line->first, sizeof line->first, p, &p->ops[i]);
    }
}

static const char *how_ended(const struct ct_process *p)
{
    if (p->dead)
        return p->ring_missing ? "died, or runs where it cannot be reached: "
                                 "last ops are missing"
                               : "died";
    if (p->left)
        return "had ended its communicators, did not close its trace";
    if (p->ring_missing)
        return "still running, ring out of reach: last ops are missing";
    return p->end_ns == CT_NO_TIME ? "still running" : "closed";
}

static void put_processes(struct out *out, const struct view *view)
{
    bool any = false;

    for (int i = 0; i < view->job->nprocesses; i++) {
        const struct ct_process *p =
            &view->trace->processes[view->job->processes[i]];
        struct process_line line = {.rank = p->rank,
                                    .host = p->host,
                                    .pid = p->pid,
                                    .ops = p->nops,
                                    .lost = p->lost,
                                    .refused = p->refused,
                                    .recovered = p->recovered,
                                    .end = how_ended(p),
                                    .file = p->path};

        find_in_flight(&line, view->job, p);
        if (p->left_out)
            continue;
        if (!line.lost && !line.refused && !line.in_flight && !line.recovered &&
            p->end_ns != CT_NO_TIME)
            continue;
        if (!any)
            out_table(out, "processes", &table);
        any = true;
        out_row(out, &line);
    }
    if (any) {
        out_table_end(out);
        return;
    }
    out_list(out, "processes");
    out_list_end(out);
}

#define MISSING_SHOWN 4

static void say_missing(struct out *out, const struct view *view)
{
    int comms = 0;

    for (int i = 0; view->job->missing && i < view->job->ncomms; i++) {
        char members[120];

        view_missing_members(view, i, members, sizeof members);
        if (*members && ++comms <= MISSING_SHOWN)
            out_fact(out, "", "of comm %d, of %d ranks: %s", i,
                     view->job->comms[i].nranks, members);
    }
    if (comms > MISSING_SHOWN)
        out_fact(out, "", "and of %d communicators more",
                 comms - MISSING_SHOWN);
}

static void say_losses(struct out *out, const struct view *view)
{
    for (int i = 0; i < view->job->nprocesses; i++) {
        const struct ct_process *p =
            &view->trace->processes[view->job->processes[i]];

        if (p->left_out)
            continue;
        /* No figure here depends on stacks; `commtrace stacks` tells those. */
        for (int k = 0; k < p->nlosses; k++)
            if (strcmp(p->losses[k].what, "stack") != 0)
                out_fact(out, "lost",
                         "rank %d: %" PRId64 " records of kind %s, cause %s",
                         p->rank, p->losses[k].n, p->losses[k].what,
                         p->losses[k].cause);
    }
}

static const char *result_name(int result)
{
    static const char *const names[] = {
        "success",          "unhandled CUDA error", "system error",
        "internal error",   "invalid argument",     "invalid usage",
        "a rank's failure",
    };

    if (result < 0 || result >= (int)(sizeof names / sizeof *names))
        return "an unknown error";
    return names[result];
}

#define REFUSED_SHOWN 4 /* what one rank does wrong, all do, mostly */

/* They are no communications, and may be why there are no more. */
static void say_refused(struct out *out, const struct view *view)
{
    int ranks = 0;

    for (int i = 0; i < view->job->nprocesses; i++) {
        const struct ct_process *p =
            &view->trace->processes[view->job->processes[i]];
        const struct ct_refusal *first = &p->first_refused;

        if (p->refused && !p->left_out && ++ranks <= REFUSED_SHOWN)
            out_fact(out, "refused",
                     "rank %d: %d call%s returned an error and counted for "
                     "nothing, the first: %s, comm %d, ncclResult_t %d (%s)",
                     p->rank, p->refused, ct_plural(p->refused),
                     ct_op_infos[first->kind].function,
                     p->comms[first->comm].comm, first->result,
                     result_name(first->result));
    }
    if (ranks > REFUSED_SHOWN)
        out_fact(out, "", "and of %d ranks more", ranks - REFUSED_SHOWN);
}

/* Nothing tells when their bytes arrived. */
static void say_one_sided(struct out *out, const struct view *view)
{
    int64_t n = 0;

    for (int i = 0; i < view->job->ninstances; i++)
        n += ct_op_infos[view->job->instances[i].base].cls == CT_ONE_SIDED;
    if (n)
        out_fact(out, "one-sided",
                 "%" PRId64 " puts, signals and waits for signals have no "
                 "record of their other side: the times of puts are upper "
                 "bounds, those of signals waiting",
                 n);
}

static void say_simulated(struct out *out, const struct view *view)
{
    int64_t n = 0;

    for (int i = 0; i < view->job->nprocesses; i++)
        n += view->trace->processes[view->job->processes[i]].simulated;
    if (n)
        out_fact(out, "simulated",
                 "%" PRId64 " calls in groups that ended in "
                 "ncclGroupSimulateEnd or not at all ran nowhere and counted "
                 "for nothing",
                 n);
}

void section_quality(struct out *out, const struct view *view)
{
    const struct view_times *t = &view->times;
    struct times_line times = {t->event, t->group, t->kernel, t->host, t->none};

    out_title(out, "DATA", NULL);
    out_object(out, "quality");
    out_object(out, "times");
    out_fields(out, &times_table, &times);
    out_object_end(out);
    out_fact(out, "GPU times",
             "%" PRId64 " ops by their own events, %" PRId64 " by their "
             "group's",
             t->event, t->group);
    if (t->kernel)
        out_fact(out, "",
                 "%" PRId64 " ops by their kernels, as NCCL's profiler saw "
                 "them; of those in CUDA graphs the median of their runs",
                 t->kernel);
    if (t->host || t->none)
        out_fact(out, "not timed",
                 "%" PRId64 " ops have host times only, %" PRId64
                 " none (empty, captured or unfinished)",
                 t->host, t->none);
    section_met(out, view);
    section_clocks(out, view);
    section_graphs(out, view);
    section_choices(out, view);
    section_absences(out, view);
    if (view->job->missing)
        out_fact(out, "missing",
                 "%" PRId64 " members of communicators have "
                 "no trace: transfers they took part in are upper bounds",
                 view->job->missing);
    say_missing(out, view);
    say_losses(out, view);
    say_refused(out, view);
    say_simulated(out, view);
    say_one_sided(out, view);
    put_processes(out, view);
    out_list(out, "skipped");
    for (int i = 0; i < view->trace->nskipped; i++) {
        out_text(out, NULL, view->trace->skipped[i]);
        out_fact(out, "not read", "%s", view->trace->skipped[i]);
    }
    out_list_end(out);
    out_object_end(out);
}
