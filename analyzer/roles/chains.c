#include "roles/chains.h"

#include <stdlib.h>

#include "roles/hops.h"

/* Numbers the stages of a path from its end `at`. */
static void number_stages(const struct ct_hops *graph, struct ct_chains *chains,
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

static void tally_components(const struct ct_hops *graph, struct tally *tallies)
{
    for (int i = 0; i < graph->trace->nprocesses; i++) {
        struct tally *tally = &tallies[ct_hops_root(graph->parent, i)];

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

static void shape_chains(const struct ct_hops *graph, struct ct_chains *chains,
                         struct tally *tallies)
{
    tally_components(graph, tallies);
    for (int i = 0; i < graph->trace->nprocesses; i++) {
        const int root = ct_hops_root(graph->parent, i);
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
        if (!ct_hops_has(graph, graph->hops[i].dst, graph->hops[i].src))
            chains->chains[chains->chain[graph->hops[i].src]].both_ways = false;
}

static bool on_path(const struct ct_chains *chains, const struct ct_hop *hop)
{
    return chains->chains[chains->chain[hop->src]].shape == CT_CHAIN_PATH;
}

static double messages(const struct ct_hop *hop)
{
    return hop->sent > hop->received ? hop->sent : hop->received;
}

static int compare_bytes(const void *pa, const void *pb)
{
    const struct ct_hop *a = pa;
    const struct ct_hop *b = pb;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return messages(a) < messages(b) ? -1 : messages(a) > messages(b);
}

/* The size that carries most, and how often a boundary sees it. Reorders the
 * hops. */
static void weigh_payload(struct ct_hops *graph, struct ct_chains *chains,
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

int ct_chains_find(const struct ct_trace *trace, const struct ct_job *job,
                   const bool *exchanges, struct ct_chains *chains)
{
    const size_t n = (size_t)trace->nprocesses + 1;
    struct tally *tallies = calloc(n, sizeof *tallies);
    struct ct_hops graph;
    int status = -1;

    *chains = (struct ct_chains){.nprocesses = trace->nprocesses,
                                 .chain = malloc(n * sizeof *chains->chain),
                                 .stage = malloc(n * sizeof *chains->stage),
                                 .chains = calloc(n, sizeof *chains->chains)};
    if (ct_hops_find(trace, job, exchanges, &graph) != 0 || !tallies ||
        !chains->chain || !chains->stage || !chains->chains)
        goto out;
    for (size_t i = 0; i < n; i++)
        chains->chain[i] = chains->stage[i] = CT_NONE;
    shape_chains(&graph, chains, tallies);
    count_paths(chains);
    weigh_payload(&graph, chains, job->nsteps > 0);
    status = 0;
out:
    if (status != 0)
        ct_chains_release(chains);
    ct_hops_release(&graph);
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
