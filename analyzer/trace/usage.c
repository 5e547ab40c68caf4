/* What instances add up to: counts, sums, samples. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/graphs.h"
#include "trace/select.h"
#include "trace/stages.h"

/* The first calls of a size pay for connections and caches: left out where
 * enough remain (research/model.md 3, algorithm FIT, step 1). */
#define WARM_UP_SAMPLES 5
#define ENOUGH_SAMPLES 15

static bool is_sample(const struct ct_instance *i)
{
    return i->transfer_ns != CT_NO_TIME && !i->grouped && !i->bound &&
           !i->overlapped && !i->skewed && !i->estimated && !i->mismatch;
}

static void add_instances(struct ct_job *job)
{
    int i;

    for (i = 0; i < job->ninstances; i++) {
        const struct ct_instance *instance = &job->instances[i];
        struct ct_usage *usage = &job->usages[instance->usage];

        usage->calls = ct_add_time(usage->calls, instance->runs);
        if (instance->transfer_ns == CT_NO_TIME)
            continue;
        usage->transfer_ns =
            ct_add_time(usage->transfer_ns, instance->transfer_ns);
        usage->wait_ns = ct_add_wait(usage->wait_ns,
                                     instance->wait_sum_ns / instance->timed);
        usage->timed++;
        usage->apart += instance->skewed;
        usage->nsamples += is_sample(instance);
    }
}

/* Samples of all usages in one array, each usage's in time order, which is the
 * order of instances within one. */
static void gather_samples(struct ct_trace *trace, struct ct_job *job)
{
    int64_t *samples, total = 0;
    int i;

    for (i = 0; i < job->nusages; i++)
        total += job->usages[i].nsamples;
    samples = ct_arena_alloc(trace->arena, (size_t)total, sizeof(*samples));
    for (i = 0; i < job->nusages; i++) {
        job->usages[i].samples = samples;
        samples += job->usages[i].nsamples;
        job->usages[i].nsamples = 0;
    }
    for (i = 0; i < job->ninstances; i++) {
        const struct ct_instance *instance = &job->instances[i];
        struct ct_usage *usage = &job->usages[instance->usage];

        if (is_sample(instance))
            usage->samples[usage->nsamples++] = instance->transfer_ns;
    }
    for (i = 0; i < job->nusages; i++) {
        struct ct_usage *usage = &job->usages[i];

        if (usage->nsamples >= ENOUGH_SAMPLES) {
            usage->samples += WARM_UP_SAMPLES;
            usage->nsamples -= WARM_UP_SAMPLES;
        }
    }
}

/* How good a transfer is where there are no samples: whole ones, grouped or
 * estimated as they may be, before bounds. */
static bool is_whole(const struct ct_instance *i)
{
    return !i->bound && !i->overlapped && !i->mismatch;
}

static bool counts(const struct ct_job *job, const bool *has_whole, int i)
{
    const struct ct_instance *instance = &job->instances[i];

    return !job->usages[instance->usage].nsamples &&
           instance->transfer_ns != CT_NO_TIME && !instance->overlapped &&
           (is_whole(instance) || !has_whole[instance->usage]);
}

static bool *find_whole(const struct ct_job *job)
{
    bool *has_whole = ct_alloc((size_t)job->nusages, sizeof(*has_whole));
    int i;

    for (i = 0; i < job->ninstances; i++)
        if (job->instances[i].transfer_ns != CT_NO_TIME &&
            is_whole(&job->instances[i]))
            has_whole[job->instances[i].usage] = true;
    return has_whole;
}

/* Medians of the usages that have no samples, of what transfers are known. */
static void median_of_rest(struct ct_job *job, int64_t *work)
{
    int64_t *begins = ct_alloc((size_t)job->nusages + 1, sizeof(*begins));
    bool *has_whole = find_whole(job);
    int i;

    for (i = 0; i < job->ninstances; i++)
        if (counts(job, has_whole, i))
            begins[job->instances[i].usage + 1]++;
    for (i = 0; i < job->nusages; i++)
        begins[i + 1] += begins[i];
    for (i = 0; i < job->ninstances; i++)
        if (counts(job, has_whole, i))
            work[begins[job->instances[i].usage]++] =
                job->instances[i].transfer_ns;
    /* begins[u] is now where usage u ends. */
    for (i = 0; i < job->nusages; i++) {
        int64_t begin = i ? begins[i - 1] : 0, n = begins[i] - begin;

        if (n)
            job->usages[i].median_ns = ct_nth(work + begin, n, n / 2);
    }
    free(has_whole);
    free(begins);
}

