/* What clocks say in common time, and how far that may be off. */
#include <math.h>

#include "trace/clock.h"

static const struct ct_clock_piece *piece_at(const struct ct_clock *clock,
                                             int64_t own_ns)
{
    int low = 0, high = clock->npieces - 1;

    while (low < high) {
        const int middle = low + (high - low + 1) / 2;

        if (own_ns >= clock->pieces[middle].from_ns)
            low = middle;
        else
            high = middle - 1;
    }
    return &clock->pieces[low];
}

int64_t ct_clock_along(const struct ct_clock_piece *piece, int64_t own_ns)
{
    const int64_t since = own_ns - piece->own_ns;

    return piece->common_ns + since +
           (int64_t)floor((double)since * piece->rate + .5);
}

int64_t ct_clock_common(const struct ct_clock *clock, int64_t own_ns)
{
    return ct_clock_along(piece_at(clock, own_ns), own_ns);
}

/* Of a clock's tie to its parent, at a common time. */
static double tie_error(const struct ct_clock *clock, int64_t common_ns)
{
    const int64_t first = ct_clock_common(clock, clock->first_ns);
    const int64_t last = ct_clock_common(clock, clock->last_ns);
    double outside = 0;

    if (common_ns < first)
        outside = (double)(first - common_ns);
    if (common_ns > last)
        outside = (double)(common_ns - last);
    return clock->tie_error_ns + outside * clock->rate_error;
}

/* Along the ties that lead from the one to the other. */
static double path_error(const struct ct_job *job, int a, int b,
                         int64_t common_ns)
{
    double square = 0;

    if (job->clocks[a].group != job->clocks[b].group)
        return INFINITY;
    while (a != b) {
        int *deeper = job->clocks[a].depth >= job->clocks[b].depth ? &a : &b;
        const struct ct_clock *clock = &job->clocks[*deeper];
        const double error = tie_error(clock, common_ns);

        square += error * error;
        *deeper = clock->parent;
    }
    return sqrt(square);
}

double ct_clock_error(const struct ct_job *job, int a, int b, int64_t own_ns)
{
    int64_t common_ns;

    if (a == b)
        return 0;
    common_ns = ct_clock_common(&job->clocks[a], own_ns);
    return fmin(path_error(job, a, b, common_ns),
                ct_clock_pair_error(job, a, b, common_ns));
}

/* NULL: the job has none, and all of it is of one time. */
static const struct ct_clock *clock_of(const struct ct_trace *trace,
                                       const struct ct_process *p)
{
    const struct ct_job *job = &trace->jobs[p->job];

    return job->nclocks ? &job->clocks[p->clock] : NULL;
}

int64_t ct_common_ns(const struct ct_trace *trace, const struct ct_process *p,
                     int64_t ns)
{
    const struct ct_clock *clock = clock_of(trace, p);

    return clock ? ct_clock_common(clock, p->t0_ns + ns) : p->t0_ns + ns;
}

double ct_common_error(const struct ct_trace *trace, const struct ct_process *a,
                       const struct ct_process *b, int64_t ns)
{
    if (a->job != b->job)
        return INFINITY;
    if (!clock_of(trace, a))
        return 0;
    return ct_clock_error(&trace->jobs[a->job], a->clock, b->clock,
                          a->t0_ns + ns);
}

bool ct_clocks_are_tied(const struct ct_job *job)
{
    int i;

    for (i = 0; i < job->nclocks; i++)
        if (job->clocks[i].group != 0)
            return false;
    return true;
}
