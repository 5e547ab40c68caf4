/*
 * GPU times of ops that have none of their own, from NCCL's profiler, which
 * times the kernel: first start to last end of its channels. Where events
 * timed an op they stay its time, since all ranks have them and they hold the
 * wait before the kernel, too; the kernel's time is kept beside it.
 *   a call by itself       its kernel's time
 *   a group                from the first start to the last end of its ops
 *   captured into a graph  the median of its runs
 * Kernels are placed by an op nearby that has both times; where there is none,
 * as without events at all, only their durations are known.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/load.h"
#include "trace/select.h"

struct clock { /* of a GPU: what its own is behind the process's */
    int64_t offset_ns;
    bool known;
};

struct interval { /* of a launch, by the GPU's clock */
    int64_t start_ns, end_ns;
    struct clock clock;
    int n; /* ops */
};

struct placing {
    struct ct_process *p;
    struct clock *clocks; /* per communicator; of a GPU its first one's */
    int *clock_of;
    struct interval *intervals; /* per launch */
};

static struct clock *clock_of(const struct placing *s,
                              const struct ct_kernel_row *kernel)
{
    const struct ct_op_row *op = &s->p->ops[kernel->op];

    return &s->clocks[s->clock_of[s->p->classes[op->cls].comm]];
}

/* Timed by events around it alone, and by its kernel. */
static bool ties_clocks(const struct placing *s,
                        const struct ct_kernel_row *kernel)
{
    const struct ct_op_row *op = &s->p->ops[kernel->op];

    return kernel->launch == CT_NONE && kernel->start_ns != CT_NO_TIME &&
           op->launch == CT_NONE && ct_op_start_ns(op) != CT_NO_TIME &&
           ct_op_gpu_ns(op) != CT_NO_TIME && !(op->flags & CT_FLAG_KERNEL);
}

static void tie(const struct placing *s, const struct ct_kernel_row *kernel)
{
    *clock_of(s, kernel) = (struct clock){
        ct_op_start_ns(&s->p->ops[kernel->op]) - kernel->start_ns, true};
}

/* Until the first op that has both times its offset holds. */
static void begin_clocks(struct placing *s)
{
    const struct ct_process *p = s->p;
    int i, c;

    for (c = 0; c < p->ncomms; c++)
        while (p->comms[s->clock_of[c]].device != p->comms[c].device)
            s->clock_of[c]++;
    for (i = 0; i < p->nkernels; i++)
        if (ties_clocks(s, &p->kernels[i]) &&
            !clock_of(s, &p->kernels[i])->known)
            tie(s, &p->kernels[i]);
}

static int64_t placed(const struct clock *clock, int64_t start_ns)
{
    int64_t ns;

    if (!clock->known || start_ns == CT_NO_TIME ||
        __builtin_add_overflow(start_ns, clock->offset_ns, &ns) ||
        ns < -CT_MAX_TIME_NS || ns > CT_MAX_TIME_NS)
        return CT_NO_TIME;
    return ns;
}

static void set_time(struct ct_op_row *op, int64_t start_ns, int64_t gpu_ns)
{
    ct_op_set_gpu(op, start_ns, gpu_ns);
    op->flags |= CT_FLAG_KERNEL;
    op->flags &= ~(uint32_t)CT_FLAG_RUNNING;
}

static void extend(struct placing *s, const struct ct_kernel_row *kernel)
{
    struct interval *in = &s->intervals[s->p->ops[kernel->op].launch];
    int64_t end;

    if (kernel->start_ns == CT_NO_TIME ||
        __builtin_add_overflow(kernel->start_ns, kernel->gpu_ns, &end))
        return;
    if (!in->n++)
        *in = (struct interval){kernel->start_ns, end, *clock_of(s, kernel), 1};
    if (kernel->start_ns < in->start_ns)
        in->start_ns = kernel->start_ns;
    if (end > in->end_ns)
        in->end_ns = end;
}

static void time_run(struct placing *s, const struct ct_kernel_row *kernel)
{
    struct ct_op_row *op = &s->p->ops[kernel->op];

    if (ties_clocks(s, kernel))
        tie(s, kernel);
    else if (op->launch != CT_NONE)
        extend(s, kernel);
    else if (ct_op_gpu_ns(op) == CT_NO_TIME)
        set_time(op, placed(clock_of(s, kernel), kernel->start_ns),
                 kernel->gpu_ns);
}

/* Returns how many kernels they are. */
static int time_replays(struct placing *s, const struct ct_kernel_row *kernels,
                        int most)
{
    struct ct_op_row *op = &s->p->ops[kernels->op];
    int64_t *ns;
    int n = 1, i;

    while (n < most && kernels[n].op == kernels->op)
        n++;
    if (ct_op_gpu_ns(op) != CT_NO_TIME || op->launch != CT_NONE)
        return n; /* an interval of its group is not known run by run */
    ns = ct_alloc((size_t)n, sizeof(*ns));
    for (i = 0; i < n; i++)
        ns[i] = kernels[i].gpu_ns;
    set_time(op, CT_NO_TIME, ct_nth(ns, n, n / 2));
    free(ns);
    return n;
}

static void time_launch(struct ct_launch_row *launch, const struct interval *in)
{
    if (!in->n || in->n != launch->nops ||
        ct_launch_gpu_ns(launch) != CT_NO_TIME ||
        in->end_ns - in->start_ns > CT_MAX_DURATION_NS)
        return;
    ct_launch_set_gpu(launch, placed(&in->clock, in->start_ns),
                      in->end_ns - in->start_ns);
    launch->flags |= CT_FLAG_KERNEL;
    launch->flags &= ~(uint32_t)CT_FLAG_RUNNING;
}

static void time_groups(struct placing *s)
{
    struct ct_process *p = s->p;
    int i;

    for (i = 0; i < p->nlaunches; i++)
        time_launch(&p->launches[i], &s->intervals[i]);
    for (i = 0; i < p->nops; i++) {
        struct ct_op_row *op = &p->ops[i];
        const struct ct_launch_row *launch =
            op->launch == CT_NONE ? NULL : &p->launches[op->launch];

        if (launch && ct_op_gpu_ns(op) == CT_NO_TIME &&
            launch->flags & CT_FLAG_KERNEL)
            set_time(op, ct_launch_start_ns(launch), ct_launch_gpu_ns(launch));
    }
}

void ct_load_kernel_times(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct placing s = {.p = p};
    int i;

    if (!p->nkernels)
        return;
    s.clocks = ct_alloc((size_t)p->ncomms, sizeof(*s.clocks));
    s.clock_of = ct_alloc((size_t)p->ncomms, sizeof(*s.clock_of));
    s.intervals = ct_alloc((size_t)p->nlaunches, sizeof(*s.intervals));
    begin_clocks(&s);
    for (i = 0; i < p->nkernels;)
        if (p->kernels[i].launch == CT_NONE)
            time_run(&s, &p->kernels[i++]);
        else
            i += time_replays(&s, &p->kernels[i], p->nkernels - i);
    time_groups(&s);
    free(s.clocks);
    free(s.clock_of);
    free(s.intervals);
}
