#include "pipeline/pipeline.h"

#include <math.h>
#include <stdlib.h>

#include "pipeline/travel.h"

struct sources { /* what is read */
    const struct ct_job *job;
    const struct ct_roles *roles;
    const int64_t *travel_ns; /* per instance */
};

struct share { /* of a step */
    double total, passes;
};

struct stretch {         /* idle time of one step, as its ops are walked */
    int64_t pipeline_ns; /* waits in pipeline ops */
    int64_t before_ns;   /* other waits before the first pipeline op */
    int64_t since_ns;    /* other waits after the latest one */
    int64_t sync_ns;     /* transfers of DP and control */
    int comm;            /* of the latest other op; CT_NONE */
    bool started;        /* a pipeline op was seen */
    bool timed;          /* at least one of them has a GPU time */
};

struct call { /* an op, or all ops of one launch */
    int64_t gpu_ns, transfer_ns;
    int comm;
    bool pipeline, tensor, sync;
};

static enum ct_role_id role_of(const struct sources *from,
                               const struct ct_op_row *op)
{
    int usage, role;

    if (op->instance == CT_NONE)
        return CT_ROLE_UNKNOWN;
    usage = from->job->instances[op->instance].usage;
    role = usage == CT_NONE ? CT_NONE : from->roles->of_usage[usage];
    return role == CT_NONE ? CT_ROLE_UNKNOWN : from->roles->roles[role].role;
}

static void add_op(const struct sources *from, const struct ct_op_row *op,
                   struct call *call)
{
    const enum ct_role_id role = role_of(from, op);

    if (ct_op_gpu_ns(op) != CT_NO_TIME && ct_op_gpu_ns(op) > call->gpu_ns)
        call->gpu_ns = ct_op_gpu_ns(op);
    if (op->instance != CT_NONE)
        call->comm = from->job->instances[op->instance].comm;
    call->pipeline = call->pipeline || role == CT_ROLE_PP;
    call->tensor = call->tensor || role == CT_ROLE_TP;
    call->sync = call->sync || role == CT_ROLE_DP || role == CT_ROLE_CONTROL;
    if (op->instance == CT_NONE)
        return;
    const int64_t transfer = from->travel_ns[op->instance];

    if (transfer != CT_NO_TIME && transfer > call->transfer_ns)
        call->transfer_ns = transfer;
}

static int64_t wait_of(const struct call *call)
{
    if (call->gpu_ns == CT_NO_TIME || call->transfer_ns == CT_NO_TIME ||
        call->gpu_ns <= call->transfer_ns)
        return 0;
    return call->gpu_ns - call->transfer_ns;
}

/* Waits outside the pipeline count in the first of successive ops on one
 * communicator: after it all its ranks are there, and the rest is how evenly
 * the operation itself runs. */
static void add_other(const struct call *call, struct stretch *stretch)
{
    const bool first = call->comm != stretch->comm;
    const int64_t wait = first ? wait_of(call) : 0;

    stretch->comm = call->comm;
    if (stretch->started)
        stretch->since_ns += wait;
    else
        stretch->before_ns += wait;
    if (call->sync && call->gpu_ns != CT_NO_TIME)
        stretch->sync_ns += call->gpu_ns - wait;
}

static void add_call(const struct call *call, struct stretch *stretch)
{
    if (call->pipeline) {
        stretch->pipeline_ns += wait_of(call);
        stretch->since_ns = 0;
        stretch->comm = CT_NONE;
        stretch->started = true;
        stretch->timed = stretch->timed || call->gpu_ns != CT_NO_TIME;
    } else if (!call->tensor) {
        add_other(call, stretch);
    }
}

/* Shares of a step that the rank stood idle; total NAN: no timed pipeline op.
 */
static struct share idle_of_step(const struct sources *from,
                                 const struct ct_process *process,
                                 const struct ct_step_row *step)
{
    const double wall = (double)(step->end_ns - step->start_ns);
    struct stretch stretch = {.comm = CT_NONE};
    int end;

    for (int i = step->first_op; i <= step->last_op; i = end) {
        const int launch = process->ops[i].launch;
        struct call call = {CT_NO_TIME, CT_NO_TIME, CT_NONE,
                            false,      false,      false};

        end = i;
        do
            add_op(from, &process->ops[end++], &call);
        while (launch != CT_NONE && end <= step->last_op &&
               process->ops[end].launch == launch);
        add_call(&call, &stretch);
    }
    const double idle =
        (double)(stretch.pipeline_ns + stretch.before_ns + stretch.since_ns);
    const double passes = wall - (double)stretch.sync_ns;

    if (!stretch.timed || wall <= 0)
        return (struct share){NAN, NAN};
    return (struct share){fmin(1, idle / wall),
                          passes > 0 ? fmin(1, idle / passes) : NAN};
}

/* Mean over the rank's steady steps; *samples_p: their number. */
static struct share idle_of_rank(const struct sources *from,
                                 const struct ct_process *process,
                                 int *samples_p)
{
    struct share sum = {0, 0};

    *samples_p = 0;
    for (int i = 0; i < process->nsteps; i++) {
        const struct ct_step_row *step = &process->steps[i];
        struct share idle;

        if (step->kind != CT_STEP_STEADY || step->first_op < 0 ||
            step->last_op >= process->nops)
            continue;
        idle = idle_of_step(from, process, step);
        if (isnan(idle.total))
            continue;
        sum.total += idle.total;
        sum.passes += idle.passes;
        ++*samples_p;
    }
    return (struct share){sum.total / *samples_p, sum.passes / *samples_p};
}

static void measure(const struct sources *from, const struct ct_trace *trace,
                    struct ct_pipeline *pipeline)
{
    struct share sum = {0, 0};
    int ranks = 0;

    for (int i = 0; i < from->job->nprocesses; i++) {
        int samples;
        const struct share idle = idle_of_rank(
            from, &trace->processes[from->job->processes[i]], &samples);

        if (samples == 0)
            continue;
        if (ranks == 0 || idle.total < pipeline->idle_min)
            pipeline->idle_min = idle.total;
        if (ranks == 0 || idle.total > pipeline->idle_max)
            pipeline->idle_max = idle.total;
        sum.total += idle.total;
        sum.passes += idle.passes;
        ranks++;
        pipeline->samples += samples;
    }
    if (ranks > 0) {
        pipeline->idle = sum.total / ranks;
        pipeline->idle_passes = sum.passes / ranks;
    }
}

void ct_pipeline_measure(const struct ct_trace *trace, const struct ct_job *job,
                         const struct ct_roles *roles,
                         struct ct_pipeline *pipeline)
{
    const double p = roles->pp, m = roles->micro_batches;
    int64_t *travel_ns;

    *pipeline = (struct ct_pipeline){.stages = roles->pp > 1 ? roles->pp : 0,
                                     .micro_batches = roles->micro_batches,
                                     .idle = NAN,
                                     .idle_min = NAN,
                                     .idle_max = NAN,
                                     .idle_passes = NAN,
                                     .theory_total = NAN,
                                     .theory_ideal = NAN};
    if (pipeline->stages == 0)
        return;
    if (roles->micro_batches > 0) {
        pipeline->theory_total = (p - 1) / (m + p - 1);
        pipeline->theory_ideal = (p - 1) / m;
    }
    travel_ns = ct_travel_times(trace, job);
    if (travel_ns)
        measure(&(struct sources){job, roles, travel_ns}, trace, pipeline);
    free(travel_ns);
}
