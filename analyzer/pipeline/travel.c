#include "pipeline/travel.h"

#include <stdlib.h>

#include "trace/clocks.h"

struct edge {      /* transfers of one size between two processes, both ways */
    int low, high; /* processes */
    uint64_t bytes;
    int usage; /* one of them */
};

struct message {
    int step;
    bool up;    /* from low to high */
    int64_t ns; /* receiver's end - sender's start */
    int instance;
};

struct ops { /* of an instance, if timed: in sender's and receiver's ops */
    int send, recv;
};

struct travels {
    const struct ct_trace *trace;
    const struct ct_job *job;
    struct ops *ops; /* per instance */
    int nedges;
    struct edge *edges;
    int *edge_of;             /* per usage; CT_NONE */
    int *first, *sorted;      /* instances, edge by edge */
    struct message *messages; /* of the longest edge */
};

static void note_ops(const struct travels *t, const struct ct_process *process)
{
    for (int i = 0; i < process->nops; i++) {
        const struct ct_op_row *op = &process->ops[i];
        const enum ct_op_class cls =
            ct_op_infos[process->classes[op->cls].base].cls;

        if (op->instance == CT_NONE || ct_op_start_ns(op) == CT_NO_TIME ||
            ct_op_gpu_ns(op) == CT_NO_TIME)
            continue;
        if (cls == CT_SEND)
            t->ops[op->instance].send = i;
        else if (cls == CT_RECV)
            t->ops[op->instance].recv = i;
    }
}

static int compare_edges(const void *pa, const void *pb)
{
    const struct edge *a = pa;
    const struct edge *b = pb;

    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return a->usage - b->usage;
}

static const struct ct_process *end_of(const struct travels *t, int usage,
                                       bool sender, int *process_p)
{
    const struct ct_usage *u = &t->job->usages[usage];

    *process_p =
        t->job->comms[u->comm].members[sender ? u->src : u->dst].process;
    return *process_p == CT_NONE ? NULL : &t->trace->processes[*process_p];
}

static void add_edge(struct travels *t, int usage)
{
    int from, to;

    if (!ct_is_p2p(t->job->usages[usage].base) ||
        !end_of(t, usage, true, &from) || !end_of(t, usage, false, &to) ||
        from == to)
        return;
    t->edges[t->nedges++] =
        (struct edge){from < to ? from : to, from < to ? to : from,
                      t->job->usages[usage].bytes, usage};
}

static bool same_edge(const struct edge *a, const struct edge *b)
{
    return a->low == b->low && a->high == b->high && a->bytes == b->bytes;
}

/* Usages that differ in their direction, or grouping, are one edge. */
static void number_edges(struct travels *t)
{
    int n = 0;

    for (int u = 0; u < t->job->nusages; u++) {
        t->edge_of[u] = CT_NONE;
        add_edge(t, u);
    }
    qsort(t->edges, (size_t)t->nedges, sizeof *t->edges, compare_edges);
    for (int i = 0; i < t->nedges; i++) {
        if (n == 0 || !same_edge(&t->edges[i], &t->edges[n - 1]))
            t->edges[n++] = t->edges[i];
        t->edge_of[t->edges[i].usage] = n - 1;
    }
    t->nedges = n;
}

static bool is_whole(const struct travels *t, int instance)
{
    return t->edge_of[t->job->instances[instance].usage] != CT_NONE &&
           t->ops[instance].send != CT_NONE && t->ops[instance].recv != CT_NONE;
}

/* Counting sort; returns the length of the longest edge. */
static int sort_instances(struct travels *t)
{
    const struct ct_job *job = t->job;
    int longest = 0;

    for (int i = 0; i < job->ninstances; i++)
        if (is_whole(t, i))
            t->first[t->edge_of[job->instances[i].usage] + 2]++;
    for (int e = 2; e < t->nedges + 2; e++) {
        longest = t->first[e] > longest ? t->first[e] : longest;
        t->first[e] += t->first[e - 1];
    }
    for (int i = 0; i < job->ninstances; i++)
        if (is_whole(t, i))
            t->sorted[t->first[t->edge_of[job->instances[i].usage] + 1]++] = i;
    return longest;
}

