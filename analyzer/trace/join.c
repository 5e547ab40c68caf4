/* Which processes are one job, and how they sit on machines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/intern.h"
#include "trace/stages.h"

static int root_of(int *parents, int i)
{
    while (parents[i] != i)
        i = parents[i] = parents[parents[i]];
    return i;
}

/* Union-find: processes that hold a communicator of one uid. Sets
 * process->job to the root for now. */
static void unite(struct ct_trace *trace)
{
    int *parents = ct_alloc((size_t)trace->nprocesses, sizeof(*parents));
    struct ct_intern uids = {0};
    int *holders = NULL, capacity = 0;
    int i, j;

    for (i = 0; i < trace->nprocesses; i++) {
        const struct ct_process *p = &trace->processes[i];

        parents[i] = i;
        for (j = 0; j < p->ncomms; j++) {
            int n = uids.n;
            int uid = ct_intern_add(&uids, &p->comms[j].uid, sizeof(uint64_t));

            holders = ct_grow(holders, &capacity, uid, sizeof(*holders));
            if (uid == n)
                holders[uid] = i;
            parents[root_of(parents, i)] = root_of(parents, holders[uid]);
        }
    }
    for (i = 0; i < trace->nprocesses; i++)
        trace->processes[i].job = root_of(parents, i);
    ct_intern_release(&uids);
    free(holders);
    free(parents);
}

struct group { /* a job before it has its number */
    int root, n, first;
    int64_t start_ns;
};

static int earlier_first(const void *left, const void *right)
{
    const struct group *a = left, *b = right;

    if (!a->n != !b->n)
        return a->n ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return a->first < b->first ? -1 : 1;
}

/* What is common to the processes of a job. */
static void describe(struct ct_job *job, const struct ct_process *p)
{
    if (job->nprocesses == 0 || p->t0_real_ns < job->start_real_ns)
        job->start_real_ns = p->t0_real_ns;
    if (!job->run_id)
        job->run_id = p->run_id;
    if (p->restart > job->restart)
        job->restart = p->restart;
}

static void number_jobs(struct ct_trace *trace)
{
    int n = trace->nprocesses, i, njobs = 0;
    struct group *groups = ct_alloc((size_t)n, sizeof(*groups));
    int *job_of = ct_alloc((size_t)n, sizeof(*job_of));

    for (i = 0; i < n; i++)
        groups[i] = (struct group){.root = i, .first = n};
    for (i = 0; i < n; i++) {
        struct group *group = &groups[trace->processes[i].job];

        const int64_t start_ns = trace->processes[i].t0_real_ns;

        if (!group->n++)
            group->first = i;
        if (group->n == 1 || start_ns < group->start_ns)
            group->start_ns = start_ns;
    }
    qsort(groups, (size_t)n, sizeof(*groups), earlier_first);
    for (; njobs < n && groups[njobs].n; njobs++)
        job_of[groups[njobs].root] = njobs;
    trace->njobs = njobs;
    trace->jobs =
        ct_arena_alloc(trace->arena, (size_t)njobs, sizeof(*trace->jobs));
    for (i = 0; i < njobs; i++)
        trace->jobs[i].processes = ct_arena_alloc(
            trace->arena, (size_t)groups[i].n, sizeof(*trace->jobs->processes));
    for (i = 0; i < n; i++) {
        struct ct_process *p = &trace->processes[i];
        struct ct_job *job;

        p->job = job_of[p->job];
        job = &trace->jobs[p->job];
        describe(job, p);
        job->processes[job->nprocesses++] = i;
    }
    free(job_of);
    free(groups);
}

/* Rank in the largest communicator that p holds; CT_NONE: it holds none. */
static int rank_by_comm(const struct ct_process *p, int *nranks_p)
{
    int i, rank = CT_NONE;

    *nranks_p = 0;
    for (i = 0; i < p->ncomms; i++)
        if (p->comms[i].nranks > *nranks_p) {
            *nranks_p = p->comms[i].nranks;
            rank = p->comms[i].rank;
        }
    return rank;
}

struct ranked {
    int rank, process;
};

static int by_rank(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->process < b->process ? -1 : 1;
}

/* Sorts the job's processes by rank; false: two have the same, or one has
 * none. */
static bool sort_by_rank(struct ct_trace *trace, struct ct_job *job)
{
    struct ranked *order = ct_alloc((size_t)job->nprocesses, sizeof(*order));
    bool distinct = true;
    int i;

    for (i = 0; i < job->nprocesses; i++)
        order[i] = (struct ranked){trace->processes[job->processes[i]].rank,
                                   job->processes[i]};
    qsort(order, (size_t)job->nprocesses, sizeof(*order), by_rank);
    for (i = 0; i < job->nprocesses; i++) {
        job->processes[i] = order[i].process;
        distinct &= order[i].rank != CT_NONE &&
                    (i == 0 || order[i].rank != order[i - 1].rank);
    }
    free(order);
    return distinct;
}

/* The launcher's ranks where they tell the processes apart, else the ranks in
 * the largest communicators. */
static void set_ranks(struct ct_trace *trace, struct ct_job *job)
{
    bool by_launcher = sort_by_rank(trace, job);
    int i, nranks;

    for (i = 0; i < job->nprocesses; i++) {
        struct ct_process *p = &trace->processes[job->processes[i]];
        int rank = rank_by_comm(p, &nranks);

        if (!by_launcher && rank != CT_NONE)
            p->rank = rank;
        if (nranks > job->world_size)
            job->world_size = nranks;
    }
    for (i = 0; by_launcher && i < job->nprocesses; i++) {
        const struct ct_process *p = &trace->processes[job->processes[i]];

        if (p->world_size > job->world_size)
            job->world_size = p->world_size;
    }
    if (!by_launcher)
        sort_by_rank(trace, job);
}

