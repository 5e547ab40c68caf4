#include "tracegen.h"

#include <stdio.h>
#include <stdlib.h>

uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void *or_die(void *memory)
{
    if (!memory) {
        fputs("tracegen: out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

void *zeros(unsigned long n, unsigned long size)
{
    return or_die(calloc(n ? n : 1, size));
}

void *grow(void *array, int *capacity_p, int n, unsigned long size)
{
    if (n < *capacity_p)
        return array;
    *capacity_p = *capacity_p ? 2 * *capacity_p : 64;
    return or_die(realloc(array, (unsigned long)*capacity_p * size));
}

int layout_host(const struct layout *layout, int rank)
{
    return (int)((int64_t)rank * layout->options->hosts / layout->nranks);
}

int layout_coordinate(const struct layout *layout, int rank, enum axis axis)
{
    const struct options *o = layout->options;
    int i;

    for (i = 0; o->order[i] != axis; i++)
        rank /= o->degree[o->order[i]];
    return rank % o->degree[axis];
}

static const enum axis axis_of[COMM_KINDS] = {
    [COMM_TP] = TP, [COMM_PP] = PP, [COMM_DP] = DP};

/* Ranks that differ from rank in the axis only, or all. */
static bool together(const struct layout *layout, enum comm_kind kind, int a,
                     int b)
{
    int axis;

    for (axis = 0; axis < AXES && kind != COMM_WORLD; axis++)
        if (axis != (int)axis_of[kind] &&
            layout_coordinate(layout, a, (enum axis)axis) !=
                layout_coordinate(layout, b, (enum axis)axis))
            return false;
    return true;
}

static void add_member(struct layout *layout, int comm, int rank)
{
    struct comm *c = &layout->comms[comm];

    layout->comm_of[rank][c->kind] = comm;
    layout->place_in[rank][c->kind] = c->nranks;
    c->crosses |= c->nranks &&
                  layout_host(layout, c->ranks[0]) != layout_host(layout, rank);
    c->ranks[c->nranks++] = rank;
}

static int new_comm(struct layout *layout, enum comm_kind kind)
{
    int comm = layout->ncomms++;

    layout->comms[comm] = (struct comm){
        .kind = kind,
        .uid = mix(layout->options->seed, (uint64_t)comm + 1000) >> 1,
        .ranks = zeros((unsigned long)layout->nranks, sizeof(int))};
    return comm;
}

/* The first of a group in rank order makes it; its comm holds the rest. */
static void make_comms(struct layout *layout, enum comm_kind kind)
{
    int rank, i;

    for (rank = 0; rank < layout->nranks; rank++) {
        int comm = -1;

        for (i = 0; i < layout->ncomms && comm < 0; i++)
            if (layout->comms[i].kind == kind && layout->comms[i].ranks &&
                together(layout, kind, layout->comms[i].ranks[0], rank))
                comm = i;
        if (comm < 0)
            comm = new_comm(layout, kind);
        add_member(layout, comm, rank);
    }
}

void layout_init(struct layout *layout, const struct options *options)
{
    unsigned long n;
    int kind;

    *layout = (struct layout){.options = options, .nranks = 1};
    for (kind = 0; kind < AXES; kind++)
        layout->nranks *= options->degree[kind];
    n = (unsigned long)layout->nranks;
    layout->comms = zeros(n * 3 + 1, sizeof(*layout->comms));
    layout->comm_of = zeros(n, sizeof(*layout->comm_of));
    layout->place_in = zeros(n, sizeof(*layout->place_in));
    make_comms(layout, COMM_WORLD);
    for (kind = COMM_TP; kind < COMM_KINDS; kind++)
        if (options->degree[axis_of[kind]] > 1)
            make_comms(layout, (enum comm_kind)kind);
}

void layout_release(struct layout *layout)
{
    int i;

    for (i = 0; i < layout->ncomms; i++)
        free(layout->comms[i].ranks);
    free(layout->comms);
    free(layout->comm_of);
    free(layout->place_in);
}
