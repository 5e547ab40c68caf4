/* Link class of a pair of ranks and of a communicator, with its evidence. */
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/stages.h"

/* Members of one node that are compared pair by pair; of more, only
 * neighbours. No node has so many GPUs. */
#define MAX_PAIRWISE 256

static const char topology[] = "topology";
static const char host[] = "host";
static const char unknown[] = "unknown";

static const struct ct_device_row *device_of(const struct ct_process *p,
                                             const struct ct_comm_row *row)
{
    int i;

    for (i = 0; i < p->ndevices; i++)
        if (p->devices[i].id == row->device)
            return &p->devices[i];
    return NULL;
}

static bool same(const char *a, const char *b)
{
    return a && b && *a && !strcmp(a, b);
}

static bool same_gpu(const struct ct_device_row *a,
                     const struct ct_device_row *b)
{
    if (!a || !b)
        return false;
    if (a->uuid && b->uuid)
        return same(a->uuid, b->uuid);
    return same(a->pci, b->pci);
}

static bool same_domain(const struct ct_device_row *a,
                        const struct ct_device_row *b)
{
    return a && b && same(a->cluster, b->cluster) &&
           a->cluster[strspn(a->cluster, "0-")] && a->clique == b->clique;
}

static bool on_nvswitch(const struct ct_process *p,
                        const struct ct_device_row *device)
{
    int i;

    for (i = 0; i < p->ngpu_links; i++)
        if (p->gpu_links[i].device == device->id &&
            !strcmp(p->gpu_links[i].kind, "nvswitch"))
            return true;
    return false;
}

/* What p says of the way from its device to peer's: the best of its rows. */
static enum ct_link link_to(const struct ct_process *p,
                            const struct ct_device_row *device,
                            const struct ct_device_row *peer)
{
    enum ct_link link = CT_LINK_NODE;
    int i;

    for (i = 0; i < p->ngpu_links; i++) {
        const struct ct_gpu_link_row *row = &p->gpu_links[i];
        enum ct_link seen = CT_LINK_NODE;

        if (row->device != device->id || !same(row->peer_pci, peer->pci))
            continue;
        if (!strcmp(row->kind, "nvlink") || !strcmp(row->kind, "nvswitch"))
            seen = CT_LINK_NVLINK;
        else if (!strcmp(row->kind, "pcie"))
            seen = CT_LINK_PCIE;
        else if (!strcmp(row->kind, "none"))
            seen = CT_LINK_SHM;
        if (seen < link)
            link = seen;
    }
    return link;
}

static enum ct_link inside_node(const struct ct_process *a,
                                const struct ct_device_row *da,
                                const struct ct_process *b,
                                const struct ct_device_row *db,
                                const char **evidence_p)
{
    enum ct_link link;

    *evidence_p = host;
    if (!da || !db)
        return CT_LINK_NODE;
    *evidence_p = topology;
    if (on_nvswitch(a, da) && on_nvswitch(b, db))
        return CT_LINK_NVLINK;
    link = link_to(a, da, db);
    if (link == CT_LINK_NODE)
        link = link_to(b, db, da);
    if (link == CT_LINK_NODE)
        *evidence_p = host;
    return link;
}

enum ct_link ct_pair_link(const struct ct_trace *trace,
                          const struct ct_job *job, int comm, int rank,
                          int peer, const char **evidence_p)
{
    const struct ct_member *ma = &job->comms[comm].members[rank];
    const struct ct_member *mb = &job->comms[comm].members[peer];
    const struct ct_process *a, *b;
    const struct ct_device_row *da, *db;

    *evidence_p = topology;
    if (rank == peer)
        return CT_LINK_SELF;
    *evidence_p = unknown;
    if (ma->process == CT_NONE || mb->process == CT_NONE)
        return CT_LINK_UNKNOWN;
    a = &trace->processes[ma->process];
    b = &trace->processes[mb->process];
    da = device_of(a, &a->comms[ma->row]);
    db = device_of(b, &b->comms[mb->row]);
    *evidence_p = topology;
    if (a->node == b->node) {
        if (same_gpu(da, db))
            return CT_LINK_SELF;
        return inside_node(a, da, b, db, evidence_p);
    }
    if (same_domain(da, db))
        return CT_LINK_MNNVL;
    *evidence_p = host;
    return CT_LINK_NETWORK;
}

/* Distinct nodes and domains of comm's members. */
static void count_places(const struct ct_trace *trace, const struct ct_job *job,
                         struct ct_comm *comm, char *seen)
{
    int r;

    memset(seen, 0, (size_t)job->nnodes + (size_t)job->ndomains);
    for (r = 0; r < comm->nranks; r++) {
        const struct ct_process *p;
        char *node, *domain;

        if (comm->members[r].process == CT_NONE)
            continue;
        p = &trace->processes[comm->members[r].process];
        node = &seen[p->node];
        domain = &seen[job->nnodes + p->domain];
        comm->nnodes += !*node;
        comm->ndomains += !*domain;
        *node = *domain = 1;
    }
}

static void worsen(const struct ct_trace *trace, const struct ct_job *job,
                   int comm, int rank, int peer)
{
    struct ct_comm *c = &job->comms[comm];
    const char *evidence;
    enum ct_link link = ct_pair_link(trace, job, comm, rank, peer, &evidence);

    if (evidence != unknown && (!c->evidence || link > c->link)) {
        c->link = link;
        c->evidence = evidence;
    }
}

/* On one node every pair counts; across nodes any pair that crosses shows the
 * worst class, and neighbours in rank order meet one. */
static void set_link(const struct ct_trace *trace, const struct ct_job *job,
                     int comm)
{
    struct ct_comm *c = &job->comms[comm];
    bool pairwise = c->nnodes == 1 && c->nranks <= MAX_PAIRWISE;
    int i, j, last = CT_NONE, first = CT_NONE;

    if (c->nranks == 1)
        worsen(trace, job, comm, 0, 0);
    for (i = 0; i < c->nranks; i++) {
        if (c->members[i].process == CT_NONE)
            continue;
        if (last != CT_NONE)
            worsen(trace, job, comm, last, i);
        for (j = 0; pairwise && j < i; j++)
            worsen(trace, job, comm, j, i);
        last = i;
        first = first == CT_NONE ? i : first;
    }
    if (first != last)
        worsen(trace, job, comm, last, first);
    if (!c->evidence) {
        c->link = CT_LINK_UNKNOWN;
        c->evidence = unknown;
    }
}

void ct_job_links(const struct ct_trace *trace, struct ct_job *job)
{
    char *seen = ct_alloc((size_t)job->nnodes + (size_t)job->ndomains, 1);
    int i;

    for (i = 0; i < job->ncomms; i++) {
        count_places(trace, job, &job->comms[i], seen);
        set_link(trace, job, i);
    }
    free(seen);
}
