/* Steps from the anchors of each process, and what all processes agree on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/parallel.h"
#include "trace/select.h"
#include "trace/stages.h"
#include "trace/steps.h"

/* Processes that must agree on the number of steps for the job to have any;
 * the rest (helpers, ranks that died early) then has none. */
#define AGREEING_SHARE 0.8

/* Below it, there are none. */
#define LEAST_CONFIDENCE 0.6
#define FORWARDS_SHARE 0.9
#define MANY_STEPS 5   /* each less makes them less likely */
#define FEW_STEPS 4    /* fewer may be a chance */
#define UNCERTAIN 0.75 /* at most, where some may begin or end elsewhere */

/* A first step that takes so much longer than the usual one warms up. */
#define SLOW 1.5
#define MOST_WARM_UPS 5

const char *const ct_step_kinds[] = {[CT_STEP_STEADY] = "steady",
                                     [CT_STEP_WARM_UP] = "warm-up",
                                     [CT_STEP_EVALUATION] = "evaluation",
                                     [CT_STEP_CHECKPOINT] = "checkpoint",
                                     [CT_STEP_FORWARD] = "forward",
                                     [CT_STEP_OTHER] = "other",
                                     [CT_STEP_CUT] = "cut"};

/* What one process says. */
struct found {
    bool any, trains;
    bool unnamed; /* a call is lost that nothing is known of */
    double confidence;
    const char *doubt;
    struct ct_micro micro;
};

struct cutting {
    struct ct_trace *trace;
    struct ct_job *job;
    struct found *found; /* per process of the job */
    int expected;        /* steps to look for; 0: any */
    bool uncertain;      /* processes were sure of different ones */
    enum ct_step_kind kind;
};

static struct ct_process *process_at(const struct cutting *c, int i)
{
    return &c->trace->processes[c->job->processes[i]];
}

static void look_at_end(const struct ct_stream *stream,
                        const struct ct_anchor *anchor, struct found *found)
{
    const char *doubt;
    const double ends = ct_stream_ends(stream, anchor, &doubt);

    if (ends < found->confidence) {
        found->confidence = ends;
        found->doubt = doubt;
    }
}

static void cut_process(void *context, int i)
{
    struct cutting *c = context;
    struct found *found = &c->found[i];
    struct ct_stream stream;
    struct ct_period period;

    *found = (struct found){.micro = {.n = CT_NONE, .ns = CT_NO_TIME}};
    ct_stream_init(&stream, process_at(c, i), c->job,
                   c->kind != CT_STEP_FORWARD);
    /* Untimed processes have no start anywhere; mixed ones are asked again. */
    stream.on_gpu = true;
    if (ct_stream_anchor(&stream, c->expected, &period) &&
        (c->kind != CT_STEP_FORWARD ||
         ct_stream_forwards(&stream, &period.anchor))) {
        found->any = true;
        found->confidence = period.confidence;
        found->doubt = period.doubt;
        found->unnamed = stream.unnamed;
        if (c->kind != CT_STEP_FORWARD)
            look_at_end(&stream, &period.anchor, found);
        found->trains = ct_stream_trains(&stream, &period.anchor);
        ct_stream_cut(&stream, &period.anchor, c->kind);
        found->micro = ct_stream_micro(&stream, &period.anchor);
    }
    ct_stream_release(&stream);
}

static void forget_steps(struct ct_process *p)
{
    free(p->steps);
    p->steps = NULL;
    p->nsteps = 0;
}

static void forget_all(const struct cutting *c)
{
    int i;

    for (i = 0; i < c->job->nprocesses; i++)
        forget_steps(process_at(c, i));
}

static int steady_steps(const struct ct_process *p)
{
    return ct_count_steps(p, CT_STEP_STEADY);
}

struct vote {
    int steps;
    double weight;
};

static int by_steps(const void *left, const void *right)
{
    const struct vote *a = left, *b = right;

    return (a->steps > b->steps) - (a->steps < b->steps);
}

/* The number of steps that most processes with calls have, 0 among them; who
 * is sure of it counts more. */
