/*
 * Inference as vLLM does it: forward passes over a batch that changes, of
 * requests that are read (long) or answered (one token each). Pipelines have
 * several batches under way.
 */
#include "stage.h"

#define READ_EVERY 12
#define MOST_REQUESTS 64
#define VOCABULARY 32000

struct batch {
    bool reads;
    uint64_t requests, tokens;
};

static struct batch batch_of(const struct stage *s)
{
    const uint64_t seed = mix(s->options->seed, 77);
    /* Requests come and go slowly. */
    const uint64_t now = mix(seed, (uint64_t)s->step / 16);
    struct batch b = {.reads = mix(seed, (uint64_t)s->step) % READ_EVERY == 0,
                      .requests = 1 + now % MOST_REQUESTS};

    b.tokens =
        b.reads ? 128 + mix(seed + 1, (uint64_t)s->step) % 2048 : b.requests;
    return b;
}

static uint64_t elements(const struct stage *s, const struct batch *b)
{
    return b->tokens * (stage_activation(s, 0) / stage_tokens(s, 0));
}

static void compute(const struct stage *s, const struct batch *b)
{
    program_compute(s->p,
                    s->options->compute_us * (.05 + (double)b->tokens / 2048));
}

static void reduce(const struct stage *s, const struct batch *b)
{
    if (stage_size(s, COMM_TP) > 1)
        stage_collective(s, CT_OP_ALL_REDUCE, COMM_TP, CT_TYPE_BFLOAT16,
                         elements(s, b));
}

/* Hidden states and the residual beside them. */
static void hand_on(const struct stage *s, const struct batch *b,
                    enum call call, int peer)
{
    int i;

    program_group(s->p, 2)->stream = stage_stream(s, COMM_PP);
    for (i = 0; i < 2; i++)
        program_message(s->p, call, COMM_PP, CT_TYPE_BFLOAT16, elements(s, b),
                        peer);
}

void program_forward(struct program *p, const struct layout *layout, int rank,
                     int number)
{
    struct stage s = stage_of(p, layout, rank, number);
    const struct batch b = batch_of(&s);
    int i;

    s.micro_batches = (int)b.tokens;
    stage_begin(&s, SEGMENT_FORWARD);
    if (s.place)
        hand_on(&s, &b, RECV, s.place - 1);
    else
        reduce(&s, &b); /* of the embedding */
    for (i = 0; i < 2 * s.layers; i++) {
        compute(&s, &b);
        reduce(&s, &b);
    }
    if (s.place + 1 < s.degree)
        hand_on(&s, &b, SEND, s.place + 1);
    else if (stage_size(&s, COMM_TP) > 1)
        stage_collective(&s, CT_OP_ALL_GATHER, COMM_TP, CT_TYPE_BFLOAT16,
                         b.requests * VOCABULARY /
                             (uint64_t)stage_size(&s, COMM_TP));
    stage_end(&s);
    program_compute(p, s.options->compute_us / 4);
}
