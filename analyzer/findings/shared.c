#include "findings/shared.h"

#include <stdlib.h>

#include "trace/intern.h"

struct tally { /* ways */
    int slow, others;
};

struct pair { /* of nodes: ways between them alone */
    int a, b;
    struct tally ways;
};

struct tallies {
    const struct ct_case *c;
    struct tally *ranks; /* per process of the trace */
    struct tally *nodes;
    struct pair *pairs;
    int *node_ranks;       /* processes of each */
    struct ct_intern keys; /* pairs of nodes */
    int *processes;        /* of a way */
    int *seen;             /* per node: way that came last */
};

static size_t most_ranks(const struct ct_job *job)
{
    int most = 0;

    for (int i = 0; i < job->ncomms; i++)
        most = job->comms[i].nranks > most ? job->comms[i].nranks : most;
    return (size_t)most;
}

static bool begin(struct tallies *t, const struct ct_ways *ways)
{
    const struct ct_job *job = t->c->job;
    const size_t processes = (size_t)t->c->trace->nprocesses + 1;
    const size_t nodes = (size_t)job->nnodes + 1;

    t->ranks = calloc(processes, sizeof *t->ranks);
    t->nodes = calloc(nodes, sizeof *t->nodes);
    t->pairs = calloc((size_t)ways->n + 1, sizeof *t->pairs);
    t->node_ranks = calloc(nodes, sizeof *t->node_ranks);
    t->seen = calloc(nodes, sizeof *t->seen);
    t->processes = malloc((most_ranks(job) + 1) * sizeof *t->processes);
    if (!t->ranks || !t->nodes || !t->pairs || !t->node_ranks || !t->seen ||
        !t->processes)
        return false;
    for (int i = 0; i < job->nprocesses; i++)
        t->node_ranks[t->c->trace->processes[job->processes[i]].node]++;
    return true;
}

static void end(struct tallies *t)
{
    ct_intern_release(&t->keys);
    free(t->ranks);
    free(t->nodes);
    free(t->pairs);
    free(t->node_ranks);
    free(t->seen);
    free(t->processes);
}

static void count(struct tally *tally, bool slow)
{
    if (slow)
        tally->slow++;
    else
        tally->others++;
}

static void count_pair(struct tallies *t, int a, int b, bool slow)
{
    const int key[] = {a < b ? a : b, a < b ? b : a};
    struct pair *pair = &t->pairs[ct_intern_add(&t->keys, key, sizeof key)];

    pair->a = key[0];
    pair->b = key[1];
    count(&pair->ways, slow);
}

static void count_way(struct tallies *t, const struct ct_way *way, int number,
                      bool slow)
{
    const int n = ct_way_processes(t->c->job, way, t->processes);
    int nodes = 0, two[2];

    for (int i = 0; i < n; i++) {
        const int node = t->c->trace->processes[t->processes[i]].node;

        count(&t->ranks[t->processes[i]], slow);
        if (t->seen[node] == number + 1)
            continue;
        t->seen[node] = number + 1;
        count(&t->nodes[node], slow);
        if (nodes < 2)
            two[nodes] = node;
        nodes++;
    }
    if (nodes == 2)
        count_pair(t, two[0], two[1], slow);
}

/* The one of which most ways are slow and none are not; CT_NONE: none, or there
 * are several. */
static int find_one(const struct tally *tallies, int n)
{
    int best = CT_NONE, equals = 0;

    for (int i = 0; i < n; i++) {
        if (tallies[i].slow < 2 || tallies[i].others)
            continue;
        if (best != CT_NONE && tallies[i].slow < tallies[best].slow)
            continue;
        equals = best != CT_NONE && tallies[i].slow == tallies[best].slow;
        best = i;
    }
    return equals ? CT_NONE : best;
}

/* A pair has no equal: a way has one. */
static int find_pair(const struct tallies *t)
{
    int best = CT_NONE;

    for (int i = 0; i < t->keys.n; i++)
        if (t->pairs[i].ways.slow > 1 && !t->pairs[i].ways.others &&
            (best == CT_NONE ||
             t->pairs[i].ways.slow > t->pairs[best].ways.slow))
            best = i;
    return best;
}

static void take(struct ct_shared *shared, enum ct_shared_kind kind, int a,
                 int b, const struct tally *tally)
{
    if (tally->slow > shared->ways)
        *shared = (struct ct_shared){kind, a, b, tally->slow};
}

/* Of what as many share the narrowest: a pair of nodes, a rank, a node. */
static void choose(const struct tallies *t, struct ct_shared *shared)
{
    const int pair = find_pair(t);
    const int rank = find_one(t->ranks, t->c->trace->nprocesses);
    const int node = find_one(t->nodes, t->c->job->nnodes);

    if (pair != CT_NONE)
        take(shared, CT_SHARED_NODES, t->pairs[pair].a, t->pairs[pair].b,
             &t->pairs[pair].ways);
    if (rank != CT_NONE && t->node_ranks[t->c->trace->processes[rank].node] > 1)
        take(shared, CT_SHARED_RANK, rank, CT_NONE, &t->ranks[rank]);
    if (node != CT_NONE)
        take(shared, CT_SHARED_NODE, node, CT_NONE, &t->nodes[node]);
}

bool ct_shared_find(const struct ct_case *c, const struct ct_ways *ways,
                    const bool *slow, bool network, struct ct_shared *shared)
{
    struct tallies t = {.c = c};
    const bool good = begin(&t, ways);

    *shared = (struct ct_shared){.a = CT_NONE, .b = CT_NONE};
    for (int i = 0; good && i < ways->n; i++)
        if (ways->rows[i].network == network &&
            (slow[i] || (ways->rows[i].usual && !ways->rows[i].slow)))
            count_way(&t, &ways->rows[i], i, slow[i]);
    if (good)
        choose(&t, shared);
    end(&t);
    return good;
}

bool ct_shared_holds(const struct ct_case *c, const struct ct_shared *shared,
                     const struct ct_way *way)
{
    const struct ct_comm *comm = &c->job->comms[way->comm];
    bool a = false, b = false, others = false;

    for (int r = 0; r < comm->nranks; r++) {
        const int process = comm->members[r].process;
        int place;

        if (process == CT_NONE || !ct_way_has(way, r))
            continue;
        place = shared->kind == CT_SHARED_RANK
                    ? process
                    : c->trace->processes[process].node;
        a |= place == shared->a;
        b |= place == shared->b;
        others |= place != shared->a && place != shared->b;
    }
    return shared->kind == CT_SHARED_NODES ? a && b && !others : a;
}
