/*
 * What keeps the copies of the parameters alike: all-reduces of gradients
 * (DDP), reduce-scatters of them and all-gathers of parameters (ZeRO 1, 2), or
 * both around every layer (FSDP, HSDP).
 */
#include "stage.h"

#define IN_TURN 16

static bool is_fsdp(const struct stage *s)
{
    return s->job->zero == 3;
}

static enum comm_kind sharers(const struct stage *s)
{
    return stage_size(s, COMM_SHARD) > 1 ? COMM_SHARD : COMM_DP;
}

static enum comm_kind gatherers(const struct stage *s)
{
    return s->job->twin ? COMM_GATHER : sharers(s);
}

static uint64_t part(uint64_t count, int n)
{
    return (count + (uint64_t)n - 1) / (uint64_t)n;
}

static struct instruction *beside(struct instruction *in, int stream, int event)
{
    in->stream = stream;
    in->async = true;
    in->event = event;
    return in;
}

static uint64_t bucket_elements(const struct stage *s, int bucket)
{
    const struct options *o = s->options;
    const uint64_t n = s->job->buckets.n ? s->job->buckets.values[bucket]
                       : bucket + 1 < o->buckets ? o->bucket / 4
                                                 : o->bucket / 10;

    /* DDP makes its buckets anew when it has seen one step. */
    return s->job->warm_up && s->step == 0 ? n - n / 8 : n;
}

static void reduce_bucket(const struct stage *s, int bucket)
{
    const uint64_t n = bucket_elements(s, bucket);
    struct instruction *in =
        s->job->zero
            ? stage_collective(s, CT_OP_REDUCE_SCATTER, COMM_DP,
                               CT_TYPE_FLOAT32, part(n, stage_size(s, COMM_DP)))
            : stage_collective(s, CT_OP_ALL_REDUCE, COMM_DP, CT_TYPE_FLOAT32,
                               n);

    if (s->job->overlap)
        beside(in, GRADIENT_STREAM, GRADIENT_EVENT);
}

static bool has_buckets(const struct stage *s)
{
    return !is_fsdp(s) && stage_size(s, COMM_DP) > 1;
}

/* The first of a chunk's buckets that layer's gradients, or later layers',
 * do not go into: buckets fill from the last layer on. */
static int buckets_after(const struct stage *s, int layer)
{
    return s->options->buckets * (s->layers - layer) / s->layers;
}

static void reduce_ready(const struct stage *s, int layer)
{
    int i;

    for (i = buckets_after(s, layer + 1); i < buckets_after(s, layer); i++)
        reduce_bucket(s, i);
}

static int parameter_event(const struct stage *s, int chunk, int bucket)
{
    return PARAMETER_EVENTS +
           (chunk * s->options->buckets + bucket) % (EVENTS - PARAMETER_EVENTS);
}

static void gather_bucket(const struct stage *s, int chunk, int bucket)
{
    struct instruction *in = stage_collective(
        s, CT_OP_ALL_GATHER, gatherers(s), CT_TYPE_BFLOAT16,
        part(bucket_elements(s, bucket), stage_size(s, COMM_DP)));

    if (s->job->gather_ahead)
        beside(in, GATHER_STREAM, parameter_event(s, chunk, bucket));
}

/* Buckets of all chunks, which follow: one launch. */
static void coalesce(const struct stage *s)
{
    const int n = s->job->chunks * s->options->buckets;

    if (s->job->coalesce && n)
        program_group(s->p, n)->stream = stage_stream(s, COMM_DP);
}

static void gather_buckets(const struct stage *s)
{
    int chunk, i;

    if (!s->job->gather_ahead)
        coalesce(s);
    for (chunk = 0; chunk < s->job->chunks; chunk++)
        for (i = 0; i < s->options->buckets; i++)
            gather_bucket(s, chunk, i);
}

/* Parameters that the layer needs, gathered in the order of the layers. */
static void wait_for_parameters(const struct stage *s, int chunk, int layer)
{
    const int n = s->options->buckets;
    int i = n * layer / s->layers, end = n * (layer + 1) / s->layers;

    do {
        program_wait(s->p, parameter_event(s, chunk, i++));
    } while (i < end);
}

void gradients_before_step(const struct stage *s)
{
    const struct counts *buffers = &s->job->buffers;
    int i;

    for (i = 0; i < buffers->n && stage_size(s, COMM_DP) > 1; i++)
        stage_collective(s, CT_OP_BROADCAST, COMM_DP,
                         i && i + 1 == buffers->n ? CT_TYPE_INT64
                                                  : CT_TYPE_FLOAT32,
                         buffers->values[i])
            ->peer = 0;
    if (has_buckets(s) && s->job->zero && s->job->gather_ahead)
        gather_buckets(s);
}

/* A layer's parameters; the first chunk also has the embedding's, as unit -1.
 */
static int unit_event(const struct stage *s, int first, int chunk, int layer)
{
    return first + (chunk * s->layers + layer + IN_TURN) % IN_TURN;
}

static uint64_t unit_elements(const struct stage *s, int layer)
{
    const uint64_t n = s->options->bucket / 2;

    return part(layer < 0 ? n + n / 3 : n, stage_size(s, sharers(s)));
}

