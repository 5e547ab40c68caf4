/* What NCCL said of its own doing: its table of predictions, and what it chose
 * for each op. */
#include <stdlib.h>
#include <string.h>

#include "trace/load.h"

#define HAS_CHOICES 3 /* schema version */

void ct_load_libraries(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "library", "SELECT id, version FROM library");
    while (ct_rows_next(&rows)) {
        p->libraries = ct_grow(p->libraries, &capacity, p->nlibraries,
                               sizeof(*p->libraries));
        p->libraries[p->nlibraries++] = (struct ct_library_row){
            .id = (int)ct_rows_int(&rows, 0, "id", 0, INT32_MAX),
            .version =
                (int)ct_rows_opt(&rows, 1, "version", 0, INT32_MAX, CT_NONE)};
    }
}

/* False: the row is of something that is not known here, or not told: logs of
 * old releases name no kind. */
static bool find_op(struct ct_rows *rows, int column, int *comm_p,
                    enum ct_op *base_p)
{
    const struct ct_loader *loader = rows->loader;
    const int kind =
        ct_code_of(&loader->kinds, ct_rows_opt(rows, column + 1, "kind", 0,
                                               CT_MAX_CODES - 1, CT_NONE));

    *comm_p =
        ct_ids_find(&loader->comm_ids,
                    ct_rows_opt(rows, column, "comm", 0, INT32_MAX, CT_NONE));
    if (*comm_p == CT_NONE || kind == CT_NONE)
        return false;
    *base_p = ct_op_infos[kind].base;
    return true;
}

void ct_load_tunings(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_rows rows;
    int capacity = 0;

    if (loader->version < HAS_CHOICES)
        return;
    ct_rows_open(&rows, loader, "tuning",
                 "SELECT comm, kind, algorithm, protocol, latency_us,"
                 " algbw_GBps FROM tuning WHERE algbw_GBps > 0"
                 " AND algorithm NOT NULL AND protocol NOT NULL"
                 " ORDER BY comm, rowid");
    while (ct_rows_next(&rows)) {
        struct ct_tuning_row row = {0};

        if (!find_op(&rows, 0, &row.comm, &row.base))
            continue;
        row.algorithm = ct_rows_text(&rows, 2);
        row.protocol = ct_rows_text(&rows, 3);
        row.latency_us = ct_rows_real(&rows, 4, "latency_us");
        row.algbw_GBps = ct_rows_real(&rows, 5, "algbw_GBps");
        p->tunings =
            ct_grow(p->tunings, &capacity, p->ntunings, sizeof(*p->tunings));
        p->tunings[p->ntunings++] = row;
    }
}

static void load_classes(struct ct_loader *loader, struct ct_ids *ids)
{
    struct ct_process *p = loader->process;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "choice_class",
                 "SELECT id, comm, kind, bytes, peer, algorithm, protocol,"
                 " channels, source = 'plugin' FROM choice_class ORDER BY id");
    while (ct_rows_next(&rows)) {
        struct ct_choice_class_row row = {
            .id = (int)ct_rows_int(&rows, 0, "id", 0, INT32_MAX)};

        if (!find_op(&rows, 1, &row.comm, &row.base)) {
            if (row.comm == CT_NONE || !ct_rows_null(&rows, 2))
                continue;
            row.base = CT_OP_COUNT;
        }
        row.bytes = (uint64_t)ct_rows_opt(&rows, 3, "bytes", 0, INT64_MAX, 0);
        row.peer = (int)ct_rows_opt(&rows, 4, "peer", 0, CT_MAX_RANKS, CT_NONE);
        row.algorithm = ct_rows_text(&rows, 5);
        row.protocol = ct_rows_text(&rows, 6);
        row.channels =
            (int)ct_rows_opt(&rows, 7, "channels", 0, INT32_MAX, CT_NONE);
        row.by_plugin = ct_rows_opt(&rows, 8, "source", 0, 1, 0);
        p->choice_classes =
            ct_grow(p->choice_classes, &capacity, p->nchoice_classes,
                    sizeof(*p->choice_classes));
        p->choice_classes[p->nchoice_classes++] = row;
        ct_ids_add(ids, row.id);
    }
}

static int by_id(const void *key, const void *member)
{
    const int64_t id = *(const int64_t *)key;
    const struct ct_graph_launch_row *launch = member;

    return (id > launch->id) - (id < launch->id);
}

/* Launches are in the order of their ids. */
static int find_launch(const struct ct_process *p, int64_t id)
{
    const struct ct_graph_launch_row *found = NULL;

    if (id && p->ngraph_launches)
        found = bsearch(&id, p->graph_launches, (size_t)p->ngraph_launches,
                        sizeof(*found), by_id);
    return found ? (int)(found - p->graph_launches) : CT_NONE;
}

/* Replays whose launch is not known tell of no op. */
static void load_rows(struct ct_loader *loader, const struct ct_ids *ids)
{
    struct ct_process *p = loader->process;
    struct ct_rows rows;

    ct_rows_open(&rows, loader, "choice",
                 "SELECT class, n, launch, start_ns, gpu_ns FROM choice"
                 " WHERE n NOT NULL ORDER BY id");
    while (ct_rows_next(&rows)) {
        const int64_t launch = ct_rows_opt(&rows, 2, "launch", 0, INT64_MAX, 0);
        const struct ct_choice_row row = {
            .cls =
                ct_ids_find(ids, ct_rows_int(&rows, 0, "class", 0, INT64_MAX)),
            .n = (uint32_t)ct_rows_int(&rows, 1, "n", 0, UINT32_MAX),
            .launch = find_launch(p, launch),
            .start_ns =
                ct_rows_opt(&rows, 3, "start_ns", 0, INT64_MAX, CT_NO_TIME),
            .gpu_ns = ct_rows_opt(&rows, 4, "gpu_ns", 0, CT_MAX_DURATION_NS,
                                  CT_NO_TIME)};

        p->choices++;
        if (row.cls == CT_NONE || (launch && row.launch == CT_NONE)) {
            p->unplaced++;
            continue;
        }
        loader->choices = ct_grow(loader->choices, &loader->choice_capacity,
                                  loader->nchoices, sizeof(*loader->choices));
        loader->choices[loader->nchoices++] = row;
    }
}

void ct_load_choices(struct ct_loader *loader)
{
    struct ct_ids ids = {0};

    if (loader->version < HAS_CHOICES)
        return;
    load_classes(loader, &ids);
    load_rows(loader, &ids);
    free(ids.ids);
}
