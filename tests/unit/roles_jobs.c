/* What each rank issues. */
#include "roles_jobs_inside.h"

#include <stdlib.h>
#include <string.h>

void *maker_more(void *array, int n, int *room, size_t size)
{
    if (n < *room)
        return array;
    *room = *room ? *room * 2 : 64;
    array = realloc(array, (size_t)*room * size);
    if (!array)
        abort();
    return array;
}

static double uniform(struct maker *maker)
{
    maker->seed = maker->seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(maker->seed >> 11) / 9007199254740992.0;
}

double maker_jittered(struct maker *maker, double us)
{
    return us * (1 + maker->jitter * (2 * uniform(maker) - 1));
}

struct maker *maker_new(int ranks, int ranks_per_node, uint64_t seed)
{
    struct maker *maker = calloc(1, sizeof *maker);

    maker->nranks = ranks;
    maker->ranks_per_node = ranks_per_node;
    maker->seed = seed * 2654435761u + 12345;
    maker->links[0] = (struct maker_link){2, 100};
    maker->links[1] = (struct maker_link){15, 10};
    maker->ranks = calloc((size_t)ranks, sizeof *maker->ranks);
    for (int r = 0; r < ranks; r++) {
        maker->ranks[r].group_first = -1;
        maker->ranks[r].ordinals =
            calloc((size_t)MOST_COMMS * (1 + 2 * 64), sizeof(int));
    }
    maker->job.comms = calloc(MOST_COMMS, sizeof *maker->job.comms);
    for (int i = 0; i < 10; i++)
        uniform(maker);
    return maker;
}

void maker_free(struct maker *maker)
{
    for (int r = 0; r < maker->nranks; r++) {
        free(maker->ranks[r].items);
        free(maker->ranks[r].calls);
        free(maker->ranks[r].ordinals);
        if (maker->trace.processes) {
            free(maker->trace.processes[r].ops);
            free(maker->trace.processes[r].launches);
            free(maker->trace.processes[r].classes);
            free(maker->trace.processes[r].steps);
            free(maker->trace.processes[r].comms);
        }
    }
    for (int c = 0; c < maker->ncomms; c++)
        free(maker->job.comms[c].members);
    for (int u = 0; u < maker->job.nusages; u++)
        free(maker->job.usages[u].samples);
    free(maker->job.usages);
    free(maker->job.instances);
    free(maker->job.processes);
    free(maker->job.node_names);
    free(maker->job.comms);
    free(maker->trace.processes);
    free(maker->ranks);
    free(maker);
}

void maker_links(struct maker *maker, struct maker_link inside,
                 struct maker_link between)
{
    maker->links[0] = inside;
    maker->links[1] = between;
}

void maker_jitter(struct maker *maker, double jitter)
{
    maker->jitter = jitter;
}

int maker_comm(struct maker *maker, const int *ranks, int n)
{
    const int id = maker->ncomms++;
    struct ct_comm *comm = &maker->job.comms[id];

    if (id >= MOST_COMMS)
        abort();
    comm->uid = (uint64_t)id + 1;
    comm->origin = "init";
    comm->nranks = comm->nknown = n;
    comm->members = calloc((size_t)n, sizeof *comm->members);
    comm->evidence = "made";
    for (int r = 0; r < 64; r++)
        maker->comm_of[id][r] = -1;
    bool nodes[64] = {false};

    for (int i = 0; i < n; i++) {
        comm->members[i] = (struct ct_member){ranks[i], id};
        maker->comm_of[id][ranks[i]] = i;
        nodes[ranks[i] / maker->ranks_per_node] = true;
    }
    for (int i = 0; i < 64; i++)
        comm->nnodes += nodes[i];
    comm->ndomains = comm->nnodes;
    comm->link = comm->nnodes > 1 ? CT_LINK_NETWORK : CT_LINK_NVLINK;
    return id;
}

static void push(struct maker *maker, int rank, struct item item)
{
    struct rank_state *state = &maker->ranks[rank];

    state->items = maker_more(state->items, state->nitems, &state->room,
                              sizeof *state->items);
    state->items[state->nitems++] = item;
}

void maker_compute(struct maker *maker, int rank, double us)
{
    push(maker, rank, (struct item){.kind = COMPUTE, .us = us});
}

void maker_op(struct maker *maker, int rank, int comm, enum ct_op base,
              uint64_t count, int redop, int peer)
{
    push(maker, rank,
         (struct item){.kind = CALL,
                       .comm = comm,
                       .base = base,
                       .count = count,
                       .redop = redop,
                       .peer = peer});
}

void maker_group(struct maker *maker, int rank)
{
    push(maker, rank, (struct item){.kind = GROUP});
}

void maker_group_end(struct maker *maker, int rank)
{
    push(maker, rank, (struct item){.kind = GROUP_END});
}

void maker_step(struct maker *maker, int rank, enum ct_step_kind kind)
{
    push(maker, rank, (struct item){.kind = STEP, .step = kind});
}
