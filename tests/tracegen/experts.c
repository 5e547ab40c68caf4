/*
 * A layer whose experts lie on several ranks: how many tokens go where is told
 * by an all-gather, the tokens and their probabilities go there and back. As
 * routers do, it sends other numbers of tokens each time.
 */
#include "stage.h"

void stage_all_to_all(const struct stage *s, enum comm_kind comm, int type,
                      uint64_t (*count)(const struct stage *s, int from, int to,
                                        const void *context),
                      const void *context)
{
    const int n = stage_size(s, comm), me = stage_rank_in(s, comm);
    int i;

    program_group(s->p, 2 * n)->stream = stage_stream(s, comm);
    for (i = 0; i < n; i++) {
        program_message(s->p, SEND, comm, type, count(s, me, i, context), i);
        program_message(s->p, RECV, comm, type, count(s, i, me, context), i);
    }
}

struct routing {
    uint64_t key; /* of the layer and micro-batch */
    int micro_batch;
    bool back; /* from the experts to where the tokens came from */
    uint64_t width;
};

/* Half to one and a half times an equal part. */
static uint64_t routed(const struct stage *s, int from, int to,
                       const void *context)
{
    const struct routing *r = context;
    const uint64_t equal =
        stage_tokens(s, r->micro_batch) / (uint64_t)stage_size(s, COMM_EP);
    const uint64_t draw =
        mix(r->key, r->back ? (uint64_t)to << 32 | (unsigned)from
                            : (uint64_t)from << 32 | (unsigned)to);

    return (equal / 2 + draw % (equal + 1) + 1) * r->width;
}

static uint64_t key_of(const struct stage *s, int layer, int micro_batch)
{
    const int comm = s->layout->comm_of[s->rank][COMM_EP];
    uint64_t key = mix(s->options->seed, s->layout->comms[comm].uid);

    key = mix(key, (uint64_t)s->step << 1 | s->trains);
    return mix(key, (uint64_t)layer << 32 | (unsigned)micro_batch);
}

/* Tokens, and a number that goes with each. */
static void move_tokens(const struct stage *s, struct routing *r, bool back)
{
    r->back = back;
    r->width =
        stage_activation(s, r->micro_batch) / stage_tokens(s, r->micro_batch);
    stage_all_to_all(s, COMM_EP, CT_TYPE_BFLOAT16, routed, r);
}

static void move_probabilities(const struct stage *s, struct routing *r,
                               bool back)
{
    r->back = back;
    r->width = 1;
    stage_all_to_all(s, COMM_EP, CT_TYPE_FLOAT32, routed, r);
}

void stage_experts(const struct stage *s, int layer, int micro_batch, double us,
                   bool backward)
{
    struct routing r = {.key = key_of(s, layer, micro_batch),
                        .micro_batch = micro_batch};

    if (!backward)
        stage_collective(s, CT_OP_ALL_GATHER, COMM_EP, CT_TYPE_INT64,
                         8 * (uint64_t)stage_size(s, COMM_EP));
    move_tokens(s, &r, false);
    if (!backward)
        move_probabilities(s, &r, false);
    program_compute(s->p, us);
    move_tokens(s, &r, true);
    if (backward)
        move_probabilities(s, &r, true);
}
