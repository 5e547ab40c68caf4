#include "roles/chains.h"

#include <math.h>
#include <stdlib.h>

#define SAME_SIZE .01

struct hop { /* messages of one size from one process to another */
    int src, dst;
    uint64_t bytes;
    double sent, received; /* per step */
};

struct graph {
    const struct ct_trace *trace;
    const struct ct_job *job;
    int nhops, room;
    struct hop *hops;
    int *parent;      /* union-find over processes */
    int *degree;      /* neighbours */
    int *next[2];     /* the neighbours of a process with one or two */
    bool *apart;      /* process has a message that no other one accompanies */
    bool *recv_first; /* its first message of a step is a receive */
};

static int find_root(int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

static bool push_hop(struct graph *graph, const struct hop *hop)
{
    if (graph->nhops == graph->room) {
        const int room = graph->room ? graph->room * 2 : 256;
        struct hop *hops =
            realloc(graph->hops, (size_t)room * sizeof *graph->hops);

        if (!hops)
            return false;
        graph->hops = hops;
        graph->room = room;
    }
    graph->hops[graph->nhops++] = *hop;
    return true;
}

/* The process at the other end of a send/recv; CT_NONE: collective, itself, an
 * exchange, or no trace of it. */
static int peer_of(const struct graph *graph, const struct ct_process *process,
                   const struct ct_op_class_row *cls, const bool *exchanges)
{
    const enum ct_op_class c = ct_op_infos[cls->base].cls;
    const int comm = process->comms[cls->comm].comm;

    if ((c != CT_SEND && c != CT_RECV) || comm < 0 || exchanges[comm] ||
        cls->count == 0)
        return CT_NONE;
    if (cls->peer < 0 || cls->peer >= graph->job->comms[comm].nranks ||
        cls->peer == process->comms[cls->comm].rank)
        return CT_NONE;
    return graph->job->comms[comm].members[cls->peer].process;
}

/* Whether an op of the other direction, same peer and size shares the launch of
 * op i. */
static bool has_partner(const struct ct_process *process, int i, int first,
                        int last)
{
    const struct ct_op_row *op = &process->ops[i];
    const struct ct_op_class_row *cls = &process->classes[op->cls];

    for (int step = -1; step <= 1; step += 2)
        for (int k = i + step;
             op->launch != CT_NONE && k >= first && k <= last &&
             process->ops[k].launch == op->launch;
             k += step) {
            const struct ct_op_class_row *other =
                &process->classes[process->ops[k].cls];

            if (other->peer == cls->peer && other->bytes == cls->bytes &&
                other->base != cls->base)
                return true;
        }
    return false;
}

static bool collect_window(struct graph *graph, int id,
                           const struct ct_window *window, double weight,
                           const bool *exchanges)
{
    const struct ct_process *process = &graph->trace->processes[id];
    bool first = true;

    for (int i = window->first; i <= window->last; i++) {
        const struct ct_op_class_row *cls =
            &process->classes[process->ops[i].cls];
        const int peer = peer_of(graph, process, cls, exchanges);
        const bool send = ct_op_infos[cls->base].cls == CT_SEND;
        const struct hop hop = {send ? id : peer, send ? peer : id, cls->bytes,
                                send ? weight : 0, send ? 0 : weight};

        if (peer == CT_NONE)
            continue;
        if (first)
            graph->recv_first[id] = !send;
        first = false;
        if (!has_partner(process, i, window->first, window->last))
            graph->apart[id] = true;
        if (!push_hop(graph, &hop))
            return false;
    }
    return true;
}

static int compare_hops(const void *pa, const void *pb)
{
    const struct hop *a = pa;
    const struct hop *b = pb;

    if (a->src != b->src)
        return a->src < b->src ? -1 : 1;
    if (a->dst != b->dst)
        return a->dst < b->dst ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Adds up equal hops. */
static void merge_hops(struct graph *graph)
{
    int n = 0;

    if (graph->nhops == 0)
        return;
    qsort(graph->hops, (size_t)graph->nhops, sizeof *graph->hops, compare_hops);
    for (int i = 0; i < graph->nhops; i++) {
        if (n > 0 && compare_hops(&graph->hops[n - 1], &graph->hops[i]) == 0) {
            graph->hops[n - 1].sent += graph->hops[i].sent;
            graph->hops[n - 1].received += graph->hops[i].received;
        } else {
            graph->hops[n++] = graph->hops[i];
        }
    }
    graph->nhops = n;
}

static bool has_hop(const struct graph *graph, int src, int dst)
{
    int low = 0, high = graph->nhops;

    while (low < high) {
        const int middle = (low + high) / 2;
        const struct hop *hop = &graph->hops[middle];

        if (hop->src < src || (hop->src == src && hop->dst < dst))
            low = middle + 1;
        else
            high = middle;
    }
    return low < graph->nhops && graph->hops[low].src == src &&
           graph->hops[low].dst == dst;
}

static void link_neighbours(struct graph *graph, int a, int b)
{
    graph->parent[find_root(graph->parent, a)] = find_root(graph->parent, b);
    if (graph->degree[a] < 2)
        graph->next[graph->degree[a]][a] = b;
    if (graph->degree[b] < 2)
        graph->next[graph->degree[b]][b] = a;
    graph->degree[a]++;
    graph->degree[b]++;
}

static void connect(struct graph *graph)
{
    for (int i = 0; i < graph->nhops; i++) {
        const struct hop *hop = &graph->hops[i];

        if (i > 0 && hop->src == hop[-1].src && hop->dst == hop[-1].dst)
            continue;
        if (hop->src < hop->dst || !has_hop(graph, hop->dst, hop->src))
            link_neighbours(graph, hop->src, hop->dst);
    }
}

/* Numbers the stages of a path from its end `at`. */
static void number_stages(const struct graph *graph, struct ct_chains *chains,
                          int at)
{
    int before = CT_NONE;

    for (int stage = 0; at != CT_NONE; stage++) {
        int after = CT_NONE;

        chains->stage[at] = stage;
        for (int k = 0; k < 2 && k < graph->degree[at]; k++)
            if (graph->next[k][at] != before)
                after = graph->next[k][at];
        before = at;
        at = after;
    }
}

struct tally {         /* of the processes of one component */
    int n, ends, most; /* ends: with one neighbour; most: neighbours */
    int first_end, last_end;
    bool together;
};

static enum ct_chain_shape shape_of(const struct tally *tally)
{
    if (tally->n == 2)
        return tally->together ? CT_CHAIN_TOGETHER : CT_CHAIN_PATH;
    if (tally->most > 2)
        return CT_CHAIN_OTHER;
    return tally->ends == 2 ? CT_CHAIN_PATH : CT_CHAIN_CYCLE;
}

static void tally_components(const struct graph *graph, struct tally *tallies)
{
    for (int i = 0; i < graph->trace->nprocesses; i++) {
        struct tally *tally = &tallies[find_root(graph->parent, i)];

        if (graph->degree[i] == 0)
            continue;
        if (tally->n++ == 0)
            tally->together = true;
        if (graph->degree[i] == 1 && tally->ends++ == 0)
            tally->first_end = i;
        else if (graph->degree[i] == 1)
            tally->last_end = i;
        if (graph->degree[i] > tally->most)
            tally->most = graph->degree[i];
        tally->together = tally->together && !graph->apart[i];
    }
}

static void shape_chains(const struct graph *graph, struct ct_chains *chains,
                         struct tally *tallies)
{
    tally_components(graph, tallies);
    for (int i = 0; i < graph->trace->nprocesses; i++) {
        const int root = find_root(graph->parent, i);
        struct tally *tally = &tallies[root];

        if (graph->degree[i] == 0)
            continue;
        if (chains->chain[root] == CT_NONE) {
            chains->chain[root] = chains->n;
            chains->chains[chains->n++] =
                (struct ct_chain){shape_of(tally), tally->n, true};
        }
        chains->chain[i] = chains->chain[root];
    }
    for (int i = 0; i < graph->trace->nprocesses; i++) {
        const struct tally *tally = &tallies[i];
        const bool turned = tally->n > 0 &&
                            graph->recv_first[tally->first_end] &&
                            !graph->recv_first[tally->last_end];

        if (tally->n > 0 && shape_of(tally) == CT_CHAIN_PATH)
            number_stages(graph, chains,
                          turned ? tally->last_end : tally->first_end);
    }
    for (int i = 0; i < graph->nhops; i++)
        if (!has_hop(graph, graph->hops[i].dst, graph->hops[i].src))
            chains->chains[chains->chain[graph->hops[i].src]].both_ways = false;
}

static bool on_path(const struct ct_chains *chains, const struct hop *hop)
{
    return chains->chains[chains->chain[hop->src]].shape == CT_CHAIN_PATH;
}

static double messages(const struct hop *hop)
{
    return hop->sent > hop->received ? hop->sent : hop->received;
}

static int compare_bytes(const void *pa, const void *pb)
{
    const struct hop *a = pa;
    const struct hop *b = pb;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return messages(a) < messages(b) ? -1 : messages(a) > messages(b);
}

/* The size that carries most, and how often a boundary sees it. Reorders the
 * hops. */
static void weigh_payload(struct graph *graph, struct ct_chains *chains,
                          bool steps)
{
    double most = 0;
    int n = 0, k;

    for (int i = 0; i < graph->nhops; i++)
        if (on_path(chains, &graph->hops[i]))
            graph->hops[n++] = graph->hops[i];
    if (n == 0)
        return;
    qsort(graph->hops, (size_t)n, sizeof *graph->hops, compare_bytes);
    for (int i = 0; i < n; i += k) {
        double volume = 0;

        for (k = 0;
             i + k < n && graph->hops[i + k].bytes == graph->hops[i].bytes; k++)
            volume +=
                messages(&graph->hops[i + k]) * (double)graph->hops[i].bytes;
        if (volume <= most)
            continue;
        most = volume;
        chains->payload = graph->hops[i].bytes;
        chains->micro_batches = steps ? messages(&graph->hops[i + k / 2]) : 0;
    }
}

static void count_paths(struct ct_chains *chains)
{
    int votes = 0;

    for (int i = 0; i < chains->n; i++) {
        int same = 0;

        if (chains->chains[i].shape != CT_CHAIN_PATH)
            continue;
        chains->npaths++;
        for (int k = 0; k < chains->n && k < 64; k++)
            same += chains->chains[k].shape == CT_CHAIN_PATH &&
                    chains->chains[k].nranks == chains->chains[i].nranks;
        if (same > votes) {
            votes = same;
            chains->stages = chains->chains[i].nranks;
        }
    }
}

static bool collect(struct graph *graph, const bool *exchanges)
{
    for (int i = 0; i < graph->job->nprocesses; i++) {
        const int id = graph->job->processes[i];
        struct ct_window windows[CT_WINDOWS];
        const int n = ct_windows(&graph->trace->processes[id], windows);

        for (int w = 0; w < n; w++)
            if (!collect_window(graph, id, &windows[w], 1.0 / n, exchanges))
                return false;
    }
    return true;
}

static bool graph_init(struct graph *graph, const struct ct_trace *trace,
                       const struct ct_job *job)
{
    const size_t n = (size_t)trace->nprocesses + 1;

    *graph = (struct graph){.trace = trace, .job = job};
    graph->parent = malloc(n * sizeof *graph->parent);
    graph->degree = calloc(n, sizeof *graph->degree);
    graph->next[0] = calloc(n, sizeof *graph->next[0]);
    graph->next[1] = calloc(n, sizeof *graph->next[1]);
    graph->apart = calloc(n, sizeof *graph->apart);
    graph->recv_first = calloc(n, sizeof *graph->recv_first);
    for (size_t i = 0; graph->parent && i < n; i++)
        graph->parent[i] = (int)i;
    return graph->parent && graph->degree && graph->next[0] && graph->next[1] &&
           graph->apart && graph->recv_first;
}

static void graph_release(struct graph *graph)
{
    free(graph->hops);
    free(graph->parent);
    free(graph->degree);
    free(graph->next[0]);
    free(graph->next[1]);
    free(graph->apart);
    free(graph->recv_first);
}

int ct_chains_find(const struct ct_trace *trace, const struct ct_job *job,
                   const bool *exchanges, struct ct_chains *chains)
{
    const size_t n = (size_t)trace->nprocesses + 1;
    struct tally *tallies = calloc(n, sizeof *tallies);
    struct graph graph;
    int status = -1;

    *chains = (struct ct_chains){.nprocesses = trace->nprocesses,
                                 .chain = malloc(n * sizeof *chains->chain),
                                 .stage = malloc(n * sizeof *chains->stage),
                                 .chains = calloc(n, sizeof *chains->chains)};
    if (!graph_init(&graph, trace, job) || !tallies || !chains->chain ||
        !chains->stage || !chains->chains || !collect(&graph, exchanges))
        goto out;
    for (size_t i = 0; i < n; i++)
        chains->chain[i] = chains->stage[i] = CT_NONE;
    merge_hops(&graph);
    connect(&graph);
    shape_chains(&graph, chains, tallies);
    count_paths(chains);
    weigh_payload(&graph, chains, job->nsteps > 0);
    status = 0;
out:
    if (status != 0)
        ct_chains_release(chains);
    graph_release(&graph);
    free(tallies);
    return status;
}

void ct_chains_release(struct ct_chains *chains)
{
    free(chains->chain);
    free(chains->stage);
    free(chains->chains);
    *chains = (struct ct_chains){0};
}