static void set_medians(struct ct_job *job)
{
    int64_t *work = ct_alloc((size_t)job->ninstances, sizeof(*work));
    int i;

    for (i = 0; i < job->nusages; i++) {
        struct ct_usage *usage = &job->usages[i];

        usage->median_ns = CT_NO_TIME;
        if (!usage->nsamples)
            continue;
        memcpy(work, usage->samples, (size_t)usage->nsamples * sizeof(*work));
        usage->median_ns = ct_nth(work, usage->nsamples, usage->nsamples / 2);
    }
    median_of_rest(job, work);
    free(work);
}

/* Per usage, over all ranks that took part. */
struct place {
    double records; /* in steady steps */
    int64_t placed; /* of them not by graphs, whose place is not known */
    int64_t steps;  /* steady steps of those ranks */
    double sum;     /* of places in the step */
};

static void add_place(struct place *place, const struct ct_step_row *step,
                      int op)
{
    int length = step->last_op - step->first_op;

    place->records++;
    place->placed++;
    if (length)
        place->sum += (double)(op - step->first_op) / length;
}

static void take_part(struct place *place, int *seen, int mark, int steady)
{
    if (*seen != mark)
        place->steps += steady;
    *seen = mark;
}

static void add_process(struct ct_job *job, const struct ct_process *p,
                        struct place *places, int *seen, int mark)
{
    const int steady = ct_count_steps(p, CT_STEP_STEADY);
    int s, o;

    for (s = 0; s < p->nsteps; s++) {
        if (p->steps[s].kind != CT_STEP_STEADY)
            continue;
        for (o = p->steps[s].first_op; o <= p->steps[s].last_op; o++) {
            int usage = job->instances[p->ops[o].instance].usage;

            if (ct_op_graph(p, &p->ops[o]) != CT_NONE)
                continue;
            take_part(&places[usage], &seen[usage], mark, steady);
            add_place(&places[usage], &p->steps[s], o);
        }
    }
    for (o = 0; o < p->nops && p->ngraphs; o++) {
        const int graph = ct_op_graph(p, &p->ops[o]);
        int usage = job->instances[p->ops[o].instance].usage;

        if (graph == CT_NONE || !p->graphs[graph].steady)
            continue;
        take_part(&places[usage], &seen[usage], mark, steady);
        places[usage].records += (double)p->graphs[graph].steady;
    }
}

static void set_places(struct ct_trace *trace, struct ct_job *job)
{
    struct place *places = ct_alloc((size_t)job->nusages, sizeof(*places));
    int *seen = ct_alloc((size_t)job->nusages, sizeof(*seen));
    int i;

    for (i = 0; i < job->nprocesses; i++)
        ct_graphs_count_steady(&trace->processes[job->processes[i]]);
    for (i = 0; i < job->nprocesses; i++)
        add_process(job, &trace->processes[job->processes[i]], places, seen,
                    i + 1);
    for (i = 0; i < job->nusages; i++) {
        struct ct_usage *usage = &job->usages[i];
        const struct place *place = &places[i];

        usage->per_step = usage->position = NAN;
        if (job->nsteps)
            usage->per_step =
                place->steps ? place->records / (double)place->steps : 0;
        if (place->placed)
            usage->position = place->sum / (double)place->placed;
    }
    free(seen);
    free(places);
}

static int64_t end_of(const struct ct_op_row *op)
{
    if (ct_op_start_ns(op) != CT_NO_TIME && ct_op_gpu_ns(op) != CT_NO_TIME)
        return ct_op_start_ns(op) + ct_op_gpu_ns(op);
    return op->enter_ns +
           (ct_op_host_ns(op) == CT_NO_TIME ? 0 : ct_op_host_ns(op));
}

static void reach(struct ct_job *job, const struct ct_process *p,
                  int64_t end_ns)
{
    if (end_ns - p->ops[0].enter_ns > job->span_ns)
        job->span_ns = end_ns - p->ops[0].enter_ns;
}

/* The last to end is not always the last of the calls: the GPU of a killed
 * process is known to have been busy longer than its host. */
static void set_span(struct ct_trace *trace, struct ct_job *job)
{
    int i, o;

    for (i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = &trace->processes[job->processes[i]];

        for (o = 0; o < p->nops; o++)
            reach(job, p, end_of(&p->ops[o]));
        for (o = 0; o < p->ngraph_launches && p->nops; o++)
            reach(job, p, p->graph_launches[o].enter_ns);
    }
}

void ct_trace_usage(struct ct_trace *trace, struct ct_job *job)
{
    add_instances(job);
    gather_samples(trace, job);
    set_medians(job);
    set_places(trace, job);
    set_span(trace, job);
}