static void gather_unit(const struct stage *s, int chunk, int layer)
{
    beside(stage_collective(s, CT_OP_ALL_GATHER, gatherers(s), CT_TYPE_BFLOAT16,
                            unit_elements(s, layer)),
           GATHER_STREAM, unit_event(s, UNIT_EVENTS, chunk, layer));
}

static void scatter_unit(const struct stage *s, int chunk, int layer)
{
    const int event = unit_event(s, SCATTER_EVENTS, chunk, layer);

    beside(stage_collective(s, CT_OP_REDUCE_SCATTER, sharers(s),
                            CT_TYPE_FLOAT32, unit_elements(s, layer)),
           GRADIENT_STREAM, event);
    if (stage_size(s, COMM_REPLICAS) > 1)
        beside(stage_collective(s, CT_OP_ALL_REDUCE, COMM_REPLICAS,
                                CT_TYPE_FLOAT32, unit_elements(s, layer)),
               REPLICA_STREAM, REPLICA_EVENT)
            ->after = event;
}

/* Each unit is gathered while the one before it computes. */
static void gather_units(const struct stage *s, int chunk, int layer,
                         bool backward)
{
    const int next = backward ? layer - 1 : layer + 1;
    const bool first = backward ? layer == s->layers - 1 : layer == 0;

    if (first && !backward && chunk == 0) {
        gather_unit(s, 0, -1);
        program_wait(s->p, unit_event(s, UNIT_EVENTS, 0, -1));
    }
    if (first)
        gather_unit(s, chunk, layer);
    if (next >= 0 && next < s->layers)
        gather_unit(s, chunk, next);
    program_wait(s->p, unit_event(s, UNIT_EVENTS, chunk, layer));
}

void gradients_before_layer(const struct stage *s, int chunk, int layer,
                            int micro_batch, bool backward)
{
    if (is_fsdp(s) && stage_size(s, sharers(s)) > 1)
        gather_units(s, chunk, layer, backward);
    else if (has_buckets(s) && s->job->gather_ahead && s->job->zero &&
             s->trains && !backward && micro_batch == 0)
        wait_for_parameters(s, chunk, layer);
}

void gradients_after_layer(const struct stage *s, int chunk, int layer,
                           int micro_batch)
{
    const bool last = micro_batch == s->micro_batches - 1;

    if (is_fsdp(s) && stage_size(s, sharers(s)) > 1) {
        scatter_unit(s, chunk, layer);
        if (layer == 0 && chunk == 0)
            scatter_unit(s, 0, -1);
    } else if (has_buckets(s) &&
               (s->job->zero == 2 || (s->job->overlap && last))) {
        reduce_ready(s, layer);
    }
}

/* Gradients that are the same on fewer ranks than the others. */
static void reduce_experts(const struct stage *s)
{
    const uint64_t n = s->options->bucket / 8 * (uint64_t)s->layers;

    if (stage_size(s, COMM_EP) > 1 && stage_size(s, COMM_EXPERT_DP) > 1)
        stage_collective(s, CT_OP_ALL_REDUCE, COMM_EXPERT_DP, CT_TYPE_FLOAT32,
                         n / (uint64_t)stage_size(s, COMM_EP));
}

static void reduce_embedding(const struct stage *s)
{
    if (stage_size(s, COMM_EMBEDDING) > 1)
        stage_collective(s, CT_OP_ALL_REDUCE, COMM_EMBEDDING, CT_TYPE_FLOAT32,
                         s->options->bucket / 3);
}

/* All that was issued beside the backward passes. */
static void wait_for_gradients(const struct stage *s)
{
    if (has_buckets(s) && s->job->overlap && s->options->buckets)
        program_wait(s->p, GRADIENT_EVENT);
    if (is_fsdp(s) && stage_size(s, sharers(s)) > 1)
        program_wait(s->p, unit_event(s, SCATTER_EVENTS, 0, -1));
    if (stage_size(s, COMM_REPLICAS) > 1)
        program_wait(s->p, REPLICA_EVENT);
}

static void reduce_late(const struct stage *s)
{
    int chunk, i;

    if (!has_buckets(s) || s->job->overlap || s->job->zero == 2)
        return;
    coalesce(s);
    for (chunk = 0; chunk < s->job->chunks; chunk++)
        for (i = 0; i < s->options->buckets; i++)
            reduce_bucket(s, i);
}

/* Norm of the gradients, overflow, number of tokens, ... */
static void reduce_scalars(const struct stage *s)
{
    const enum comm_kind comm =
        s->job->norm_model && stage_size(s, COMM_MODEL) > 1 ? COMM_MODEL
                                                            : COMM_WORLD;
    int i;

    for (i = 0; i < s->job->scalars; i++)
        program_collective(s->p, CT_OP_ALL_REDUCE, comm, CT_TYPE_FLOAT32, 1)
            ->redop = i == 1 ? CT_REDOP_MAX : CT_REDOP_SUM;
}

void gradients_after_step(const struct stage *s)
{
    wait_for_gradients(s);
    reduce_late(s);
    reduce_experts(s);
    reduce_embedding(s);
    reduce_scalars(s);
    if (has_buckets(s) && s->job->zero && !s->job->gather_ahead)
        gather_buckets(s);
}
