/* How many hops of a communicator's ring are network, and how many ports its
 * nodes use for it. */
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/intern.h"
#include "trace/links.h"
#include "trace/via.h"

/* The next rank of each in the ring, from both its neighbours' words; false:
 * not all are known. */
static bool ring_of(const struct ct_trace *trace, const struct ct_comm *c,
                    int *next)
{
    int r, i, known = 0;

    for (r = 0; r < c->nranks; r++)
        next[r] = CT_NONE;
    for (r = 0; r < c->nranks; r++) {
        const struct ct_nccl_words *words =
            c->members[r].process == CT_NONE
                ? NULL
                : &trace->processes[c->members[r].process].nccl;
        int n = 0, first = 0;

        if (words)
            first =
                ct_rows_of_comm(words->rings, words->nrings,
                                sizeof(*words->rings), c->members[r].row, &n);
        for (i = first; i < first + n; i++) {
            const struct ct_ring_row *row = &words->rings[i];

            if (row->next >= 0 && row->next < c->nranks)
                next[r] = row->next;
            if (row->prev >= 0 && row->prev < c->nranks)
                next[row->prev] = r;
        }
    }
    for (r = 0; r < c->nranks; r++)
        known += next[r] != CT_NONE;
    return known == c->nranks;
}

static int count_hops(const struct ct_trace *trace, const struct ct_job *job,
                      int comm)
{
    const struct ct_comm *c = &job->comms[comm];
    int *next = ct_alloc((size_t)c->nranks, sizeof(*next));
    bool known = ring_of(trace, c, next);
    int r, hops = 0;

    for (r = 0; r < c->nranks && known; r++) {
        struct ct_link_fact fact;

        ct_pair_link(trace, job, comm, r, next[r], &fact);
        known = fact.link != CT_LINK_UNKNOWN;
        hops += ct_link_is_network(fact.link);
    }
    free(next);
    return known ? hops : CT_NONE;
}

struct port { /* key: a port of a node, by NCCL's number of it */
    int node, transport, device;
};

/* Adds the ports that a member's connections use to what their nodes do. */
static void add_ports(const struct ct_process *p,
                      const struct ct_member *member, int rank,
                      struct ct_intern *ports, int *of_node)
{
    const struct ct_conn_row *rows;
    int n, i;

    rows = ct_conns_in(p, member->row, &n);
    for (i = 0; i < n; i++) {
        const struct ct_via via = ct_via_parse(rows[i].via);
        const struct port key = {p->node, (int)via.transport, via.device};
        const int known = ports->n;

        if (!ct_via_is_network(&via) ||
            (rows[i].receives ? rows[i].dst : rows[i].src) != rank)
            continue;
        if (ct_intern_add(ports, &key, sizeof(key)) == known)
            of_node[p->node]++;
    }
}

static int count_nics(const struct ct_trace *trace, const struct ct_job *job,
                      const struct ct_comm *c)
{
    int *of_node = ct_alloc((size_t)job->nnodes, sizeof(*of_node));
    struct ct_intern ports = {0};
    int i, least = CT_NONE;

    for (i = 0; i < c->nranks; i++)
        if (c->members[i].process != CT_NONE)
            add_ports(&trace->processes[c->members[i].process], &c->members[i],
                      i, &ports, of_node);
    for (i = 0; i < job->nnodes; i++)
        if (of_node[i] && (least == CT_NONE || of_node[i] < least))
            least = of_node[i];
    ct_intern_release(&ports);
    free(of_node);
    return least;
}

void ct_link_counts(const struct ct_trace *trace, const struct ct_job *job,
                    int comm)
{
    struct ct_comm *c = &job->comms[comm];

    c->hops = count_hops(trace, job, comm);
    c->nics = count_nics(trace, job, c);
}
