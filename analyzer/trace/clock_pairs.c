/*
 * Clocks of a group that also met each other, though common time does not go by
 * that tie (clock_tree.c): errors of the ties that it does go by add up, and
 * this one alone may show that the two are no farther apart than it says.
 */
#include <math.h>
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/clock.h"

static int by_clocks(const void *left, const void *right)
{
    const struct ct_clock_pair *a = left, *b = right;

    return a->a != b->a ? (a->a < b->a ? -1 : 1)
                        : (a->b > b->b) - (a->b < b->b);
}

double ct_clock_pair_error(const struct ct_job *job, int a, int b,
                           int64_t common_ns)
{
    const struct ct_clock_pair key = {.a = a < b ? a : b, .b = a < b ? b : a};
    const struct ct_clock_pair *pair;

    if (!job->nclock_pairs)
        return INFINITY;
    pair = bsearch(&key, job->clock_pairs, (size_t)job->nclock_pairs,
                   sizeof(key), by_clocks);
    return pair && common_ns >= pair->first_ns && common_ns <= pair->last_ns
               ? pair->error_ns
               : INFINITY;
}

/* How far off a tie says that the common times of its clocks are, at at_ns of
 * clock a. */
static double gap_at(const struct ct_job *job, const struct ct_tie *tie,
                     int64_t at_ns)
{
    return (double)(ct_clock_common(&job->clocks[tie->b],
                                    at_ns + ct_tie_apart(tie, at_ns)) -
                    ct_clock_common(&job->clocks[tie->a], at_ns));
}

static bool leads(const struct ct_job *job, const struct ct_tie *tie)
{
    return job->clocks[tie->a].parent == tie->b ||
           job->clocks[tie->b].parent == tie->a;
}

void ct_clock_compare_pairs(struct ct_clocking *c)
{
    struct ct_job *job = c->m->job;
    int i, capacity = 0;

    for (i = 0; i < c->nties; i++) {
        const struct ct_tie *tie = &c->ties[i];
        double gap;

        if (!tie->nlines || tie->pooled || leads(job, tie) ||
            job->clocks[tie->a].group != job->clocks[tie->b].group)
            continue;
        gap = fmax(fabs(gap_at(job, tie, tie->first_ns)),
                   fabs(gap_at(job, tie, tie->last_ns)));
        job->clock_pairs =
            ct_grow(job->clock_pairs, &capacity, job->nclock_pairs,
                    sizeof(*job->clock_pairs));
        job->clock_pairs[job->nclock_pairs++] = (struct ct_clock_pair){
            .a = tie->a,
            .b = tie->b,
            .first_ns = ct_clock_common(&job->clocks[tie->a], tie->first_ns),
            .last_ns = ct_clock_common(&job->clocks[tie->a], tie->last_ns),
            .error_ns = tie->error_ns + gap};
    }
    if (job->nclock_pairs)
        qsort(job->clock_pairs, (size_t)job->nclock_pairs,
              sizeof(*job->clock_pairs), by_clocks);
    ct_arena_adopt(c->m->trace->arena, job->clock_pairs);
}