static int most_common(const struct cutting *c, int *active_p)
{
    int n = c->job->nprocesses, i, k = 0, value = 0;
    struct vote *votes = ct_alloc((size_t)n, sizeof(*votes));
    double run = 0, best = 0;

    for (i = 0; i < n; i++) {
        const struct found *f = &c->found[i];

        if (process_at(c, i)->nops)
            votes[k++] = (struct vote){steady_steps(process_at(c, i)),
                                       f->any ? f->confidence : .5};
    }
    qsort(votes, (size_t)k, sizeof(*votes), by_steps);
    for (i = 0; i < k; i++) {
        run = i && votes[i].steps == votes[i - 1].steps ? run + votes[i].weight
                                                        : votes[i].weight;
        if (run >= best) {
            best = run;
            value = votes[i].steps;
        }
    }
    *active_p = k;
    free(votes);
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

/* Whether too many that found a period by themselves found another. */
static bool disagree(const struct cutting *c, int expected)
{
    double all = 0, agreeing = 0;
    int i;

    for (i = 0; i < c->job->nprocesses; i++) {
        const struct found *f = &c->found[i];

        if (!f->any)
            continue;
        all += f->confidence;
        agreeing += agrees(process_at(c, i), expected) ? f->confidence : 0;
    }
    return agreeing < AGREEING_SHARE * all;
}

/* Processes that found another period look for the common one. */
static void search_again(struct cutting *c, int expected)
{
    int i;

    c->expected = expected;
    for (i = 0; i < c->job->nprocesses; i++) {
        struct ct_process *p = process_at(c, i);

        if (p->nops && !agrees(p, expected)) {
            forget_steps(p);
            cut_process(c, i);
        }
    }
}

static void no_steps(const struct cutting *c, const char *why)
{
    forget_all(c);
    c->job->nsteps = 0;
    c->job->no_steps = ct_arena_text(c->trace->arena, why, strlen(why));
}

static bool any_trains(const struct cutting *c)
{
    int i;

    for (i = 0; i < c->job->nprocesses; i++)
        if (c->found[i].trains)
            return true;
    return false;
}

static bool any_unnamed(const struct cutting *c)
{
    int i;

    for (i = 0; i < c->job->nprocesses; i++)
        if (c->found[i].unnamed && process_at(c, i)->nsteps)
            return true;
    return false;
}

/* Sets the number of steps, where enough processes have them. */
static bool agree(struct cutting *c)
{
    int active, agreeing = 0, i, fewest = INT32_MAX;
    int expected = most_common(c, &active);
    char why[160];

    if (!expected) {
        no_steps(c, CT_NO_PERIOD);
        return false;
    }
    c->uncertain = disagree(c, expected);
    search_again(c, expected);
    for (i = 0; i < c->job->nprocesses; i++) {
        struct ct_process *p = process_at(c, i);
        int n = steady_steps(p);

        if (agrees(p, expected)) {
            agreeing++;
            fewest = n < fewest ? n : fewest;
        } else {
            forget_steps(p);
        }
    }
    if (!agreeing || agreeing < AGREEING_SHARE * active) {
        snprintf(why, sizeof(why),
                 "%d of %d processes have about %d periods of equal calls, the "
                 "others not",
                 agreeing, active, expected);
        no_steps(c, why);
        return false;
    }
    c->job->nsteps = fewest;
    c->job->step_confidence = (double)agreeing / active;
    return true;
}

/* Of the processes that are in: how sure they are, and the doubt of one that
 * is not. */
static double confidence_of(const struct cutting *c, const char **doubt_p)
{
    double sum = 0;
    int i, n = 0;

    *doubt_p = NULL;
    for (i = 0; i < c->job->nprocesses; i++) {
        if (!process_at(c, i)->nsteps)
            continue;
        sum += c->found[i].confidence;
        n++;
        if (c->found[i].doubt)
            *doubt_p = c->found[i].doubt;
    }
    return n ? sum / n : 0;
}

static int64_t median_duration(const struct cutting *c, enum ct_step_kind kind,
                               int number)
{
    int64_t *durations = NULL, middle = CT_NO_TIME;
    int i, k, n = 0, capacity = 0;

    for (i = 0; i < c->job->nprocesses; i++) {
        const struct ct_process *p = process_at(c, i);

        for (k = 0; k < p->nsteps; k++) {
            if (p->steps[k].kind != kind ||
                (number != CT_NONE && p->steps[k].number != number))
                continue;
            durations = ct_grow(durations, &capacity, n, sizeof(*durations));
            durations[n++] = p->steps[k].end_ns - p->steps[k].start_ns;
            if (number != CT_NONE)
                break;
        }
    }
    if (n)
        middle = ct_nth(durations, n, n / 2);
    free(durations);
    return middle;
}

static void warm_up(const struct cutting *c, int number)
{
    int i, k;

    for (i = 0; i < c->job->nprocesses; i++) {
        struct ct_process *p = process_at(c, i);

        for (k = 0; k < p->nsteps && p->steps[k].number <= number; k++)
            if (p->steps[k].number == number)
                p->steps[k].kind = CT_STEP_WARM_UP;
    }
}

static void count_steps(const struct cutting *c)
{
    int i, fewest = INT32_MAX;

    for (i = 0; i < c->job->nprocesses; i++) {
        const int n = steady_steps(process_at(c, i));

        if (n && n < fewest)
            fewest = n;
    }
    c->job->nsteps = fewest == INT32_MAX ? 0 : fewest;
}

static bool is_slow(const struct cutting *c, int number, int64_t usual)
{
    const int64_t ns = median_duration(c, CT_STEP_STEADY, number);

    return ns != CT_NO_TIME && (double)ns > SLOW * (double)usual;
}

/* The first steps that are slow; the very first may have begun before its first
 * call. */
static void find_warm_ups(const struct cutting *c)
{
    const int64_t usual = median_duration(c, CT_STEP_STEADY, CT_NONE);
    int number = MOST_WARM_UPS;

    while (number >= 0 && !(is_slow(c, number, usual) &&
                            (number < 2 || is_slow(c, number - 1, usual))))
        number--;
    for (; number >= 0 && 2 * (number + 1) < c->job->nsteps; number--)
        warm_up(c, number);
    count_steps(c);
}

/* Ranks that see no micro-batches do not count; stages of an interleaved
 * pipeline see each several times, not all as often. */
static void find_micro_batches(const struct cutting *c)
{
    struct ct_job *job = c->job;
    int64_t *ns = ct_alloc((size_t)job->nprocesses, sizeof(*ns));
    int i, n = 0, pipeline = 0, row = CT_NONE;

    for (i = 0; i < job->nprocesses; i++) {
        const struct ct_micro *micro = &c->found[i].micro;

        if (!process_at(c, i)->nsteps || micro->n <= 0)
            continue;
        if (micro->pipeline)
            pipeline = ct_divisor(pipeline, micro->n);
        else if (row == CT_NONE || micro->n < row)
            row = micro->n;
        if (micro->ns != CT_NO_TIME)
            ns[n++] = micro->ns;
    }
    job->step_micro_batches = pipeline ? pipeline : row;
    if (n)
        job->micro_batch_ns = ct_nth(ns, n, n / 2);
    free(ns);
}

/* Keeps the reason that lowers it most. */
static void lower(struct ct_job *job, double most, const char *why)
{
    if (job->step_confidence <= most)
        return;
    job->step_confidence = most;
    job->step_doubt = why;
}

static void find_confidence(struct cutting *c)
{
    struct ct_job *job = c->job;
    bool certain;

    job->step_confidence *= confidence_of(c, &job->step_doubt);
    job->step_confidence *= ct_steps_number(c->trace, job, &certain);
    if (job->step_confidence < CT_LIKELY && !job->step_doubt)
        job->step_doubt = "not all processes have them alike";
    if (!certain)
        lower(job, UNCERTAIN,
              "ranks do not tell alike where some begin or end");
    if (c->uncertain)
        lower(job, UNCERTAIN, "ranks by themselves found others");
    if (any_unnamed(c))
        lower(job, UNCERTAIN, "records are lost that nothing is known of");
    if (job->nsteps < FEW_STEPS)
        lower(job, UNCERTAIN, "they are few");
    if (job->nsteps < MANY_STEPS)
        job->step_confidence *= 1 - .05 * (MANY_STEPS - job->nsteps);
}

static void find_steps(struct cutting *c)
{
    struct ct_job *job = c->job;
    char why[160];

    if (!agree(c))
        return;
    if (!any_trains(c)) {
        no_steps(c, "no gradients, norm or loss is summed");
        job->step_confidence = 0;
        return;
    }
    find_confidence(c);
    if (job->step_confidence < LEAST_CONFIDENCE) {
        snprintf(why, sizeof(why), "%d periods of equal calls, but %s",
                 job->nsteps, job->step_doubt);
        no_steps(c, why);
        return;
    }
    find_warm_ups(c);
    if (!c->uncertain)
        find_micro_batches(c);
}

/* Share of the calls since the first forward pass that is in any. */
static double covered_by_forwards(const struct cutting *c)
{
    int64_t inside = 0, all = 0;
    int i, k;

    for (i = 0; i < c->job->nprocesses; i++) {
        const struct ct_process *p = process_at(c, i);

        if (!p->nsteps)
            continue;
        all += p->nops - p->steps[0].first_op;
        for (k = 0; k < p->nsteps; k++)
            if (p->steps[k].kind == CT_STEP_FORWARD)
                inside += p->steps[k].last_op + 1 - p->steps[k].first_op;
    }
    return all ? (double)inside / (double)all : 0;
}

/* Forward passes of what does nothing else. */
static void find_forwards(struct cutting *c)
{
    int i, n = 0;

    c->kind = CT_STEP_FORWARD;
    c->expected = 0;
    ct_parallel_for(c->job->nprocesses, cut_process, c);
    if (any_trains(c) || covered_by_forwards(c) < FORWARDS_SHARE) {
        forget_all(c);
        return;
    }
    for (i = 0; i < c->job->nprocesses; i++) {
        const int passes = ct_count_steps(process_at(c, i), CT_STEP_FORWARD);

        n = passes > n ? passes : n;
    }
    c->job->nforwards = n;
    c->job->forward_ns = median_duration(c, CT_STEP_FORWARD, CT_NONE);
}

void ct_trace_steps(struct ct_trace *trace, struct ct_job *job)
{
    struct cutting c = {
        .trace = trace,
        .job = job,
        .found = ct_alloc((size_t)job->nprocesses, sizeof(*c.found))};
    int i;

    job->step_micro_batches = CT_NONE;
    job->micro_batch_ns = job->forward_ns = CT_NO_TIME;
    ct_parallel_for(job->nprocesses, cut_process, &c);
    find_steps(&c);
    job->step_ns = median_duration(&c, CT_STEP_STEADY, CT_NONE);
    if (!job->nsteps)
        find_forwards(&c);
    free(c.found);
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
