#include "tracegen.h"

void program_add(struct program *p, struct instruction instruction)
{
    p->code = grow(p->code, &p->capacity, p->n, sizeof(*p->code));
    p->code[p->n++] = instruction;
}

void program_compute(struct program *p, double us)
{
    program_add(p, (struct instruction){.call = COMPUTE, .compute_us = us});
}

static bool reduces(enum ct_op op)
{
    return op == CT_OP_ALL_REDUCE || op == CT_OP_REDUCE_SCATTER;
}

struct instruction *program_collective(struct program *p, enum ct_op op,
                                       enum comm_kind comm, int type,
                                       uint64_t count)
{
    program_add(p,
                (struct instruction){.call = COLLECTIVE,
                                     .op = op,
                                     .comm = comm,
                                     .type = type,
                                     .redop = reduces(op) ? CT_REDOP_SUM : -1,
                                     .peer = op == CT_OP_BROADCAST ? 0 : -1,
                                     .count = count});
    return &p->code[p->n - 1];
}

void program_message(struct program *p, enum call call, enum comm_kind comm,
                     int type, uint64_t count, int peer)
{
    program_add(p, (struct instruction){.call = call,
                                        .comm = comm,
                                        .type = type,
                                        .redop = -1,
                                        .peer = peer,
                                        .count = count});
}

struct instruction *program_group(struct program *p, int n)
{
    program_add(p, (struct instruction){.call = GROUP, .n = n});
    return &p->code[p->n - 1];
}

void program_wait(struct program *p, int event)
{
    program_add(p, (struct instruction){.call = WAIT, .event = event});
}

int64_t program_ops(const struct program *p)
{
    int64_t n = 0;
    int i;

    for (i = 0; i < p->n; i++)
        n += p->code[i].call == COLLECTIVE || p->code[i].call == SEND ||
             p->code[i].call == RECV;
    return n;
}

int program_of(const struct layout *layout, int rank)
{
    const struct options *o = layout->options;

    /* Experts get other tokens on each rank; of a sweep, two ranks send; ranks
     * of the world are others on each. */
    if (o->job.experts > 1 || o->sweep || o->job.over_world)
        return rank;
    return layout_coordinate(layout, rank, PP) * o->degree[CP] +
           layout_coordinate(layout, rank, CP);
}
