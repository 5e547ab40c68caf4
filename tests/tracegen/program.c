#include "tracegen.h"

static const enum comm_kind comm_of_axis[AXES] = {
    [TP] = COMM_TP, [PP] = COMM_PP, [DP] = COMM_DP};

static void add(struct program *p, struct instruction instruction)
{
    p->code = grow(p->code, &p->capacity, p->n, sizeof(*p->code));
    p->code[p->n++] = instruction;
}

static void compute(struct program *p, double us)
{
    add(p, (struct instruction){.call = COMPUTE, .compute_us = us});
}

static void collective(struct program *p, enum ct_op op, enum comm_kind comm,
                       int type, uint64_t count)
{
    add(p, (struct instruction){.call = COLLECTIVE,
                                .op = op,
                                .comm = comm,
                                .type = type,
                                .count = count});
}

struct stage { /* a rank's place in the pipeline */
    struct program *p;
    const struct layout *layout;
    const struct options *options;
    int place, degree, layers;
    bool has_tp;
};

static struct stage stage_of(struct program *p, const struct layout *layout,
                             int rank)
{
    const struct options *o = layout->options;

    return (struct stage){.p = p,
                          .layout = layout,
                          .options = o,
                          .place = layout_coordinate(layout, rank, PP),
                          .degree = o->degree[PP],
                          .layers = o->layers / o->degree[PP],
                          .has_tp = o->degree[TP] > 1};
}

/* Activations: bfloat16. */
static uint64_t activation(const struct stage *s)
{
    return s->options->hidden / 2;
}

static void pass(const struct stage *s, double factor)
{
    int i;

    for (i = 0; i < 2 * s->layers; i++) {
        compute(s->p, factor * s->options->compute_us);
        if (s->has_tp)
            collective(s->p, CT_OP_ALL_REDUCE, comm_of_axis[TP],
                       CT_TYPE_BFLOAT16, activation(s));
    }
}

static void exchange(const struct stage *s, int to, int from)
{
    bool sends = to >= 0 && to < s->degree;
    bool receives = from >= 0 && from < s->degree;
    struct instruction instruction = {.comm = comm_of_axis[PP],
                                      .type = CT_TYPE_BFLOAT16,
                                      .count = activation(s),
                                      .to = to,
                                      .from = from};

    if (!sends && !receives)
        return;
    instruction.call = sends && receives ? EXCHANGE : sends ? SEND : RECV;
    add(s->p, instruction);
}

#define NOBODY (-1)

/* Megatron's 1F1B: fill, one forward one backward, drain. */
static void one_forward_one_backward(const struct stage *s)
{
    int m = s->options->micro_batches, next = s->place + 1,
        before = s->place - 1;
    int fill = s->degree - s->place - 1, steady, i;

    fill = fill < m ? fill : m;
    steady = m - fill;
    for (i = 0; i < fill; i++) {
        exchange(s, NOBODY, before);
        pass(s, 1);
        exchange(s, next, NOBODY);
    }
    if (steady)
        exchange(s, NOBODY, before);
    for (i = 0; i < steady; i++) {
        pass(s, 1);
        exchange(s, next, next);
        pass(s, 2);
        exchange(s, before, i + 1 < steady ? before : NOBODY);
    }
    for (i = 0; i < fill; i++) {
        exchange(s, NOBODY, next);
        pass(s, 2);
        exchange(s, before, NOBODY);
    }
}

static void evaluate(const struct stage *s)
{
    int i;

    for (i = 0; i < s->options->micro_batches; i++) {
        exchange(s, NOBODY, s->place - 1);
        pass(s, 1);
        exchange(s, s->place + 1, NOBODY);
    }
    collective(s->p, CT_OP_ALL_REDUCE, COMM_WORLD, CT_TYPE_FLOAT32, 2);
}

void program_setup(struct program *p, const struct layout *layout, int rank)
{
    struct stage s = stage_of(p, layout, rank);
    int i;

    for (i = 0; i < s.options->barriers; i++)
        collective(p, CT_OP_ALL_REDUCE, COMM_WORLD, CT_TYPE_INT32, 1);
    for (i = 0; i < s.layers && s.options->degree[DP] > 1; i++)
        collective(p, CT_OP_BROADCAST, comm_of_axis[DP], CT_TYPE_FLOAT32,
                   s.options->bucket / 4);
}

static void reduce_gradients(const struct stage *s)
{
    int i;

    for (i = 0; i < s->options->buckets && s->options->degree[DP] > 1; i++)
        collective(s->p, CT_OP_ALL_REDUCE, comm_of_axis[DP], CT_TYPE_FLOAT32,
                   i + 1 < s->options->buckets ? s->options->bucket / 4
                                               : s->options->bucket / 10);
}

static void mark(struct program *p, int what)
{
    add(p, (struct instruction){.call = MARK, .mark = what});
}

void program_step(struct program *p, const struct layout *layout, int rank,
                  int step)
{
    struct stage s = stage_of(p, layout, rank);
    int every = s.options->eval_every;

    if (every && step && step % every == 0)
        evaluate(&s);
    mark(p, 1);
    one_forward_one_backward(&s);
    reduce_gradients(&s);
    collective(p, CT_OP_ALL_REDUCE, COMM_WORLD, CT_TYPE_FLOAT32, 1);
    mark(p, 2);
    compute(p, s.options->compute_us);
}

/* nccl-tests' order: size by size, iteration by iteration. */
void program_sweep(struct program *p, const struct layout *layout, int rank)
{
    int place = layout->place_in[rank][COMM_WORLD], i;
    struct instruction transfer = {.call = place ? RECV : SEND,
                                   .comm = COMM_WORLD,
                                   .type = CT_TYPE_FLOAT32,
                                   .to = 1,
                                   .from = 0};
    uint64_t count;

    for (count = 256; count <= 1 << 22; count *= 4)
        for (i = 0; i < 25; i++)
            collective(p, CT_OP_ALL_REDUCE, COMM_WORLD, CT_TYPE_FLOAT32, count);
    for (count = 256; count <= 1 << 22 && place < 2 && layout->nranks > 1;
         count *= 4)
        for (i = 0; i < 25; i++) {
            transfer.count = count;
            add(p, transfer);
        }
}

long program_ops(const struct program *p)
{
    long n = 0;
    int i;

    for (i = 0; i < p->n; i++)
        n += p->code[i].call == EXCHANGE                             ? 2
             : p->code[i].call == COMPUTE || p->code[i].call == MARK ? 0
                                                                     : 1;
    return n;
}
