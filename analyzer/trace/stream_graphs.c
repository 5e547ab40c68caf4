/*
 * Launches of graphs in the sequence of a process's calls. What a launch is:
 * the ops that its graph holds, whichever graph that is, since a program may
 * capture the same step again and again.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/graphs.h"
#include "trace/steps.h"

struct content {
    uint64_t hash; /* of the tokens in order; 0: no ops */
    bool collective, reduces, sums, scatters;
    int sort; /* of the first: a warm-up that calls it is the like of it */
};

static void hold(struct content *content, const struct content *more)
{
    if (!content->hash || (more->collective && !content->collective))
        content->sort = more->sort;
    content->hash = ct_mix64(content->hash * 31 + more->hash) | 1;
    content->collective |= more->collective;
    content->reduces |= more->reduces;
    content->sums |= more->sums;
    content->scatters |= more->scatters;
}

static void add_ops(const struct ct_stream *s, struct content *contents)
{
    const struct ct_process *p = s->process;
    int o;

    for (o = 0; o < p->nops; o++) {
        const int graph = p->classes[p->ops[o].cls].graph;
        const struct ct_token *token = &s->tokens[s->token_of[p->ops[o].cls]];
        const struct ct_kind *kind = &s->kinds[token->kind];
        const struct content op = {.hash = token->hash,
                                   .collective = kind->collective,
                                   .reduces = kind->reduces,
                                   .sums = kind->sums,
                                   .scatters = kind->scatters,
                                   .sort = token->sort};

        if (graph != CT_NONE)
            hold(&contents[graph], &op);
    }
}

static void add_part(struct content *contents, int whole, int part)
{
    if (part != CT_NONE && contents[part].hash)
        hold(&contents[whole], &contents[part]);
}

static struct content *contents_of(const struct ct_stream *s)
{
    const struct ct_process *p = s->process;
    struct content *contents = ct_alloc((size_t)p->ngraphs, sizeof(*contents));
    int *order = ct_graphs_oldest_first(p), i;

    add_ops(s, contents);
    for (i = 0; i < p->ngraphs; i++) {
        add_part(contents, order[i], p->graphs[order[i]].first);
        add_part(contents, order[i], p->graphs[order[i]].second);
    }
    free(order);
    return contents;
}

static void name_graphs(struct ct_stream *s)
{
    const struct ct_process *p = s->process;
    struct content *contents = contents_of(s);
    int g;

    for (g = 0; g < p->ngraphs; g++) {
        /* Of another length than the keys of a class. */
        const uint64_t key[4] = {contents[g].hash};
        uint64_t kind;

        s->token_with[g] = CT_NONE;
        if (!contents[g].hash)
            continue;
        kind = (uint64_t)ct_stream_kind(
            s, key, sizeof(key),
            (struct ct_kind){.ntokens = 1,
                             .collective = contents[g].collective,
                             .reduces = contents[g].reduces,
                             .sums = contents[g].sums,
                             .scatters = contents[g].scatters});
        s->token_with[g] = ct_stream_token(s, &kind, sizeof(kind), (int)kind,
                                           contents[g].sort);
    }
    free(contents);
}

static bool is_call(const struct ct_stream *s,
                    const struct ct_graph_launch_row *launch)
{
    return ct_graph_launch_counts(launch) &&
           s->token_with[launch->graph] != CT_NONE;
}

/* Both are in the order of their entry, but for what threads did at once. */
static void merge(struct ct_stream *s)
{
    const struct ct_process *p = s->process;
    int o, l = 0;

    s->n = 0;
    for (o = 0; o <= p->nops; o++) {
        for (; l < p->ngraph_launches &&
               (o == p->nops ||
                p->graph_launches[l].enter_ns < p->ops[o].enter_ns);
             l++)
            if (is_call(s, &p->graph_launches[l]))
                s->calls[s->n++] = ~l;
        if (o < p->nops && ct_op_graph(p, &p->ops[o]) == CT_NONE)
            s->calls[s->n++] = o;
    }
}

void ct_stream_add_graphs(struct ct_stream *s)
{
    const struct ct_process *p = s->process;

    if (!p->ngraph_launches || !p->ngraphs)
        return;
    s->token_with = ct_alloc((size_t)p->ngraphs, sizeof(*s->token_with));
    s->calls = ct_alloc((size_t)p->nops + (size_t)p->ngraph_launches,
                        sizeof(*s->calls));
    name_graphs(s);
    merge(s);
}
