/* Links: the worst hop of each communicator, and the pairs of ranks that send
 * to each other or that NCCL connected. */
#include <stdlib.h>

#include "report/jobdb_insert.h"

static void put_worst(struct jobdb *db, const struct ct_comm *c)
{
    jobdb_start(db, JOBDB_T_link);
    jobdb_int(db, (int64_t)c->uid);
    jobdb_none(db);
    jobdb_none(db);
    jobdb_int(db, c->link);
    jobdb_index(db, c->speed);
    jobdb_index(db, c->hops);
    jobdb_index(db, c->nics);
    jobdb_text(db, c->evidence);
    jobdb_text(db, c->detail);
    jobdb_end(db);
}

struct edges {
    int n, capacity;
    struct edge {
        int comm, src, dst;
    } * edges;
};

static void add_edge(struct edges *list, int comm, int src, int dst)
{
    if (list->n == list->capacity) {
        const int capacity = list->capacity * 2 + 64;
        struct edge *edges =
            realloc(list->edges, (size_t)capacity * sizeof *edges);

        if (!edges)
            return;
        list->edges = edges;
        list->capacity = capacity;
    }
    list->edges[list->n++] = (struct edge){comm, src, dst};
}

static void add_conns(struct edges *list, const struct ct_job *job,
                      const struct ct_process *p)
{
    for (int i = 0; i < p->nccl.nconns; i++) {
        const struct ct_conn_row *row = &p->nccl.conns[i];
        const int comm = p->comms[row->comm].comm;
        const int nranks = job->comms[comm].nranks;

        if (row->src >= 0 && row->src < nranks && row->dst >= 0 &&
            row->dst < nranks)
            add_edge(list, comm, row->src, row->dst);
    }
}

static int compare_edges(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    return (x->dst > y->dst) - (x->dst < y->dst);
}

static void put_edge(struct jobdb *db, const struct view *view,
                     const struct edge *edge)
{
    struct ct_link_fact fact;

    ct_pair_link(view->trace, view->job, edge->comm, edge->src, edge->dst,
                 &fact);
    jobdb_start(db, JOBDB_T_link);
    jobdb_int(db, (int64_t)view->job->comms[edge->comm].uid);
    jobdb_int(db, edge->src);
    jobdb_int(db, edge->dst);
    jobdb_int(db, fact.link);
    jobdb_index(db, fact.speed);
    jobdb_none(db);
    jobdb_none(db);
    jobdb_text(db, fact.evidence);
    jobdb_text(db, fact.detail[0] ? fact.detail : NULL);
    jobdb_end(db);
}

void jobdb_put_links(struct jobdb *db, const struct view *view)
{
    const struct ct_job *job = view->job;
    struct edges list = {0};

    for (int i = 0; i < job->ncomms; i++)
        put_worst(db, &job->comms[i]);
    for (int i = 0; i < job->nusages; i++)
        if (ct_usage_is_p2p(&job->usages[i]))
            add_edge(&list, job->usages[i].comm, job->usages[i].src,
                     job->usages[i].dst);
    for (int i = 0; i < job->nprocesses; i++)
        add_conns(&list, job, &view->trace->processes[job->processes[i]]);
    if (list.n)
        qsort(list.edges, (size_t)list.n, sizeof *list.edges, compare_edges);
    for (int i = 0; i < list.n && !db->error[0]; i++)
        if (i == 0 || compare_edges(&list.edges[i - 1], &list.edges[i]) != 0)
            put_edge(db, view, &list.edges[i]);
    free(list.edges);
}
