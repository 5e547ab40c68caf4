/* Attention over a sequence that lies on several ranks. */
#include "stage.h"

#define GROUPED_HEADS 4 /* keys and values are smaller than queries */

static uint64_t keys_and_values(const struct stage *s, int micro_batch)
{
    return 2 * stage_activation(s, micro_batch) / GROUPED_HEADS;
}

/* Keys and values go round, beside the computing on those that are here. */
static void ring(const struct stage *s, int micro_batch, double us,
                 bool backward)
{
    const int n = stage_size(s, COMM_CP), me = stage_rank_in(s, COMM_CP);
    const uint64_t count = keys_and_values(s, micro_batch);
    struct instruction *group;
    int i;

    for (i = 0; i < n; i++) {
        if (i + 1 < n) {
            group = program_group(s->p, 2);
            group->stream = CONTEXT_STREAM;
            group->async = true;
            group->event = CONTEXT_EVENT;
            program_message(s->p, SEND, COMM_CP, CT_TYPE_BFLOAT16,
                            count << backward, (me + 1) % n);
            program_message(s->p, RECV, COMM_CP, CT_TYPE_BFLOAT16,
                            count << backward, (me + n - 1) % n);
        }
        program_compute(s->p, us / n);
        if (i + 1 < n)
            program_wait(s->p, CONTEXT_EVENT);
    }
}

static uint64_t equal_parts(const struct stage *s, int from, int to,
                            const void *context)
{
    (void)s;
    (void)from;
    (void)to;
    return *(const uint64_t *)context;
}

static void all_to_all(const struct stage *s, uint64_t elements)
{
    const uint64_t count = elements / (uint64_t)stage_size(s, COMM_CP);

    if (s->job->native_alltoall)
        stage_collective(s, CT_OP_ALL_TO_ALL, COMM_CP, CT_TYPE_BFLOAT16, count);
    else
        stage_all_to_all(s, COMM_CP, CT_TYPE_BFLOAT16, equal_parts, &count);
}

/* Ulysses: heads for sequence, of queries, keys, values; and back. */
static void exchange_heads(const struct stage *s, int micro_batch, double us,
                           bool backward)
{
    const uint64_t n = stage_activation(s, micro_batch);
    int i;

    for (i = 0; i < (backward ? 1 : 3); i++)
        all_to_all(s, i ? n / GROUPED_HEADS : n);
    program_compute(s->p, us);
    for (i = 0; i < (backward ? 3 : 1); i++)
        all_to_all(s, i ? n / GROUPED_HEADS : n);
}

static void gather(const struct stage *s, int micro_batch, double us,
                   bool backward)
{
    stage_collective(s, CT_OP_ALL_GATHER, COMM_CP, CT_TYPE_BFLOAT16,
                     keys_and_values(s, micro_batch));
    program_compute(s->p, us);
    if (backward)
        stage_collective(s, CT_OP_REDUCE_SCATTER, COMM_CP, CT_TYPE_BFLOAT16,
                         keys_and_values(s, micro_batch));
}

void stage_attention(const struct stage *s, int micro_batch, double us,
                     bool backward)
{
    if (stage_size(s, COMM_CP) == 1)
        program_compute(s->p, us);
    else if (s->job->context == CONTEXT_RING)
        ring(s, micro_batch, us, backward);
    else if (s->job->context == CONTEXT_ULYSSES)
        exchange_heads(s, micro_batch, us, backward);
    else
        gather(s, micro_batch, us, backward);
}
