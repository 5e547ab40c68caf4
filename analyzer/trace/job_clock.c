/* The time of a job: from the moment its first process began to record. */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/clocks.h"
#include "trace/narrow.h"

struct ct_job_clock {
    const struct ct_trace *trace;
    const struct ct_job *job;
    int64_t *offsets; /* per clock that leads a group */
    int64_t start_real_ns;
};

struct beginning { /* of the first process of a group of clocks */
    bool known;
    int64_t common_ns, real_ns;
};

/* Times of a hostile file may be anything. */
static int64_t apart(int64_t later_ns, int64_t earlier_ns)
{
    int64_t ns;

    return __builtin_sub_overflow(later_ns, earlier_ns, &ns) ? INT64_MAX : ns;
}

static int group_of(const struct ct_job *job, const struct ct_process *p)
{
    return job->clocks[p->clock].group;
}

static void note_beginning(const struct ct_trace *trace,
                           const struct ct_process *p, struct beginning *b)
{
    const int64_t common_ns = ct_common_ns(trace, p, 0);

    if (b->known && common_ns >= b->common_ns)
        return;
    *b = (struct beginning){true, common_ns, p->t0_real_ns};
}

struct ct_job_clock *ct_job_clock_new(const struct ct_trace *trace,
                                      const struct ct_job *job)
{
    struct ct_job_clock *clock = ct_alloc(1, sizeof(*clock));
    struct beginning *groups = ct_alloc((size_t)job->nclocks, sizeof(*groups));
    int i;

    *clock = (struct ct_job_clock){trace, job, NULL, INT64_MAX};
    clock->offsets = ct_alloc((size_t)job->nclocks, sizeof(*clock->offsets));
    for (i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = &trace->processes[job->processes[i]];

        note_beginning(trace, p, &groups[group_of(job, p)]);
    }
    for (i = 0; i < job->nclocks; i++)
        if (groups[i].known && groups[i].real_ns < clock->start_real_ns)
            clock->start_real_ns = groups[i].real_ns;
    for (i = 0; i < job->nclocks; i++)
        clock->offsets[i] =
            apart(apart(groups[i].real_ns, clock->start_real_ns),
                  groups[i].common_ns);
    free(groups);
    return clock;
}

int64_t ct_job_time(const struct ct_job_clock *clock,
                    const struct ct_process *p, int64_t ns)
{
    int64_t at;

    if (__builtin_add_overflow(ct_common_ns(clock->trace, p, ns),
                               clock->offsets[group_of(clock->job, p)], &at))
        return INT64_MAX;
    return at;
}

int64_t ct_job_start_real(const struct ct_job_clock *clock)
{
    return clock->start_real_ns;
}

void ct_job_clock_free(struct ct_job_clock *clock)
{
    if (!clock)
        return;
    free(clock->offsets);
    free(clock);
}