/* The GPU that p's largest communicator runs on; NULL: unknown. */
static const struct ct_device_row *main_device(const struct ct_process *p)
{
    int i, nranks = 0, device = CT_NONE;

    for (i = 0; i < p->ncomms; i++)
        if (p->comms[i].nranks > nranks && p->comms[i].device != CT_NONE) {
            nranks = p->comms[i].nranks;
            device = p->comms[i].device;
        }
    for (i = 0; i < p->ndevices; i++)
        if (device == CT_NONE || p->devices[i].id == device)
            return &p->devices[i];
    return NULL;
}

/* A fabric cluster of zeros is NVML's word for none. */
static bool has_cluster(const struct ct_device_row *device)
{
    return device && device->cluster &&
           device->cluster[strspn(device->cluster, "0-")];
}

static void place(struct ct_trace *trace, struct ct_job *job)
{
    struct ct_intern nodes = {0}, domains = {0};
    char key[256];
    int i;

    job->node_names = ct_arena_alloc(trace->arena, (size_t)job->nprocesses,
                                     sizeof(*job->node_names));
    for (i = 0; i < job->nprocesses; i++) {
        struct ct_process *p = &trace->processes[job->processes[i]];
        const struct ct_device_row *device = main_device(p);

        p->node = ct_intern_add(&nodes, p->host_id, strlen(p->host_id));
        if (p->node == job->nnodes)
            job->node_names[job->nnodes++] = *p->host ? p->host : p->host_id;
        if (has_cluster(device))
            snprintf(key, sizeof(key), "cluster %d %.200s", device->clique,
                     device->cluster);
        else
            snprintf(key, sizeof(key), "node %d", p->node);
        p->domain = ct_intern_add(&domains, key, strlen(key));
    }
    job->ndomains = domains.n;
    ct_intern_release(&nodes);
    ct_intern_release(&domains);
}

static void meet_comm(struct ct_trace *trace, struct ct_job *job,
                      struct ct_intern *uids, int *capacity, int process)
{
    struct ct_process *p = &trace->processes[process];
    int j;

    for (j = 0; j < p->ncomms; j++) {
        struct ct_comm_row *row = &p->comms[j];
        struct ct_comm *comm;

        row->comm = ct_intern_add(uids, &row->uid, sizeof(row->uid));
        if (row->comm == job->ncomms) {
            job->comms =
                ct_grow(job->comms, capacity, job->ncomms, sizeof(*job->comms));
            job->comms[job->ncomms++] =
                (struct ct_comm){.uid = row->uid, .parent = CT_NONE};
        }
        comm = &job->comms[row->comm];
        if (row->nranks > comm->nranks)
            comm->nranks = row->nranks;
        if (!comm->name)
            comm->name = row->name;
        if (!comm->origin && *row->origin)
            comm->origin = row->origin;
    }
}

static void fill_members(struct ct_trace *trace, struct ct_job *job,
                         int process)
{
    struct ct_process *p = &trace->processes[process];
    int j;

    for (j = 0; j < p->ncomms; j++) {
        struct ct_comm *comm = &job->comms[p->comms[j].comm];
        struct ct_member *member = &comm->members[p->comms[j].rank];

        if (comm->parent == CT_NONE && p->comms[j].parent != CT_NONE)
            comm->parent = p->comms[p->comms[j].parent].comm;
        if (member->process != CT_NONE)
            continue; /* a copy of a trace: the first counts */
        *member = (struct ct_member){process, j};
        comm->nknown++;
    }
}

static void join_comms(struct ct_trace *trace, struct ct_job *job)
{
    struct ct_intern uids = {0};
    int i, j, capacity = 0;

    for (i = 0; i < job->nprocesses; i++)
        meet_comm(trace, job, &uids, &capacity, job->processes[i]);
    ct_intern_release(&uids);
    ct_arena_adopt(trace->arena, job->comms);
    for (i = 0; i < job->ncomms; i++) {
        struct ct_comm *comm = &job->comms[i];

        comm->members = ct_arena_alloc(trace->arena, (size_t)comm->nranks,
                                       sizeof(*comm->members));
        for (j = 0; j < comm->nranks; j++)
            comm->members[j] = (struct ct_member){CT_NONE, CT_NONE};
    }
    for (i = 0; i < job->nprocesses; i++)
        fill_members(trace, job, job->processes[i]);
    for (i = 0; i < job->ncomms; i++)
        job->missing += job->comms[i].nranks - job->comms[i].nknown;
}

static void join_job(struct ct_trace *trace, struct ct_job *job)
{
    int i;

    set_ranks(trace, job);
    place(trace, job);
    join_comms(trace, job);
    ct_job_links(trace, job);
    for (i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = &trace->processes[job->processes[i]];

        job->lost_ops = ct_add_time(job->lost_ops, p->lost);
    }
}

void ct_trace_join(struct ct_trace *trace)
{
    int i;

    unite(trace);
    number_jobs(trace);
    for (i = 0; i < trace->njobs; i++)
        join_job(trace, &trace->jobs[i]);
}
