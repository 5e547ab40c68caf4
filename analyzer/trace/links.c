/* Link class of a pair of ranks and of a communicator, by the best evidence. */
#include "trace/links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/stages.h"

/* Members of one node that are compared pair by pair; of more, only
 * neighbours. No node has so many GPUs. */
#define MAX_PAIRWISE 256

static const char unknown[] = "unknown";

const struct ct_device_row *ct_device_of(const struct ct_process *process,
                                         const struct ct_comm_row *comm)
{
    int i;

    for (i = 0; i < process->ndevices; i++)
        if (process->devices[i].id == comm->device)
            return &process->devices[i];
    return NULL;
}

static bool same_gpu(const struct ct_ends *ends)
{
    const struct ct_device_row *a = ends->gpu_a, *b = ends->gpu_b;

    if (!ct_one_node(ends) || !a || !b)
        return false;
    if (a->uuid && b->uuid)
        return ct_same_name(a->uuid, b->uuid);
    return ct_same_name(a->pci, b->pci);
}

static void find_ends(const struct ct_trace *trace, const struct ct_job *job,
                      int comm, int rank, int peer, struct ct_ends *ends)
{
    const struct ct_member *a = &job->comms[comm].members[rank];
    const struct ct_member *b = &job->comms[comm].members[peer];

    *ends = (struct ct_ends){.rank = rank, .peer = peer};
    if (a->process != CT_NONE) {
        ends->a = &trace->processes[a->process];
        ends->comm_a = &ends->a->comms[a->row];
        ends->gpu_a = ct_device_of(ends->a, ends->comm_a);
    }
    if (b->process != CT_NONE) {
        ends->b = &trace->processes[b->process];
        ends->comm_b = &ends->b->comms[b->row];
        ends->gpu_b = ct_device_of(ends->b, ends->comm_b);
    }
}

/* Starts with what is known of two ranks of which nothing is. True: they share
 * a GPU, and that is all. */
static bool is_self(const struct ct_ends *ends, struct ct_link_fact *fact)
{
    *fact = (struct ct_link_fact){CT_LINK_UNKNOWN, CT_NONE, unknown, ""};
    if (ends->rank != ends->peer && !same_gpu(ends))
        return false;
    fact->link = CT_LINK_SELF;
    fact->evidence = "topology";
    snprintf(fact->detail, sizeof(fact->detail), "one GPU");
    return true;
}

void ct_pair_link(const struct ct_trace *trace, const struct ct_job *job,
                  int comm, int rank, int peer, struct ct_link_fact *fact)
{
    struct ct_ends ends;

    find_ends(trace, job, comm, rank, peer, &ends);
    if (!is_self(&ends, fact) && !ct_link_by_conn(&ends, fact) &&
        !ct_link_by_plugin(&ends, fact) && !ct_link_by_topology(&ends, fact))
        ct_link_by_host(&ends, fact);
}

void ct_pair_topology(const struct ct_trace *trace, const struct ct_job *job,
                      int comm, int rank, int peer, struct ct_link_fact *fact)
{
    struct ct_ends ends;

    find_ends(trace, job, comm, rank, peer, &ends);
    if (!is_self(&ends, fact))
        ct_link_by_topology(&ends, fact);
}

void ct_conn_link(const struct ct_trace *trace, const struct ct_job *job,
                  int comm, const struct ct_process *teller,
                  const struct ct_conn_row *row, struct ct_link_fact *fact)
{
    struct ct_link_fact seen;
    struct ct_ends ends;

    find_ends(trace, job, comm, row->src, row->dst, &ends);
    if (!is_self(&ends, fact) && ct_link_of_conn(&ends, row, teller, &seen))
        *fact = seen;
}

bool ct_link_is_worse(const struct ct_link_fact *a,
                      const struct ct_link_fact *b)
{
    if (a->link != b->link)
        return a->link > b->link;
    return a->speed != CT_NONE && (b->speed == CT_NONE || a->speed < b->speed);
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

struct search { /* for the worst hop of a communicator */
    const struct ct_trace *trace;
    const struct ct_job *job;
    int comm;
    char *told; /* per rank: its log shows its rings and trees */
    struct ct_link_fact worst;
};

static void worsen(struct search *s, const struct ct_link_fact *fact)
{
    if (fact->evidence != unknown &&
        (s->worst.evidence == unknown || ct_link_is_worse(fact, &s->worst)))
        s->worst = *fact;
}

static void try_pair(struct search *s, int rank, int peer)
{
    struct ct_link_fact fact;

    if (s->told[rank] && s->told[peer])
        return;
    ct_pair_link(s->trace, s->job, s->comm, rank, peer, &fact);
    worsen(s, &fact);
}

/* The rings and trees that a member's log shows. */
static void try_conns(struct search *s, int rank)
{
    const struct ct_comm *c = &s->job->comms[s->comm];
    const struct ct_process *p = &s->trace->processes[c->members[rank].process];
    const struct ct_conn_row *rows;
    int n, i;

    rows = ct_conns_in(p, c->members[rank].row, &n);
    for (i = 0; i < n; i++) {
        struct ct_link_fact fact;

        if (rows[i].connector == 1 || rows[i].src < 0 || rows[i].dst < 0 ||
            rows[i].src >= c->nranks || rows[i].dst >= c->nranks)
            continue;
        s->told[rank] = 1;
        ct_conn_link(s->trace, s->job, s->comm, p, &rows[i], &fact);
        worsen(s, &fact);
    }
}

/* Where the logs show rings and trees, those hops count. Else, on one node,
 * every pair; across nodes any pair that crosses shows the worst class, and
 * neighbours in rank order meet one. */
static void find_worst(struct search *s)
{
    const struct ct_comm *c = &s->job->comms[s->comm];
    const bool pairwise = c->nnodes == 1 && c->nranks <= MAX_PAIRWISE;
    int i, j, last = CT_NONE, first = CT_NONE;

    for (i = 0; i < c->nranks; i++)
        if (c->members[i].process != CT_NONE)
            try_conns(s, i);
    if (c->nranks == 1)
        try_pair(s, 0, 0);
    for (i = 0; i < c->nranks; i++) {
        if (c->members[i].process == CT_NONE)
            continue;
        if (last != CT_NONE)
            try_pair(s, last, i);
        for (j = 0; pairwise && j < i; j++)
            try_pair(s, j, i);
        last = i;
        first = first == CT_NONE ? i : first;
    }
    if (first != last)
        try_pair(s, last, first);
}

static void set_link(const struct ct_trace *trace, const struct ct_job *job,
                     int comm)
{
    struct ct_comm *c = &job->comms[comm];
    struct search s = {trace,
                       job,
                       comm,
                       ct_alloc((size_t)c->nranks, 1),
                       {CT_LINK_UNKNOWN, CT_NONE, unknown, ""}};

    find_worst(&s);
    c->link = s.worst.link;
    c->speed = s.worst.speed;
    c->evidence = s.worst.evidence;
    c->detail =
        ct_arena_text(trace->arena, s.worst.detail, strlen(s.worst.detail));
    free(s.told);
    ct_link_counts(trace, job, comm);
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
