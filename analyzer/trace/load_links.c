/* The tables that say how GPUs are joined: the ports of the host, and the
 * words of NCCL's log and profiler. None of them is in files before version 3.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/load.h"

#define FIRST_VERSION 3

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static int small(struct ct_rows *rows, int column, const char *name)
{
    return (int)ct_rows_opt(rows, column, name, 0, INT32_MAX, CT_NONE);
}

/* comm of a row, CT_NONE where no communicator has that number. */
static int comm_of(struct ct_rows *rows, int column)
{
    struct ct_loader *loader = rows->loader;
    const int64_t id = ct_rows_opt(rows, column, "comm", 0, INT32_MAX, CT_NONE);

    return id == CT_NONE ? CT_NONE : ct_ids_find(&loader->comm_ids, id);
}

static void load_nics(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "nic",
                 "SELECT id, name, kind, port, link_layer, state, mbps, driver,"
                 " source FROM nic");
    while (ct_rows_next(&rows)) {
        p->nics = ct_grow(p->nics, &capacity, p->nnics, sizeof(*p->nics));
        p->nics[p->nnics++] = (struct ct_nic_row){
            .id = (int)ct_rows_int(&rows, 0, "id", 0, INT32_MAX),
            .name = or_empty(ct_rows_text(&rows, 1)),
            .rdma = !strcmp(or_empty(ct_rows_text(&rows, 2)), "rdma"),
            .port = small(&rows, 3, "port"),
            .link_layer = ct_rows_text(&rows, 4),
            .state = or_empty(ct_rows_text(&rows, 5)),
            .mbps = ct_rows_opt(&rows, 6, "mbps", INT32_MIN, (int64_t)1 << 40,
                                CT_NONE),
            .driver = ct_rows_text(&rows, 7),
            .source = or_empty(ct_rows_text(&rows, 8))};
    }
}

static void load_gpu_nics(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "gpu_nic",
                 "SELECT device, nic, path FROM gpu_nic"
                 " WHERE path IS NOT NULL");
    while (ct_rows_next(&rows)) {
        p->gpu_nics =
            ct_grow(p->gpu_nics, &capacity, p->ngpu_nics, sizeof(*p->gpu_nics));
        p->gpu_nics[p->ngpu_nics++] = (struct ct_gpu_nic_row){
            (int)ct_rows_int(&rows, 0, "device", 0, INT32_MAX),
            (int)ct_rows_int(&rows, 1, "nic", 0, INT32_MAX),
            or_empty(ct_rows_text(&rows, 2))};
    }
}

static void load_nccl_comms(struct ct_loader *loader)
{
    struct ct_nccl_words *words = &loader->process->nccl;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "nccl_comm",
                 "SELECT comm, nodes, mnnvl, nvls_channels, source = 'plugin',"
                 " network FROM nccl_comm ORDER BY comm");
    while (ct_rows_next(&rows)) {
        const int comm = comm_of(&rows, 0);

        if (comm == CT_NONE)
            continue;
        words->comms = ct_grow(words->comms, &capacity, words->ncomms,
                               sizeof(*words->comms));
        words->comms[words->ncomms++] = (struct ct_nccl_comm_row){
            comm,
            small(&rows, 1, "nodes"),
            small(&rows, 2, "mnnvl"),
            small(&rows, 3, "nvls_channels"),
            ct_rows_opt(&rows, 4, "source", 0, 1, 0) == 1,
            ct_rows_text(&rows, 5)};
    }
}

static int by_ranks(const void *left, const void *right)
{
    const struct ct_conn_row *a = left, *b = right;

    if (a->comm != b->comm)
        return a->comm < b->comm ? -1 : 1;
    if (a->src != b->src)
        return a->src < b->src ? -1 : 1;
    if (a->dst != b->dst)
        return a->dst < b->dst ? -1 : 1;
    return strcmp(a->via, b->via);
}

