#include "tracegen.h"

static bool shares_parameters(const struct stage *s)
{
    return layout_size(s->layout, s->rank, COMM_DP) > 1;
}

void program_setup(struct program *p, const struct layout *layout, int rank)
{
    struct stage s = stage_of(p, layout, rank);
    int i;

    for (i = 0; i < s.options->barriers; i++)
        program_collective(p, CT_OP_ALL_REDUCE, COMM_WORLD, CT_TYPE_INT32, 1);
    for (i = 0; i < s.layers && shares_parameters(&s); i++)
        program_collective(p, CT_OP_BROADCAST, COMM_DP, CT_TYPE_FLOAT32,
                           s.options->bucket / 4);
}

static void reduce_gradients(const struct stage *s)
{
    const struct options *o = s->options;
    int i;

    for (i = 0; i < o->buckets && shares_parameters(s); i++)
        program_collective(s->p, CT_OP_ALL_REDUCE, COMM_DP, CT_TYPE_FLOAT32,
                           i + 1 < o->buckets ? o->bucket / 4 : o->bucket / 10);
}

static void begin(const struct stage *s, enum segment_kind kind)
{
    program_add(
        s->p, (struct instruction){.call = MARK,
                                   .mark = kind,
                                   .micro_batches = s->options->micro_batches});
}

static void end(const struct stage *s)
{
    program_add(s->p, (struct instruction){.call = MARK, .mark = SEGMENT_END});
}

static void evaluate(const struct stage *s)
{
    begin(s, SEGMENT_EVALUATION);
    stage_evaluate(s);
    program_collective(s->p, CT_OP_ALL_REDUCE, COMM_WORLD, CT_TYPE_FLOAT32, 2);
    end(s);
}

void program_step(struct program *p, const struct layout *layout, int rank,
                  int step)
{
    struct stage s = stage_of(p, layout, rank);
    int every = s.options->eval_every;

    if (every && step && step % every == 0)
        evaluate(&s);
    begin(&s, SEGMENT_STEP);
    stage_schedule(&s);
    reduce_gradients(&s);
    program_collective(p, CT_OP_ALL_REDUCE, COMM_WORLD, CT_TYPE_FLOAT32, 1);
    end(&s);
    program_compute(p, s.options->compute_us);
}

/* nccl-tests' order: size by size, iteration by iteration. */
void program_sweep(struct program *p, const struct layout *layout, int rank)
{
    int place = layout->place_in[rank][COMM_WORLD], i;
    struct instruction message = {.call = place ? RECV : SEND,
                                  .comm = COMM_WORLD,
                                  .type = CT_TYPE_FLOAT32,
                                  .redop = -1,
                                  .peer = place ? 0 : 1};
    uint64_t count;

    for (count = 256; count <= 1 << 22; count *= 4)
        for (i = 0; i < 25; i++)
            program_collective(p, CT_OP_ALL_REDUCE, COMM_WORLD, CT_TYPE_FLOAT32,
                               count);
    for (count = 256; count <= 1 << 22 && place < 2 && layout->nranks > 1;
         count *= 4)
        for (i = 0; i < 25; i++) {
            message.count = count;
            program_add(p, message);
        }
}
