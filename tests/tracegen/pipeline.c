#include "tracegen.h"

#define NOBODY (-1)

static void message(const struct stage *s, enum call call, int peer)
{
    program_add(s->p, (struct instruction){.call = call,
                                           .comm = COMM_PP,
                                           .type = CT_TYPE_BFLOAT16,
                                           .redop = -1,
                                           .peer = peer,
                                           .count = stage_activation(s)});
}

void stage_exchange(const struct stage *s, int to, int from)
{
    bool sends = to >= 0 && to < s->degree;
    bool receives = from >= 0 && from < s->degree;

    if (sends && receives)
        program_add(s->p, (struct instruction){.call = GROUP, .n = 2});
    if (sends)
        message(s, SEND, to);
    if (receives)
        message(s, RECV, from);
}

/* Megatron's 1F1B: fill, one forward one backward, drain. */
static void one_forward_one_backward(const struct stage *s)
{
    int m = s->options->micro_batches, next = s->place + 1,
        before = s->place - 1;
    int fill = s->degree - s->place - 1, steady, i;

    fill = fill < m ? fill : m;
    steady = m - fill;
    for (i = 0; i < fill; i++) {
        stage_exchange(s, NOBODY, before);
        stage_pass(s, 1);
        stage_exchange(s, next, NOBODY);
    }
    if (steady)
        stage_exchange(s, NOBODY, before);
    for (i = 0; i < steady; i++) {
        stage_pass(s, 1);
        stage_exchange(s, next, next);
        stage_pass(s, 2);
        stage_exchange(s, before, i + 1 < steady ? before : NOBODY);
    }
    for (i = 0; i < fill; i++) {
        stage_exchange(s, NOBODY, next);
        stage_pass(s, 2);
        stage_exchange(s, before, NOBODY);
    }
}

void stage_schedule(const struct stage *s)
{
    one_forward_one_backward(s);
}

void stage_evaluate(const struct stage *s)
{
    int i;

    for (i = 0; i < s->options->micro_batches; i++) {
        stage_exchange(s, NOBODY, s->place - 1);
        stage_pass(s, 1);
        stage_exchange(s, s->place + 1, NOBODY);
    }
}
