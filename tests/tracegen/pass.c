#include "tracegen.h"

struct stage stage_of(struct program *p, const struct layout *layout, int rank)
{
    const struct options *o = layout->options;

    return (struct stage){.p = p,
                          .layout = layout,
                          .options = o,
                          .rank = rank,
                          .place = layout_coordinate(layout, rank, PP),
                          .degree = o->degree[PP],
                          .layers = o->layers / o->degree[PP],
                          .has_tp = o->degree[TP] > 1};
}

uint64_t stage_activation(const struct stage *s)
{
    return s->options->hidden / 2;
}

void stage_pass(const struct stage *s, double factor)
{
    int i;

    for (i = 0; i < 2 * s->layers; i++) {
        program_compute(s->p, factor * s->options->compute_us);
        if (s->has_tp)
            program_collective(s->p, CT_OP_ALL_REDUCE, COMM_TP,
                               CT_TYPE_BFLOAT16, stage_activation(s));
    }
}
