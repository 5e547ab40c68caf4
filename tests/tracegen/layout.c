#include "tracegen.h"

#include <stdlib.h>

int layout_host(const struct layout *layout, int rank)
{
    return (int)((int64_t)rank * layout->options->hosts / layout->nranks);
}

static int stride(const struct options *o, enum axis axis)
{
    int i, n = 1;

    for (i = 0; o->order[i] != axis; i++)
        n *= o->degree[o->order[i]];
    return n;
}

int layout_coordinate(const struct layout *layout, int rank, enum axis axis)
{
    const struct options *o = layout->options;

    return rank / stride(o, axis) % o->degree[axis];
}

#define ALONG(axis_) (1u << (axis_))

/* A communicator's ranks differ along these axes only. */
static const struct {
    const char *role;
    unsigned axes;
} kinds[COMM_KINDS] = {
    [COMM_WORLD] = {"control", ALONG(AXES) - 1},
    [COMM_TP] = {"TP", ALONG(TP)},
    [COMM_PP] = {"PP", ALONG(PP)},
    [COMM_DP] = {"DP", ALONG(CP) | ALONG(IN) | ALONG(DP)},
};

const char *layout_role(enum comm_kind kind)
{
    return kinds[kind].role;
}

int layout_size(const struct layout *layout, int rank, enum comm_kind kind)
{
    int comm = layout->comm_of[rank][kind];

    return comm < 0 ? 1 : layout->comms[comm].nranks;
}

/* The first rank of the communicator, in the order of ranks. */
static int leader(const struct layout *layout, int rank, unsigned axes)
{
    const struct options *o = layout->options;
    int axis, first = rank;

    for (axis = 0; axis < AXES; axis++)
        if (axes & ALONG(axis))
            first -= layout_coordinate(layout, rank, (enum axis)axis) *
                     stride(o, (enum axis)axis);
    return first;
}

static int group_size(const struct options *o, unsigned axes)
{
    int axis, n = 1;

    for (axis = 0; axis < AXES; axis++)
        if (axes & ALONG(axis))
            n *= o->degree[axis];
    return n;
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

static int new_comm(struct layout *layout, enum comm_kind kind, int nranks)
{
    int comm = layout->ncomms;

    layout->comms = grow(layout->comms, &layout->comm_capacity, comm,
                         sizeof(*layout->comms));
    layout->comms[comm] = (struct comm){
        .kind = kind,
        .uid = mix(layout->options->seed, (uint64_t)comm + 1000) >> 1,
        .ranks = zeros((unsigned long)nranks, sizeof(int))};
    layout->ncomms++;
    return comm;
}

static void make_comms(struct layout *layout, enum comm_kind kind)
{
    int n = group_size(layout->options, kinds[kind].axes), rank;

    if (n < 2 && kind != COMM_WORLD)
        return;
    for (rank = 0; rank < layout->nranks; rank++) {
        int first = leader(layout, rank, kinds[kind].axes);
        int comm = first == rank ? new_comm(layout, kind, n)
                                 : layout->comm_of[first][kind];

        add_member(layout, comm, rank);
    }
}

static void forget_comms(struct layout *layout)
{
    int rank, kind;

    for (rank = 0; rank < layout->nranks; rank++)
        for (kind = 0; kind < COMM_KINDS; kind++)
            layout->comm_of[rank][kind] = -1;
}

void layout_init(struct layout *layout, const struct options *options)
{
    unsigned long n;
    int kind;

    *layout =
        (struct layout){.options = options,
                        .nranks = group_size(options, kinds[COMM_WORLD].axes)};
    n = (unsigned long)layout->nranks;
    layout->comm_of = zeros(n, sizeof(*layout->comm_of));
    layout->place_in = zeros(n, sizeof(*layout->place_in));
    forget_comms(layout);
    for (kind = 0; kind < COMM_KINDS; kind++)
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
