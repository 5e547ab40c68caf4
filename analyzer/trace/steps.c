/* Steps from the anchors of each process, and what all processes agree on. */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/parallel.h"
#include "trace/select.h"
#include "trace/stages.h"
#include "trace/steps.h"

/* Processes that must agree on the number of steps for the job to have any;
 * the rest (helpers, ranks that died early) then has none. */
#define AGREEING_SHARE 0.8

struct cutting {
    struct ct_trace *trace;
    struct ct_job *job;
    int expected; /* steps to look for; 0: any */
};

static struct ct_step_row *add_step(struct ct_process *p, int *capacity,
                                    int first, int last, enum ct_step_kind kind)
{
    p->steps = ct_grow(p->steps, capacity, p->nsteps, sizeof(*p->steps));
    p->steps[p->nsteps] =
        (struct ct_step_row){.first_op = first, .last_op = last, .kind = kind};
    return &p->steps[p->nsteps++];
}

/* The calls first..last, places in the sequence, end with an anchor. They are a
 * step if they are what a step usually is. Something before a usual step
 * (initialisation, evaluation, a checkpoint) is not part of it. */
static void cut_segment(const struct ct_stream *s,
                        const struct ct_anchor *anchor, int *capacity,
                        int first, int last)
{
    struct ct_process *p = s->process;
    int start = last + 1 - anchor->length;
    bool usual = start >= first &&
                 s->hashes[last + 1] - s->hashes[start] == anchor->usual;
    enum ct_step_kind kind = p->nsteps ? CT_STEP_OTHER : CT_STEP_WARM_UP;

    if (!usual) {
        /* Before the first steady step: short ones are set-up, of long ones
         * only the end can be the first step. */
        if (kind == CT_STEP_WARM_UP && 2 * (last + 1 - first) < anchor->length)
            return;
        if (kind == CT_STEP_WARM_UP && start - first > anchor->length)
            first = start;
        add_step(p, capacity, first, last, kind);
        return;
    }
    if (start > first && p->nsteps)
        add_step(p, capacity, first, start - 1, CT_STEP_OTHER);
    add_step(p, capacity, start, last, CT_STEP_STEADY);
}

/* One clock for all steps of a process: the GPU's if it timed most anchors.
 * What a live or dead process had not finished on the GPU by the end are then
 * no steps. Returns the number of anchors to use. */
static int choose_clock(struct ct_stream *s, const int *at, int n)
{
    int i, timed = 0;

    for (i = 0; i < n; i++)
        timed += ct_stream_timed(s, at[i]);
    s->on_gpu = 2 * timed > n;
    while (s->on_gpu && n && !ct_stream_timed(s, at[n - 1]))
        n--;
    return n;
}

static void time_steps(const struct ct_stream *s)
{
    struct ct_process *p = s->process;
    int i;

    for (i = 0; i < p->nsteps; i++) {
        struct ct_step_row *step = &p->steps[i];

        step->start_ns = i && step[-1].last_op + 1 == step->first_op
                             ? step[-1].end_ns
                             : ct_stream_begin(s, step->first_op);
        step->end_ns = ct_stream_end(s, step->last_op);
        step->first_ns = ct_stream_enter(s, step->first_op);
        step->last_ns = ct_stream_enter(s, step->last_op);
    }
}

/* From places in the sequence to ops. */
static void find_ops(const struct ct_stream *s)
{
    struct ct_process *p = s->process;
    int i;

    for (i = 0; s->calls && i < p->nsteps; i++) {
        p->steps[i].first_op = ct_stream_op(s, p->steps[i].first_op);
        p->steps[i].last_op = ct_stream_op(s, p->steps[i].last_op + 1) - 1;
    }
}

static void cut_process(void *context, int i)
{
    struct cutting *cutting = context;
    struct ct_process *p =
        &cutting->trace->processes[cutting->job->processes[i]];
    struct ct_stream stream;
    struct ct_anchor anchor;
    int k, first = 0, capacity = 0;

    ct_stream_init(&stream, p);
    /* Untimed processes have no start anywhere; mixed ones are asked again. */
    stream.on_gpu = true;
    if (ct_stream_anchor(&stream, cutting->expected, &anchor)) {
        const struct ct_token *token = &stream.tokens[anchor.token];
        const int *at = stream.positions + token->first;
        int n = choose_clock(&stream, at, token->n);

        for (k = 0; k < n; k++) {
            cut_segment(&stream, &anchor, &capacity, first, at[k]);
            first = at[k] + 1;
        }
        time_steps(&stream);
        find_ops(&stream);
    }
    ct_stream_release(&stream);
}

