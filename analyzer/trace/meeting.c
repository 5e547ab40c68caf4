/*
 * Transfers of collectives whose ranks came apart, so that durations alone do
 * not tell, by their places in time. Whatever the ranks' skews, some rank needs
 * all of what the last one brings, so the last end is the transfer after the
 * last start: exactly where ranks wait for everybody, and in a ring of messages
 * that take equally long, too. Ends that differ by no more than what clocks and
 * events are off by are one moment, their mean. Where the ranks' skews go
 * round, the mean duration that was found before is better than clocks that do
 * not tell one rank's end from the next one's.
 */
#include <math.h>
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/clocks.h"
#include "trace/locate.h"
#include "trace/match.h"

#define EVENT_NS 3000  /* ends differ by, though they are at one moment */
#define SURE 4         /* times the error of clocks */
#define NOTICEABLE .05 /* skews, of the shortest duration */

struct meeting {
    const struct ct_process *first;
    int64_t last_start, last_end, first_end; /* common time */
    int64_t base;                            /* an end */
    double sum_ends;                         /* of ends minus base */
    double error;
    unsigned n;
};

struct meetings {
    const struct ct_trace *trace;
    int n;
    struct meeting *of;
    int *of_instance; /* CT_NONE: not looked at */
};

/* Clocks, and where on them events were placed. */
static double error_of(const struct meetings *m, const struct meeting *of,
                       const struct ct_process *p, int64_t ns)
{
    return ct_common_error(m->trace, p, of->first, ns) +
           (double)(p->gpu_clock_ns + of->first->gpu_clock_ns) / 2;
}

static void add_op(const struct meetings *m, struct meeting *of,
                   const struct ct_process *p, const struct ct_op_row *op)
{
    const int64_t start_ns = ct_op_start_ns(op);
    int64_t start, end;

    if (start_ns == CT_NO_TIME || ct_op_gpu_ns(op) == CT_NO_TIME)
        return;
    start = ct_common_ns(m->trace, p, start_ns);
    end = ct_common_end(m->trace, p, op);
    if (!of->n++) {
        of->first = p;
        of->last_start = start;
        of->first_end = of->last_end = of->base = end;
        return;
    }
    of->error = fmax(of->error, error_of(m, of, p, start_ns));
    of->last_start = start > of->last_start ? start : of->last_start;
    of->last_end = end > of->last_end ? end : of->last_end;
    of->first_end = end < of->first_end ? end : of->first_end;
    of->sum_ends += (double)(end - of->base);
}

static void add_ops(const struct meetings *m, const struct ct_process *p)
{
    for (int i = 0; i < p->nops; i++) {
        const struct ct_op_row *op = &p->ops[i];
        const int at =
            op->instance == CT_NONE ? CT_NONE : m->of_instance[op->instance];

        if (at != CT_NONE)
            add_op(m, &m->of[at], p, op);
    }
}

static double error_at(const struct meeting *of, unsigned n)
{
    return of->error + EVENT_NS / sqrt(n);
}

/* Of the n ranks of an instance; NAN: the clocks are not good enough, or what
 * was found before is better. */
static double transfer_of(const struct meeting *of, unsigned n, bool rotates)
{
    const double spread = (double)(of->last_end - of->first_end);
    const double one_moment =
        fmax(SURE * EVENT_NS * sqrt(2 * log(n)), SURE * of->error);
    double ns = (double)(of->last_end - of->last_start);

    if (of->n != n || (rotates && SURE * of->error > CT_SAMPLE_ERROR * ns))
        return NAN;
    if (spread <= one_moment)
        ns = (double)(of->base - of->last_start) + of->sum_ends / n;
    return error_at(of, n) <= CT_CLOCK_ERROR * ns ? ns : NAN;
}

static bool is_skewed(const struct ct_job *job, int i)
{
    const struct ct_instance *instance = &job->instances[i];
    struct ct_spread spread;

    if (!ct_is_whole_collective(job, instance))
        return false;
    spread = ct_spread_of(instance);
    return instance->skewed ||
           spread.longest - spread.shortest > NOTICEABLE * spread.shortest;
}

void ct_place_meetings(const struct ct_trace *trace, struct ct_job *job,
                       const bool *rotates, double *ns)
{
    struct meetings m = {.trace = trace};

    m.of_instance = ct_alloc((size_t)job->ninstances, sizeof(*m.of_instance));
    for (int i = 0; i < job->ninstances; i++)
        m.of_instance[i] = is_skewed(job, i) ? m.n++ : CT_NONE;
    m.of = ct_alloc((size_t)m.n, sizeof(*m.of));
    for (int i = 0; m.n > 0 && i < job->nprocesses; i++)
        add_ops(&m, &trace->processes[job->processes[i]]);
    for (int i = 0; i < job->ninstances; i++) {
        const struct meeting *of;
        double transfer;

        if (m.of_instance[i] == CT_NONE)
            continue;
        of = &m.of[m.of_instance[i]];
        transfer = transfer_of(of, job->instances[i].timed,
                               rotates[job->instances[i].usage]);
        if (isnan(transfer))
            continue;
        ns[i] = transfer;
        if (error_at(of, of->n) <= CT_SAMPLE_ERROR * transfer)
            job->instances[i].skewed = false;
    }
    free(m.of);
    free(m.of_instance);
}
