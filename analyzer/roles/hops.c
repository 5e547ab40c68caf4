#include "roles/hops.h"

#include <stdlib.h>

int ct_hops_root(int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

static bool push_hop(struct ct_hops *graph, const struct ct_hop *hop)
{
    if (graph->nhops == graph->room) {
        const int room = graph->room ? graph->room * 2 : 256;
        struct ct_hop *hops =
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
static int peer_of(const struct ct_hops *graph, int id,
                   const struct ct_op_class_row *cls, const bool *exchanges)
{
    const struct ct_process *process = &graph->trace->processes[id];
    const enum ct_op_class c = ct_op_infos[cls->base].cls;
    const int comm = process->comms[cls->comm].comm;

    if ((c != CT_SEND && c != CT_RECV) || comm < 0 || exchanges[comm] ||
        cls->count == 0)
        return CT_NONE;
    if (cls->peer < 0 || cls->peer >= graph->job->comms[comm].nranks ||
        cls->peer == process->comms[cls->comm].rank)
        return CT_NONE;
    /* One process may hold several ranks: what they send each other is no hop.
     */
    const int peer = graph->job->comms[comm].members[cls->peer].process;
    return peer == id ? CT_NONE : peer;
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

static bool collect_window(struct ct_hops *graph, int id,
                           const struct ct_window *window, double weight,
                           bool captured, const bool *exchanges)
{
    const struct ct_process *process = &graph->trace->processes[id];
    bool first = true;

    for (int i = window->first; i <= window->last; i++) {
        const struct ct_op_class_row *cls =
            &process->classes[process->ops[i].cls];
        const int peer = peer_of(graph, id, cls, exchanges);
        const bool send = ct_op_infos[cls->base].cls == CT_SEND;
        const double times =
            captured ? weight : weight * ct_window_runs(process, window, i);
        const struct ct_hop hop = {send ? id : peer, send ? peer : id,
                                   cls->bytes, send ? times : 0,
                                   send ? 0 : times};

        if (peer == CT_NONE || !(times > 0))
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
    const struct ct_hop *a = pa;
    const struct ct_hop *b = pb;

    if (a->src != b->src)
        return a->src < b->src ? -1 : 1;
    if (a->dst != b->dst)
        return a->dst < b->dst ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Adds up equal hops. */
static void merge_hops(struct ct_hops *graph)
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

bool ct_hops_has(const struct ct_hops *graph, int src, int dst)
{
    int low = 0, high = graph->nhops;

    while (low < high) {
        const int middle = (low + high) / 2;
        const struct ct_hop *hop = &graph->hops[middle];

        if (hop->src < src || (hop->src == src && hop->dst < dst))
            low = middle + 1;
        else
            high = middle;
    }
    return low < graph->nhops && graph->hops[low].src == src &&
           graph->hops[low].dst == dst;
}

static void link_neighbours(struct ct_hops *graph, int a, int b)
{
    graph->parent[ct_hops_root(graph->parent, a)] =
        ct_hops_root(graph->parent, b);
    if (graph->degree[a] < 2)
        graph->next[graph->degree[a]][a] = b;
    if (graph->degree[b] < 2)
        graph->next[graph->degree[b]][b] = a;
    graph->degree[a]++;
    graph->degree[b]++;
}

static void connect(struct ct_hops *graph)
{
    for (int i = 0; i < graph->nhops; i++) {
        const struct ct_hop *hop = &graph->hops[i];

        if (i > 0 && hop->src == hop[-1].src && hop->dst == hop[-1].dst)
            continue;
        if (hop->src < hop->dst || !ct_hops_has(graph, hop->dst, hop->src))
            link_neighbours(graph, hop->src, hop->dst);
    }
}

/* What graphs ran in steps. */
static bool collect_captured(struct ct_hops *graph, int id,
                             const bool *exchanges)
{
    const struct ct_process *process = &graph->trace->processes[id];
    struct ct_window window;
    double runs;

    for (int i = 0;
         (i = ct_captured_window(process, i, &window, &runs)) != CT_NONE;)
        if (!collect_window(graph, id, &window, runs, true, exchanges))
            return false;
    return true;
}

static bool collect(struct ct_hops *graph, const bool *exchanges)
{
    for (int i = 0; i < graph->job->nprocesses; i++) {
        const int id = graph->job->processes[i];
        struct ct_window windows[CT_WINDOWS];
        const int n = ct_windows(&graph->trace->processes[id], windows);

        for (int w = 0; w < n; w++)
            if (!collect_window(graph, id, &windows[w], 1.0 / n, false,
                                exchanges))
                return false;
        if (!collect_captured(graph, id, exchanges))
            return false;
    }
    return true;
}

static bool init(struct ct_hops *graph, const struct ct_trace *trace,
                 const struct ct_job *job)
{
    const size_t n = (size_t)trace->nprocesses + 1;

    *graph = (struct ct_hops){.trace = trace, .job = job};
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

void ct_hops_release(struct ct_hops *graph)
{
    free(graph->hops);
    free(graph->parent);
    free(graph->degree);
    free(graph->next[0]);
    free(graph->next[1]);
    free(graph->apart);
    free(graph->recv_first);
}

int ct_hops_find(const struct ct_trace *trace, const struct ct_job *job,
                 const bool *exchanges, struct ct_hops *graph)
{
    if (!init(graph, trace, job) || !collect(graph, exchanges))
        return -1;
    merge_hops(graph);
    connect(graph);
    return 0;
}
