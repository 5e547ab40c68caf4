/*
 * The tables of CUDA graphs and their launches. A capture has a positive id. A
 * graph that was made of two others has a negative one, and is younger than its
 * parts: its number is larger.
 */
#include <string.h>

#include "trace/load.h"

int ct_load_graph_of(struct ct_loader *loader, int64_t id)
{
    struct ct_process *p = loader->process;
    int graph;

    if (!id)
        return CT_NONE;
    graph = ct_intern_add(&loader->graph_keys, &id, sizeof(id));
    if (graph == p->ngraphs) {
        p->graphs = ct_grow(p->graphs, &loader->graph_capacity, p->ngraphs,
                            sizeof(*p->graphs));
        p->graphs[p->ngraphs++] = (struct ct_graph_row){.id = id,
                                                        .first = CT_NONE,
                                                        .second = CT_NONE,
                                                        .made_ns = CT_NO_TIME};
    }
    return graph;
}

static bool is_older(int64_t part, int64_t whole)
{
    return part > 0 || (part < 0 && part > whole);
}

void ct_load_add_graph(struct ct_loader *loader, int64_t id, int64_t made_ns,
                       int64_t first, int64_t second)
{
    const int graph = ct_load_graph_of(loader, id);
    struct ct_graph_row *row;

    if (graph == CT_NONE)
        return;
    if (id < 0 && is_older(first, id) && is_older(second, id)) {
        const int parts[2] = {ct_load_graph_of(loader, first),
                              ct_load_graph_of(loader, second)};

        loader->process->graphs[graph].first = parts[0];
        loader->process->graphs[graph].second = parts[1];
    }
    row = &loader->process->graphs[graph];
    row->made = true;
    row->made_ns = made_ns;
}

struct ct_graph_launch_row *ct_load_add_graph_launch(struct ct_loader *loader,
                                                     int64_t id)
{
    struct ct_process *p = loader->process;
    struct ct_graph_launch_row *row;

    p->graph_launches =
        ct_grow(p->graph_launches, &loader->graph_launch_capacity,
                p->ngraph_launches, sizeof(*p->graph_launches));
    row = &p->graph_launches[p->ngraph_launches++];
    *row = (struct ct_graph_launch_row){
        .id = id, .host_ns = CT_NO_TIME, .result = CT_NONE, .graph = CT_NONE};
    return row;
}

static int64_t id_in(struct ct_rows *rows, int column, const char *name)
{
    return ct_rows_opt(rows, column, name, -CT_MAX_GRAPHS, INT64_MAX, 0);
}

static void load_rows(struct ct_loader *loader)
{
    struct ct_rows rows;

    ct_rows_open(&rows, loader, "graph",
                 "SELECT id, made_ns, first, second FROM graph ORDER BY id");
    while (ct_rows_next(&rows)) {
        int64_t id = id_in(&rows, 0, "id");

        ct_load_add_graph(loader, id,
                          ct_rows_opt(&rows, 1, "made_ns", -CT_MAX_TIME_NS,
                                      CT_MAX_TIME_NS, CT_NO_TIME),
                          id_in(&rows, 2, "first"), id_in(&rows, 3, "second"));
    }
}

static void load_launches(struct ct_loader *loader)
{
    struct ct_graph_launch_row *row;
    struct ct_rows rows;

    ct_rows_open(&rows, loader, "graph_launch",
                 "SELECT id, graph, stream, enter_ns, host_ns, result"
                 " FROM graph_launch ORDER BY id");
    while (ct_rows_next(&rows)) {
        int graph = ct_load_graph_of(loader, id_in(&rows, 1, "graph"));

        row = ct_load_add_graph_launch(
            loader, ct_rows_int(&rows, 0, "id", 0, INT64_MAX));
        row->graph = graph;
        row->stream =
            (uint64_t)ct_rows_opt(&rows, 2, "stream", INT64_MIN, INT64_MAX, 0);
        row->enter_ns =
            ct_rows_int(&rows, 3, "enter_ns", -CT_MAX_TIME_NS, CT_MAX_TIME_NS);
        row->host_ns =
            ct_rows_opt(&rows, 4, "host_ns", 0, CT_MAX_DURATION_NS, CT_NO_TIME);
        row->result =
            ct_rows_opt(&rows, 5, "result", INT32_MIN, INT32_MAX, CT_NONE);
    }
}

void ct_load_graphs(struct ct_loader *loader)
{
    if (loader->version < 2)
        return;
    load_rows(loader);
    load_launches(loader);
}
