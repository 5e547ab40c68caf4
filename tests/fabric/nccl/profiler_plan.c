/*
 * Launches. What is on its stream is told of by the thread that put it there;
 * what a graph holds, at each launch of the graph, by a thread of the driver's.
 * Kernels write down when each channel began and ended; a thread of ours, as
 * NCCL's proxy, looks at that and tells.
 */
#include "nccl/profiler.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/comm.h"
#include "nccl/layout.h"
#include "nccl/op.h"
#include "nccl/profiler_words.h"
#include "nccl/reduce.h"
#include "nccl/release.h"
#include "nccl/tuning.h"

/* globaltimer: no clock of the host's, and in steps. */
#define TIMER_AHEAD INT64_C(1000000000000)
#define TIMER_STEP INT64_C(32)

struct task {
    struct op op;
    struct fabric_choice choice;
    void *handle;
    void *kernel[LAYOUT_MOST_CHANNELS];
    int64_t begin_ns, end_ns;
    int begun, ended;           /* on the GPU */
    int told_begin, told_ended; /* to the plugin */
};

struct plan {
    struct plan *next;
    struct ncclComm *comm;
    void *group, *launch;
    int holders;
    int posted;   /* its tasks have handles */
    int finished; /* the GPU has */
    int n;
    struct task task[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct plan *plans; /* posted, and not all told */
static int has_thread;

static void let_go(struct plan *plan)
{
    int last;

    pthread_mutex_lock(&lock);
    last = !--plan->holders;
    pthread_mutex_unlock(&lock);
    if (last)
        free(plan);
}

static int listens(const struct op *op, int kinds)
{
    return (op->profiled.mask & kinds) != 0;
}

static int wants_kernels(const struct op *op)
{
    return listens(op, CT_PROFILER_KERNEL_CHANNEL);
}

static int wants_task(const struct op *op)
{
    return listens(op, (op_is_p2p(op) ? CT_PROFILER_P2P : CT_PROFILER_COLL) |
                           CT_PROFILER_KERNEL_CHANNEL);
}

static int wants_group(const struct op *op)
{
    return wants_task(op) ||
           listens(op, CT_PROFILER_GROUP | CT_PROFILER_COLL | CT_PROFILER_P2P);
}

/* Where task i is told, of those that are told of. */
static void put_in_order(int *order, const struct plan *plan)
{
    for (int i = 0; i < plan->n; i++) {
        int at = i;

        for (; at && op_comes_before(&plan->task[i].op,
                                     &plan->task[order[at - 1]].op);
             at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

static struct plan *plan_of(struct op *ops, int n, int holders)
{
    struct plan *plan =
        calloc(1, sizeof(*plan) + (size_t)n * sizeof(struct task));

    if (!plan)
        return NULL;
    plan->comm = ops[0].comm;
    plan->holders = holders;
    plan->n = n;
    for (int i = 0; i < n; i++) {
        plan->task[i].op = ops[i];
        if (!op_is_rma(&ops[i]))
            plan->task[i].choice = fabric_choose(&ops[i]);
    }
    return plan;
}

static const struct op *first_heard(const struct op *ops, int n)
{
    for (int i = 0; i < n; i++)
        if (ops[i].profiled.mask)
            return &ops[i];
    return NULL;
}

struct plan *profiler_plan(struct op *ops, int n)
{
    return first_heard(ops, n) ? plan_of(ops, n, 2) : NULL;
}

void profiler_plan_drop(struct plan *plan)
{
    free(plan);
}

void profiler_launching(struct plan *plan)
{
    struct ct_profiler_event_v5 event = {.type = CT_PROFILER_KERNEL_LAUNCH};
    const struct op *op = NULL;

    for (int i = 0; plan && i < plan->n && !op; i++)
        if (plan->task[i].op.profiled.mask)
            op = &plan->task[i].op;
    if (!op || !listens(op, CT_PROFILER_KERNEL_LAUNCH) ||
        !profiler_is_told_of_calls())
        return;
    event.parent = op->profiled.group;
    event.u.launch.stream = op->stream;
    profiler_start(plan->comm, &plan->launch, &event);
}

/* An all-gather and a broadcast count bytes. */
static void describe_coll(struct ct_profiler_event_v5 *event,
                          const struct task *task, const struct plan *plan)
{
    const struct op *op = &task->op;
    int bytes = op->kind == OP_ALL_GATHER || op->kind == OP_BROADCAST;

    event->type = CT_PROFILER_COLL;
    event->u.coll.is = (struct ct_profiler_coll){
        .number = plan->comm->profiled.number[op->kind],
        .func = word_of_kind(op->kind),
        .send = op->send,
        .recv = op->recv,
        .count = bytes ? op->count * type_bytes(op->type) : op->count,
        .root = op->peer,
        .datatype = word_of_type(bytes ? ncclInt8 : op->type),
        .channels = (uint8_t)task->choice.channels,
        .warps = (uint8_t)task->choice.warps,
        .algorithm = task->choice.algorithm_name,
        .protocol = task->choice.protocol_name,
    };
    event->u.coll.group = plan->group;
}

static void describe_p2p(struct ct_profiler_event_v5 *event,
                         const struct task *task, const struct plan *plan)
{
    const struct op *op = &task->op;

    event->type = CT_PROFILER_P2P;
    event->u.p2p.is = (struct ct_profiler_p2p){
        .func = word_of_kind(op->kind),
        .buffer = op->kind == OP_SEND ? (void *)op->send : op->recv,
        .datatype = word_of_type(op->type),
        .count = op->count,
        .peer = op->peer,
        .channels = (uint8_t)task->choice.channels,
    };
    event->u.p2p.group = plan->group;
}

static void tell_task(struct plan *plan, struct task *task)
{
    struct ct_profiler_event_v5 event = {.parent = task->op.profiled.call,
                                         .rank = plan->comm->rank};

    if (op_is_rma(&task->op))
        return;
    if (op_is_p2p(&task->op))
        describe_p2p(&event, task, plan);
    else
        describe_coll(&event, task, plan);
    if (wants_task(&task->op))
        profiler_start(plan->comm, &task->handle, &event);
    if (!op_is_p2p(&task->op))
        plan->comm->profiled.number[task->op.kind]++;
}

static void *tell_kernels(void *unused);

static void begin_thread(void)
{
    pthread_t thread;
    sigset_t all, old;

    if (has_thread)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (!pthread_create(&thread, NULL, tell_kernels, NULL)) {
        pthread_detach(thread);
        has_thread = 1;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* To the thread that tells of kernels, which holds it from now on. */
static void post(struct plan *plan)
{
    struct plan **end = &plans;

    pthread_mutex_lock(&lock);
    begin_thread();
    if (has_thread) {
        while (*end)
            end = &(*end)->next;
        *end = plan;
        plan->holders++;
        plan->posted = 1;
        plan->comm->profiled.plans++;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
}

static void tell_plan(struct plan *plan)
{
    struct ct_profiler_event_v5 event = {.type = CT_PROFILER_GROUP};
    int *order = calloc((size_t)plan->n, sizeof(*order));
    int group = 0, kernels = 0;

    if (!order)
        return;
    put_in_order(order, plan);
    for (int i = 0; i < plan->n; i++) {
        group |= wants_group(&plan->task[i].op);
        kernels |= wants_kernels(&plan->task[i].op);
    }
    if (group)
        profiler_start(plan->comm, &plan->group, &event);
    for (int i = 0; i < plan->n; i++)
        tell_task(plan, &plan->task[order[i]]);
    if (kernels)
        post(plan); /* before the stops: the GPU may be done already */
    for (int i = 0; i < plan->n; i++)
        profiler_stop(plan->task[order[i]].handle);
    profiler_stop(plan->group);
    free(order);
}

void profiler_launched(struct plan *plan)
{
    if (!plan)
        return;
    profiler_stop(plan->launch);
    tell_plan(plan);
    let_go(plan);
}

void profiler_captured(struct plan *plan)
{
    if (!plan)
        return;
    profiler_stop(plan->launch);
    free(plan); /* each launch of the graph makes one */
}

/* Up to 2.30 a graph calls back for what needs the proxy: kernels that are
 * looked at, and networks. */
static int calls_back(const struct op *op, int n)
{
    int kernels = 0;

    for (int i = 0; i < n; i++)
        kernels |= wants_kernels(&op[i]);
    return kernels || nccl_release() >= 23102 || op->comm->profiled.nodes > 1;
}

struct plan *profiler_replay(struct op *ops, int n)
{
    struct plan *plan;

    if (!first_heard(ops, n) || !calls_back(ops, n))
        return NULL;
    plan = plan_of(ops, n, 1);
    if (plan)
        tell_plan(plan);
    return plan;
}

/* ---- kernels ---- */

void profiler_began(struct plan *plan, int op, int64_t at_ns)
{
    if (!plan)
        return;
    pthread_mutex_lock(&lock);
    plan->task[op].begin_ns = at_ns;
    plan->task[op].begun = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void profiler_ended(struct plan *plan, int op, int64_t at_ns)
{
    if (!plan)
        return;
    pthread_mutex_lock(&lock);
    plan->task[op].end_ns = at_ns;
    plan->task[op].ended = 1;
    pthread_mutex_unlock(&lock);
}

void profiler_finished(struct plan *plan)
{
    if (!plan)
        return;
    pthread_mutex_lock(&lock);
    plan->finished = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    let_go(plan);
}

static uint64_t timer(int64_t at_ns)
{
    return (uint64_t)(TIMER_AHEAD + at_ns / TIMER_STEP * TIMER_STEP);
}

/* All channels begin together; they end one after the other, as far as there is
 * time for that. */
static int64_t end_of(const struct task *task, int channel)
{
    int behind = task->choice.channels - 1 - channel;
    int64_t at_ns = task->end_ns - behind * TIMER_STEP;

    return at_ns < task->begin_ns ? task->end_ns : at_ns;
}

static void tell_begin(struct plan *plan, struct task *task)
{
    for (int c = 0; c < task->choice.channels; c++) {
        struct ct_profiler_event_v5 event = {.type = CT_PROFILER_KERNEL_CHANNEL,
                                             .parent = task->handle};

        event.u.kernel.channel = (uint8_t)c;
        event.u.kernel.timer = timer(task->begin_ns);
        profiler_start(plan->comm, &task->kernel[c], &event);
    }
}

static void tell_end(struct task *task)
{
    for (int c = 0; c < task->choice.channels; c++) {
        union ct_profiler_args args = {0};

        args.kernel.timer = timer(end_of(task, c));
        profiler_record(task->kernel[c], CT_PROFILER_KERNEL_STOP, &args);
        profiler_stop(task->kernel[c]);
    }
}

/* With the lock, which is free while the plugin is told; whether it was. */
static int tell_news(struct plan *plan, struct task *task)
{
    int begin = task->begun && !task->told_begin;
    int end = plan->finished && task->ended && !task->told_ended;

    if (!begin && !end)
        return 0;
    task->told_begin |= begin;
    task->told_ended |= end;
    pthread_mutex_unlock(&lock);
    if (wants_kernels(&task->op) && task->handle && begin)
        tell_begin(plan, task);
    if (wants_kernels(&task->op) && task->handle && end)
        tell_end(task);
    pthread_mutex_lock(&lock);
    return 1;
}

static int tell_all(void)
{
    int told = 0;

    for (struct plan **at = &plans, *plan; (plan = *at);) {
        int finished = plan->finished;

        for (int i = 0; i < plan->n; i++)
            told |= tell_news(plan, &plan->task[i]);
        if (!finished) {
            at = &plan->next;
            continue;
        }
        *at = plan->next;
        plan->comm->profiled.plans--;
        pthread_cond_broadcast(&changed);
        if (!--plan->holders)
            free(plan);
    }
    return told;
}

static void *tell_kernels(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;)
        if (!tell_all())
            pthread_cond_wait(&changed, &lock);
    return NULL;
}

void profiler_comm_end(struct ncclComm *comm)
{
    pthread_mutex_lock(&lock);
    while (comm->profiled.plans)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    profiler_comm_close(comm);
}