/* Channels that are alike become one row: a rank may have thousands. */
static void load_conns(struct ct_loader *loader)
{
    struct ct_nccl_words *words = &loader->process->nccl;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "conn",
                 "SELECT comm, src, dst, coalesce(connector, 0),"
                 " coalesce(direction = 'receive', 0), via,"
                 " count(DISTINCT channel) FROM conn"
                 " WHERE src IS NOT NULL AND dst IS NOT NULL"
                 " AND via IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6");
    while (ct_rows_next(&rows)) {
        const struct ct_conn_row row = {
            .comm = comm_of(&rows, 0),
            .src = (int)ct_rows_int(&rows, 1, "src", INT32_MIN, INT32_MAX),
            .dst = (int)ct_rows_int(&rows, 2, "dst", INT32_MIN, INT32_MAX),
            .connector = small(&rows, 3, "connector"),
            .receives = ct_rows_int(&rows, 4, "direction", 0, 1) == 1,
            .via = or_empty(ct_rows_text(&rows, 5)),
            .channels = small(&rows, 6, "channel")};

        if (row.comm == CT_NONE)
            continue;
        words->conns = ct_grow(words->conns, &capacity, words->nconns,
                               sizeof(*words->conns));
        words->conns[words->nconns++] = row;
    }
    if (words->nconns)
        qsort(words->conns, (size_t)words->nconns, sizeof(*words->conns),
              by_ranks);
}

static void load_nccl_graphs(struct ct_loader *loader)
{
    struct ct_nccl_words *words = &loader->process->nccl;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "nccl_graph",
                 "SELECT comm, pattern, intra_type FROM nccl_graph"
                 " WHERE intra_type IS NOT NULL ORDER BY comm");
    while (ct_rows_next(&rows)) {
        const int comm = comm_of(&rows, 0);

        if (comm == CT_NONE)
            continue;
        words->graphs = ct_grow(words->graphs, &capacity, words->ngraphs,
                                sizeof(*words->graphs));
        words->graphs[words->ngraphs++] = (struct ct_nccl_graph_row){
            comm, small(&rows, 1, "pattern"), or_empty(ct_rows_text(&rows, 2))};
    }
}

static void load_rings(struct ct_loader *loader)
{
    struct ct_nccl_words *words = &loader->process->nccl;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "ring",
                 "SELECT comm, prev, next, min(channel) FROM ring"
                 " GROUP BY comm ORDER BY comm");
    while (ct_rows_next(&rows)) {
        const struct ct_ring_row row = {comm_of(&rows, 0),
                                        small(&rows, 1, "prev"),
                                        small(&rows, 2, "next")};

        if (row.comm == CT_NONE)
            continue;
        words->rings = ct_grow(words->rings, &capacity, words->nrings,
                               sizeof(*words->rings));
        words->rings[words->nrings++] = row;
    }
}

static void load_messages(struct ct_loader *loader)
{
    struct ct_nccl_words *words = &loader->process->nccl;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "nccl_message",
                 "SELECT comm, text FROM nccl_message"
                 " WHERE text IS NOT NULL AND kind IS NOT NULL"
                 " AND kind <> 'unknown'");
    while (ct_rows_next(&rows)) {
        words->messages = ct_grow(words->messages, &capacity, words->nmessages,
                                  sizeof(*words->messages));
        words->messages[words->nmessages++] = (struct ct_nccl_message_row){
            comm_of(&rows, 0), or_empty(ct_rows_text(&rows, 1))};
    }
}

static void load_absences(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "absence",
                 "SELECT what, why FROM absence WHERE what IS NOT NULL");
    while (ct_rows_next(&rows)) {
        p->absences =
            ct_grow(p->absences, &capacity, p->nabsences, sizeof(*p->absences));
        p->absences[p->nabsences++] = (struct ct_absence_row){
            or_empty(ct_rows_text(&rows, 0)), or_empty(ct_rows_text(&rows, 1))};
    }
}

void ct_load_links(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;

    if (loader->version < FIRST_VERSION)
        return;
    load_nics(loader);
    load_gpu_nics(loader);
    load_nccl_comms(loader);
    load_conns(loader);
    load_nccl_graphs(loader);
    load_rings(loader);
    load_messages(loader);
    load_absences(loader);
    ct_arena_adopt(loader->arena, p->nics);
    ct_arena_adopt(loader->arena, p->gpu_nics);
    ct_arena_adopt(loader->arena, p->absences);
    ct_arena_adopt(loader->arena, p->nccl.comms);
    ct_arena_adopt(loader->arena, p->nccl.conns);
    ct_arena_adopt(loader->arena, p->nccl.graphs);
    ct_arena_adopt(loader->arena, p->nccl.rings);
    ct_arena_adopt(loader->arena, p->nccl.messages);
}