static struct message message_of(const struct travels *t, int instance)
{
    const int usage = t->job->instances[instance].usage;
    int from, to;
    const struct ct_process *sender = end_of(t, usage, true, &from);
    const struct ct_process *receiver = end_of(t, usage, false, &to);
    const struct ct_op_row *send = &sender->ops[t->ops[instance].send];
    const struct ct_op_row *recv = &receiver->ops[t->ops[instance].recv];

    return (struct message){
        .step = ct_op_step(receiver, recv),
        .up = from < to,
        .ns = ct_common_end(t->trace, receiver, recv) -
              ct_common_ns(t->trace, sender, ct_op_start_ns(send)),
        .instance = instance};
}

static int compare_steps(const void *pa, const void *pb)
{
    const struct message *a = pa;
    const struct message *b = pb;

    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return a->instance - b->instance;
}

/* Travel time from the n messages of one edge; CT_NO_TIME: no step has both
 * directions. */
static int64_t travel(const struct message *messages, int n)
{
    int64_t best = CT_NO_TIME;
    int k;

    for (int i = 0; i < n; i += k) {
        int64_t least[2] = {INT64_MAX, INT64_MAX};

        for (k = 0; i + k < n && messages[i + k].step == messages[i].step;
             k++) {
            int64_t *slot = &least[messages[i + k].up];

            if (messages[i + k].ns < *slot)
                *slot = messages[i + k].ns;
        }
        if (least[0] == INT64_MAX || least[1] == INT64_MAX)
            continue;
        const int64_t ns = (least[0] + least[1]) / 2;

        if (ns > 0 && (best == CT_NO_TIME || ns < best))
            best = ns;
    }
    return best;
}

/* The n instances of one edge. */
static void set_times(const struct travels *t, const int *instances, int n,
                      int64_t *times)
{
    int k = 0;
    int64_t ns;

    for (int i = 0; i < n; i++) {
        t->messages[k] = message_of(t, instances[i]);
        k += t->messages[k].step != CT_NONE;
    }
    qsort(t->messages, (size_t)k, sizeof *t->messages, compare_steps);
    ns = travel(t->messages, k);
    for (int i = 0; i < k && ns != CT_NO_TIME; i++)
        times[t->messages[i].instance] = ns;
}

static bool measure(struct travels *t, int64_t *times)
{
    for (int i = 0; i < t->job->ninstances; i++) {
        times[i] = t->job->instances[i].transfer_ns;
        t->ops[i] = (struct ops){CT_NONE, CT_NONE};
    }
    for (int i = 0; i < t->job->nprocesses; i++)
        note_ops(t, &t->trace->processes[t->job->processes[i]]);
    number_edges(t);
    t->messages = malloc((size_t)(sort_instances(t) + 1) * sizeof *t->messages);
    if (!t->messages)
        return false;
    for (int e = 0; e < t->nedges; e++)
        set_times(t, t->sorted + t->first[e], t->first[e + 1] - t->first[e],
                  times);
    return true;
}

int64_t *ct_travel_times(const struct ct_trace *trace, const struct ct_job *job)
{
    const size_t n = (size_t)job->ninstances + 1;
    const size_t usages = (size_t)job->nusages + 2;
    int64_t *times = malloc(n * sizeof *times);
    struct travels t = {.trace = trace,
                        .job = job,
                        .ops = malloc(n * sizeof *t.ops),
                        .edges = malloc(usages * sizeof *t.edges),
                        .edge_of = malloc(usages * sizeof *t.edge_of),
                        .first = calloc(usages, sizeof *t.first),
                        .sorted = malloc(n * sizeof *t.sorted)};

    if (!times || !t.ops || !t.edges || !t.edge_of || !t.first || !t.sorted ||
        !measure(&t, times)) {
        free(times);
        times = NULL;
    }
    free(t.ops);
    free(t.edges);
    free(t.edge_of);
    free(t.first);
    free(t.sorted);
    free(t.messages);
    return times;
}
