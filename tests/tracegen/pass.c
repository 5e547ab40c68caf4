#include "stage.h"

static uint64_t shard_of(const struct stage *s, int micro_batch)
{
    return stage_activation(s, micro_batch) / (uint64_t)s->options->degree[TP];
}

static void gather_sequence(const struct stage *s, int micro_batch)
{
    if (stage_size(s, COMM_TP) > 1 && s->job->sequence)
        stage_collective(s, CT_OP_ALL_GATHER, COMM_TP, CT_TYPE_BFLOAT16,
                         shard_of(s, micro_batch));
}

/* What every rank has of the sum, or its part of the sequence. */
static void reduce_tensor(const struct stage *s, int micro_batch)
{
    if (stage_size(s, COMM_TP) == 1)
        return;
    if (s->job->sequence)
        stage_collective(s, CT_OP_REDUCE_SCATTER, COMM_TP, CT_TYPE_BFLOAT16,
                         shard_of(s, micro_batch));
    else
        stage_collective(s, CT_OP_ALL_REDUCE, COMM_TP, CT_TYPE_BFLOAT16,
                         stage_activation(s, micro_batch));
}

/* The backward pass gathers the input again, for the gradient of the weights
 * (Megatron-LM's LinearWithGradAccumulationAndAsyncCommunication). */
static void half_layer(const struct stage *s, int micro_batch, double us,
                       bool backward, bool attention)
{
    gather_sequence(s, micro_batch);
    if (backward && s->job->sequence) {
        program_compute(s->p, us / 4);
        us -= us / 4;
        gather_sequence(s, micro_batch);
    }
    if (attention)
        stage_attention(s, micro_batch, us, backward);
    else
        program_compute(s->p, us);
    reduce_tensor(s, micro_batch);
}

static bool has_experts(const struct stage *s, int layer)
{
    const int every = s->job->moe_every;

    return stage_size(s, COMM_EP) > 1 && layer % every == every - 1;
}

static void layer_pass(const struct stage *s, int layer, int micro_batch,
                       double factor, bool backward)
{
    const double us =
        factor * s->options->compute_us * stage_work(s, micro_batch);
    int half, attention;

    for (half = 0; half < 2; half++) {
        attention = backward ? half : !half;
        if (!attention && has_experts(s, layer))
            stage_experts(s, layer, micro_batch, us, backward);
        else
            half_layer(s, micro_batch, us, backward, attention);
    }
}

/* Each rank has a part of the logits. */
static void loss(const struct stage *s, int micro_batch)
{
    const uint64_t n = stage_tokens(s, micro_batch);

    stage_collective(s, CT_OP_ALL_REDUCE, COMM_TP, CT_TYPE_FLOAT32, n)->redop =
        CT_REDOP_MAX;
    stage_collective(s, CT_OP_ALL_REDUCE, COMM_TP, CT_TYPE_FLOAT32, n);
    stage_collective(s, CT_OP_ALL_REDUCE, COMM_TP, CT_TYPE_FLOAT32, n);
}

/* Tokens and their positions; what they should have been and where. */
static void broadcast_batch(const struct stage *s, int chunk, int micro_batch)
{
    const uint64_t n = stage_tokens(s, micro_batch);

    if (!s->job->batch || stage_size(s, COMM_TP) == 1)
        return;
    if (stage_is_first(s, chunk)) {
        stage_collective(s, CT_OP_BROADCAST, COMM_TP, CT_TYPE_INT64, n);
        stage_collective(s, CT_OP_BROADCAST, COMM_TP, CT_TYPE_INT64, n);
    }
    if (stage_is_last(s, chunk)) {
        stage_collective(s, CT_OP_BROADCAST, COMM_TP, CT_TYPE_INT64, n);
        stage_collective(s, CT_OP_BROADCAST, COMM_TP, CT_TYPE_FLOAT32, n);
    }
}

void stage_forward(const struct stage *s, int chunk, int micro_batch)
{
    const bool vocabulary = s->job->vocabulary && stage_size(s, COMM_TP) > 1;
    int layer;

    broadcast_batch(s, chunk, micro_batch);
    if (vocabulary && stage_is_first(s, chunk))
        reduce_tensor(s, micro_batch);
    for (layer = 0; layer < s->layers; layer++) {
        gradients_before_layer(s, chunk, layer, micro_batch, false);
        layer_pass(s, layer, micro_batch, 1, false);
    }
    if (vocabulary && stage_is_last(s, chunk))
        loss(s, micro_batch);
}

static void weights(const struct stage *s, int micro_batch)
{
    int i;

    for (i = 0; i < 2 * s->layers; i++)
        program_compute(s->p,
                        s->options->compute_us * stage_work(s, micro_batch));
}

void stage_backward(const struct stage *s, int chunk, int micro_batch,
                    enum backward part)
{
    int layer;

    if (part == BACKWARD_WEIGHTS)
        weights(s, micro_batch);
    for (layer = s->layers - 1; layer >= 0; layer--) {
        if (part != BACKWARD_WEIGHTS) {
            gradients_before_layer(s, chunk, layer, micro_batch, true);
            if (s->job->recompute)
                layer_pass(s, layer, micro_batch, 1, false);
            layer_pass(s, layer, micro_batch, part == BACKWARD_INPUTS ? 1 : 2,
                       true);
        }
        if (part != BACKWARD_INPUTS)
            gradients_after_layer(s, chunk, layer, micro_batch);
    }
}