static void forget_steps(struct ct_process *p)
{
    free(p->steps);
    p->steps = NULL;
    p->nsteps = 0;
}

static int steady_steps(const struct ct_process *p)
{
    int i, n = 0;

    for (i = 0; i < p->nsteps; i++)
        n += p->steps[i].kind == CT_STEP_STEADY;
    return n;
}

static int by_int(const void *left, const void *right)
{
    int a = *(const int *)left, b = *(const int *)right;

    return (a > b) - (a < b);
}

/* The number of steps that most processes with calls have, 0 among them. */
static int most_common(const struct cutting *c, int *active_p)
{
    int n = c->job->nprocesses, i, k = 0, run = 0, best = 0, value = 0;
    int *counts = ct_alloc((size_t)n, sizeof(*counts));

    for (i = 0; i < n; i++) {
        const struct ct_process *p = &c->trace->processes[c->job->processes[i]];

        if (p->nops)
            counts[k++] = steady_steps(p);
    }
    qsort(counts, (size_t)k, sizeof(*counts), by_int);
    for (i = 0; i < k; i++) {
        run = i && counts[i] == counts[i - 1] ? run + 1 : 1;
        if (run >= best) {
            best = run;
            value = counts[i];
        }
    }
    *active_p = k;
    free(counts);
    return value;
}

/* Processes end a step apart; one that was killed, or still runs, may lack
 * what its recorder had not finished. */
static bool agrees(const struct ct_process *p, int expected)
{
    int steps = steady_steps(p);
    int fewest = p->end_ns == CT_NO_TIME ? (expected + 1) / 2 : expected - 1;

    return steps > 0 && steps >= fewest && steps <= expected + 1;
}

/* Processes that found another period look for the common one. */
static void search_again(struct cutting *c, int expected)
{
    int i;

    c->expected = expected;
    for (i = 0; i < c->job->nprocesses; i++) {
        struct ct_process *p = &c->trace->processes[c->job->processes[i]];

        if (p->nops && !agrees(p, expected)) {
            forget_steps(p);
            cut_process(c, i);
        }
    }
}

static void agree(struct cutting *c)
{
    int active, agreeing = 0, i, fewest = INT32_MAX;
    int expected = most_common(c, &active);

    if (expected)
        search_again(c, expected);
    for (i = 0; i < c->job->nprocesses; i++) {
        struct ct_process *p = &c->trace->processes[c->job->processes[i]];
        int n = steady_steps(p);

        if (expected && agrees(p, expected)) {
            agreeing++;
            fewest = n < fewest ? n : fewest;
        } else {
            forget_steps(p);
        }
    }
    if (agreeing && agreeing >= AGREEING_SHARE * active) {
        c->job->nsteps = fewest;
        return;
    }
    for (i = 0; i < c->job->nprocesses; i++)
        forget_steps(&c->trace->processes[c->job->processes[i]]);
}

static int64_t median_duration(const struct ct_trace *trace,
                               const struct ct_job *job)
{
    int64_t *durations = NULL, middle = CT_NO_TIME;
    int i, k, n = 0, capacity = 0;

    for (i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = &trace->processes[job->processes[i]];

        for (k = 0; k < p->nsteps; k++) {
            if (p->steps[k].kind != CT_STEP_STEADY)
                continue;
            durations = ct_grow(durations, &capacity, n, sizeof(*durations));
            durations[n++] = p->steps[k].end_ns - p->steps[k].start_ns;
        }
    }
    if (n)
        middle = ct_nth(durations, n, n / 2);
    free(durations);
    return middle;
}

void ct_trace_steps(struct ct_trace *trace, struct ct_job *job)
{
    struct cutting cutting = {.trace = trace, .job = job};
    int i;

    ct_parallel_for(job->nprocesses, cut_process, &cutting);
    agree(&cutting);
    job->step_ns = median_duration(trace, job);
    for (i = 0; i < job->nprocesses; i++)
        ct_arena_adopt(trace->arena, trace->processes[job->processes[i]].steps);
}

/* Steps follow each other; of an empty one last is below first. */
int ct_op_step(const struct ct_process *p, const struct ct_op_row *op)
{
    const int at = (int)(op - p->ops);
    int low = 0, high = p->nsteps - 1;

    while (low < high) {
        const int middle = low + (high - low) / 2;

        if (p->steps[middle].last_op < at)
            low = middle + 1;
        else
            high = middle;
    }
    return p->nsteps && at >= p->steps[low].first_op &&
                   at <= p->steps[low].last_op && ct_op_graph(p, op) == CT_NONE
               ? low
               : CT_NONE;
}
