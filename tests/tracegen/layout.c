#include "tracegen.h"

#include <stdlib.h>

int layout_host(const struct layout *layout, int rank)
{
    return (int)((int64_t)rank * layout->options->hosts / layout->nranks);
}

int layout_domain(const struct layout *layout, int rank)
{
    return layout_host(layout, rank) / layout->options->domain_hosts;
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
    [COMM_CP] = {"CP", ALONG(CP)},
    [COMM_EP] = {"EP", ALONG(IN)},
    [COMM_EXPERT_DP] = {"DP", ALONG(CP) | ALONG(DP)},
    [COMM_SHARD] = {"DP", ALONG(CP) | ALONG(IN)},
    [COMM_REPLICAS] = {"DP", ALONG(DP)},
    [COMM_GATHER] = {"DP", ALONG(CP) | ALONG(IN)},
    [COMM_MODEL] = {"control", ALONG(TP) | ALONG(PP)},
    [COMM_EMBEDDING] = {"embedding", ALONG(PP)},
};

/* FSDP over a part of the ranks; the parts hold the same. */
static bool is_hybrid(const struct options *o)
{
    return o->job.zero == 3 && o->job.shard > 1 && o->degree[DP] > 1;
}

static unsigned axes_of(const struct options *o, enum comm_kind kind)
{
    if (kind == COMM_GATHER && !is_hybrid(o))
        kind = COMM_DP;
    return kinds[kind].axes;
}

static int group_size(const struct options *o, unsigned axes)
{
    int axis, n = 1;

    for (axis = 0; axis < AXES; axis++)
        if (axes & ALONG(axis))
            n *= o->degree[axis];
    return n;
}

static bool is_used(const struct options *o, enum comm_kind kind)
{
    const struct job *job = &o->job;

    switch (kind) {
    case COMM_WORLD:
        return true;
    case COMM_DP:
        return !is_hybrid(o) || job->loss;
    case COMM_EP:
    case COMM_EXPERT_DP:
        return job->experts > 1;
    case COMM_SHARD:
    case COMM_REPLICAS:
        return is_hybrid(o);
    case COMM_GATHER:
        return job->twin && job->zero;
    case COMM_MODEL:
        return job->norm_model;
    case COMM_EMBEDDING:
        return job->tie;
    default:
        return true;
    }
}

const char *layout_role(const struct layout *layout, int comm)
{
    const struct comm *c = &layout->comms[comm];
    enum comm_kind kind = c->kind;

    if (layout->comm_of[c->ranks[0]][COMM_DP] == comm)
        kind = COMM_DP;
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

static void add_member(struct layout *layout, int comm, int rank)
{
    struct comm *c = &layout->comms[comm];

    layout->comm_of[rank][c->kind] = comm;
    layout->place_in[rank][c->kind] = c->nranks;
    c->crosses |= c->nranks && layout_domain(layout, c->ranks[0]) !=
                                   layout_domain(layout, rank);
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

static bool is_between(const struct layout *layout, int rank)
{
    const int place = layout_coordinate(layout, rank, PP);

    return place && place < layout->options->degree[PP] - 1;
}

/* What spans all ranks may be the world's. */
static void share_world(struct layout *layout, enum comm_kind kind)
{
    int rank;

    for (rank = 0; rank < layout->nranks; rank++) {
        layout->comm_of[rank][kind] = layout->comm_of[rank][COMM_WORLD];
        layout->place_in[rank][kind] = layout->place_in[rank][COMM_WORLD];
    }
}

static void make_comms(struct layout *layout, enum comm_kind kind)
{
    const struct options *o = layout->options;
    const unsigned axes = axes_of(o, kind);
    const int n = group_size(o, axes);
    int rank;

    if (!is_used(o, kind) || (n < 2 && kind != COMM_WORLD))
        return;
    if (kind != COMM_WORLD && n == layout->nranks && o->job.share_world) {
        share_world(layout, kind);
        return;
    }
    for (rank = 0; rank < layout->nranks; rank++) {
        int first = leader(layout, rank, axes);
        int comm = first == rank ? new_comm(layout, kind, n)
                                 : layout->comm_of[first][kind];

        if (kind != COMM_EMBEDDING || !is_between(layout, rank))
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
