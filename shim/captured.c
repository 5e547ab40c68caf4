#include "captured.h"

#include "hash.h"

#include <stdlib.h>

enum { GRAPHS = 1 << 12, DEPTH = 64, VISITS = 1 << 10 };

struct graph {
    int64_t id;            /* 0: free */
    int64_t first, second; /* contained */
    struct captured_call *calls;
    size_t n, room;
};

/* One place per graph, taken over by the next that falls on it. */
struct captured {
    struct graph graphs[GRAPHS];
};

struct captured *captured_open(void)
{
    return calloc(1, sizeof(struct captured));
}

void captured_close(struct captured *captured)
{
    for (int i = 0; captured && i < GRAPHS; i++)
        free(captured->graphs[i].calls);
    free(captured);
}

static struct graph *place(struct captured *captured, int64_t id)
{
    return &captured->graphs[hash_mix((uint64_t)id) % GRAPHS];
}

static struct graph *obtain(struct captured *captured, int64_t id)
{
    struct graph *graph = place(captured, id);
    if (graph->id != id) {
        free(graph->calls);
        *graph = (struct graph){.id = id};
    }
    return graph;
}

void captured_add(struct captured *captured, int64_t id,
                  const struct captured_call *call)
{
    struct graph *graph = obtain(captured, id);
    if (graph->n == graph->room) {
        size_t room = graph->room ? 2 * graph->room : 16;
        struct captured_call *calls =
            realloc(graph->calls, room * sizeof(*calls));
        if (!calls)
            return;
        graph->calls = calls;
        graph->room = room;
    }
    graph->calls[graph->n++] = *call;
}

void captured_join(struct captured *captured, int64_t id, int64_t first,
                   int64_t second)
{
    if (!first && !second)
        return;
    struct graph *graph = obtain(captured, id);
    graph->first = first;
    graph->second = second;
}

struct walk {
    struct captured *captured;
    captured_visit *visit;
    void *arg;
    unsigned left; /* graphs in graphs double at each step */
};

static void visit_all(struct walk *walk, int64_t id, int depth)
{
    const struct graph *graph = place(walk->captured, id);
    if (!id || graph->id != id || depth > DEPTH || !walk->left)
        return;
    walk->left--;
    visit_all(walk, graph->first, depth + 1);
    visit_all(walk, graph->second, depth + 1);
    for (size_t i = 0; i < graph->n; i++)
        walk->visit(walk->arg, &graph->calls[i]);
}

void captured_each(struct captured *captured, int64_t graph,
                   captured_visit *visit, void *arg)
{
    visit_all(&(struct walk){captured, visit, arg, VISITS}, graph, 0);
}
