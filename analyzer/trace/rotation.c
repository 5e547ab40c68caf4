#include <math.h>
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/locate.h"
#include "trace/select.h"

#define LEAST_WINDOWS 8 /* of fewer, half may agree by chance */
#define WARM_UP 2       /* windows, where enough remain */
#define LONGEST 64      /* calls of a window */
#define LEAST_SKEW .005 /* of the shortest duration: below, no question */
#define ROTATES .5      /* of what chance would leave of the spread */

struct window { /* consecutive calls of one usage */
    int usage;
    int sums;        /* index of rank 0 in sums */
    double spread;   /* mean over its calls: longest minus shortest, ns */
    double shortest; /* the same of the shortest duration */
};

struct rotation {
    const struct ct_trace *trace;
    const struct ct_job *job;
    int nwindows, nsums;
    struct window *windows;
    int *window_of; /* per instance; CT_NONE */
    double *sums;   /* per window and rank: of durations, ns */
};

/* After how many calls a ring's skews are back where they were: each call
 * moves them by its number of steps, 2(n-1) or n-1, modulo n. 0: no ring. */
static int period(const struct ct_usage *usage, int nranks)
{
    switch (ct_op_infos[usage->base].wire) {
    case CT_TWO_RING:
        return nranks > 2 ? nranks / ct_divisor(nranks, 2) : 0;
    case CT_RING:
        return ct_op_infos[usage->base].cls == CT_COLL && nranks > 1 ? nranks
                                                                     : 0;
    case CT_UNIT:
        break;
    }
    return 0;
}

/* Calls from instance i on that make a window; 0: none does. Instances of a
 * communicator are numbered in the order of its calls. */
static int window_at(const struct rotation *r, int i)
{
    const struct ct_instance *first = &r->job->instances[i];
    int n;

    if (!ct_is_whole_collective(r->job, first))
        return 0;
    n = period(&r->job->usages[first->usage],
               r->job->comms[first->comm].nranks);
    if (n == 0 || n > LONGEST || n > r->job->ninstances - i)
        return 0;
    for (int k = 1; k < n; k++)
        if (!ct_is_whole_collective(r->job, &first[k]) ||
            first[k].usage != first->usage ||
            first[k].ordinal != first->ordinal + (uint32_t)k)
            return 0;
    return n;
}

static void add_window(struct rotation *r, int i, int n)
{
    const struct ct_instance *calls = &r->job->instances[i];
    struct window *window = &r->windows[r->nwindows];

    *window = (struct window){.usage = calls->usage, .sums = r->nsums};
    for (int k = 0; k < n; k++) {
        r->window_of[i + k] = r->nwindows;
        window->spread += (double)calls[k].wait_max_ns / n;
        window->shortest += (double)calls[k].transfer_ns / n;
    }
    r->nsums += r->job->comms[calls->comm].nranks;
    r->nwindows++;
}

static void find_windows(struct rotation *r)
{
    const size_t room = (size_t)r->job->ninstances;

    r->windows = ct_alloc(room, sizeof(*r->windows));
    r->window_of = ct_alloc(room, sizeof(*r->window_of));
    for (int i = 0; i < r->job->ninstances; i++)
        r->window_of[i] = CT_NONE;
    for (int i = 0; i < r->job->ninstances;) {
        const int n = window_at(r, i);

        if (n)
            add_window(r, i, n);
        i += n ? n : 1;
    }
}

static void sum_durations(struct rotation *r)
{
    r->sums = ct_alloc((size_t)r->nsums, sizeof(*r->sums));
    for (int p = 0; p < r->job->nprocesses; p++) {
        const struct ct_process *process =
            &r->trace->processes[r->job->processes[p]];

        for (int o = 0; o < process->nops; o++) {
            const struct ct_op_row *op = &process->ops[o];
            const int w =
                op->instance == CT_NONE ? CT_NONE : r->window_of[op->instance];

            if (w != CT_NONE && ct_op_gpu_ns(op) != CT_NO_TIME)
                r->sums[r->windows[w].sums +
                        process->comms[process->classes[op->cls].comm].rank] +=
                    (double)ct_op_gpu_ns(op);
        }
    }
}

static int compare_doubles(const void *pa, const void *pb)
{
    const double a = *(const double *)pa;
    const double b = *(const double *)pb;

    return (a > b) - (a < b);
}

/* Of what is no question nothing is to be learned. */
static bool has_skew(const struct rotation *r, int w)
{
    return r->windows[w].spread > LEAST_SKEW * r->windows[w].shortest;
}

/* What the ranks of window w still differ by in their means over its n calls,
 * as a share of what they differ by in single calls. */
static double left_of(const struct rotation *r, int w, int n)
{
    const struct window *window = &r->windows[w];
    const int nranks = r->job->comms[r->job->usages[window->usage].comm].nranks;
    const double *sums = r->sums + window->sums;
    double low = sums[0], high = sums[0];

    for (int rank = 0; rank < nranks; rank++) {
        low = fmin(low, sums[rank]);
        high = fmax(high, sums[rank]);
    }
    return (high - low) / n / window->spread;
}

/* Whether the windows of usage that have a skew, windows[0..nwindows), agree.
 */
static bool judge(const struct rotation *r, int usage, const int *windows,
                  int nwindows, double *left)
{
    const struct ct_usage *u = &r->job->usages[usage];
    const int n = period(u, r->job->comms[u->comm].nranks);
    const int skip = nwindows >= LEAST_WINDOWS + WARM_UP ? WARM_UP : 0;

    if (nwindows < LEAST_WINDOWS)
        return false;
    for (int k = skip; k < nwindows; k++)
        left[k - skip] = left_of(r, windows[k], n);
    qsort(left, (size_t)(nwindows - skip), sizeof(*left), compare_doubles);
    /* Late by chance, each time another rank: the spread of a mean of n calls
     * is 1/sqrt(n) of theirs. Always the same rank: all of it. */
    return left[(nwindows - skip) / 2] < ROTATES / sqrt(n);
}

/* Windows by usage: counting sort. */
static void judge_all(const struct rotation *r, bool *rotates)
{
    const size_t usages = (size_t)r->job->nusages + 2;
    int *first = ct_alloc(usages, sizeof(*first));
    int *sorted = ct_alloc((size_t)r->nwindows, sizeof(*sorted));
    double *left = ct_alloc((size_t)r->nwindows, sizeof(*left));
    int w, u;

    for (w = 0; w < r->nwindows; w++)
        first[r->windows[w].usage + 2] += has_skew(r, w);
    for (u = 2; u < r->job->nusages + 2; u++)
        first[u] += first[u - 1];
    for (w = 0; w < r->nwindows; w++)
        if (has_skew(r, w))
            sorted[first[r->windows[w].usage + 1]++] = w;
    for (u = 0; u < r->job->nusages; u++)
        rotates[u] =
            judge(r, u, sorted + first[u], first[u + 1] - first[u], left);
    free(first);
    free(sorted);
    free(left);
}

void ct_find_rotations(const struct ct_trace *trace, const struct ct_job *job,
                       bool *rotates)
{
    struct rotation r = {.trace = trace, .job = job};

    find_windows(&r);
    sum_durations(&r);
    judge_all(&r, rotates);
    free(r.windows);
    free(r.window_of);
    free(r.sums);
}
