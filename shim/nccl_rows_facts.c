/* The facts of the log, one by one. */
#include "nccl_rows_parts.h"

#include <string.h>

static void put_conn(struct reading *reading, const struct nccl_log_fact *fact)
{
    static const char *const directions[] = {NULL, "send", "receive"};
    const struct nccl_log_conn *conn = &fact->conn;
    struct row row = {.table = ROW_conn, .rowid = CT_NULL};
    row.u.conn = (struct row_conn){
        .channel = or_null(conn->channel),
        .connector = or_null(conn->connector),
        .src = or_null(conn->src),
        .dst = or_null(conn->dst),
        .direction = directions[conn->end],
        .via = rows_word(reading->rows, conn->via),
    };
    rows_put(reading, fact, &row);
}

static void put_ring(struct reading *reading, const struct nccl_log_fact *fact)
{
    struct row row = {.table = ROW_ring, .rowid = CT_NULL};
    row.u.ring = (struct row_ring){
        .channel = fact->ring.channel,
        .prev = or_null(fact->ring.prev),
        .next = or_null(fact->ring.next),
    };
    rows_put(reading, fact, &row);
}

static void put_tree(struct reading *reading, const struct nccl_log_fact *fact)
{
    const struct nccl_log_tree *tree = &fact->tree;
    struct row row = {.table = ROW_tree, .rowid = CT_NULL};
    row.u.tree = (struct row_tree){
        .channel = tree->channel,
        .up = or_null(tree->up),
        .down0 = or_null(tree->down[0]),
        .down1 = or_null(tree->down[1]),
        .down2 = or_null(tree->down[2]),
    };
    rows_put(reading, fact, &row);
}

static void put_graph(struct reading *reading, const struct nccl_log_fact *fact)
{
    const struct nccl_log_graph *graph = &fact->graph;
    struct row row = {.table = ROW_nccl_graph, .rowid = CT_NULL};
    row.u.nccl_graph = (struct row_nccl_graph){
        .pattern = or_null(graph->pattern),
        .channels = or_null(graph->channels),
        .intra_GBps = graph->intra_GBps,
        .inter_GBps = graph->inter_GBps,
        .intra_type = rows_word(reading->rows, graph->intra_type),
        .inter_type = rows_word(reading->rows, graph->inter_type),
    };
    rows_put(reading, fact, &row);
}

static void put_tuning(struct reading *reading,
                       const struct nccl_log_fact *fact)
{
    const struct nccl_log_tuning *tuning = &fact->tuning;
    struct row row = {.table = ROW_tuning, .rowid = CT_NULL};
    row.u.tuning = (struct row_tuning){
        .kind = or_null(tuning->op),
        .algorithm = rows_word(reading->rows, tuning->algorithm),
        .protocol = rows_word(reading->rows, tuning->protocol),
        .latency_us = tuning->latency_us,
        .algbw_GBps = tuning->algbw_GBps,
    };
    rows_put(reading, fact, &row);
}

static void put_message(struct reading *reading,
                        const struct nccl_log_fact *fact)
{
    struct row row = {.table = ROW_nccl_message, .rowid = CT_NULL};
    char *text = strdup(fact->message.text);
    if (!text)
        return;
    row.u.nccl_message = (struct row_nccl_message){
        .kind = rows_word(reading->rows, fact->message.kind),
        .n = 1,
        .text = text};
    rows_put(reading, fact, &row);
}

void rows_take(void *arg, const struct nccl_log_fact *fact)
{
    switch (fact->kind) {
    case NCCL_LOG_COMM:
        rows_learn_comm(arg, fact);
        break;
    case NCCL_LOG_CONN:
        put_conn(arg, fact);
        break;
    case NCCL_LOG_RING:
        put_ring(arg, fact);
        break;
    case NCCL_LOG_TREE:
        put_tree(arg, fact);
        break;
    case NCCL_LOG_GRAPH:
        put_graph(arg, fact);
        break;
    case NCCL_LOG_TUNING:
        put_tuning(arg, fact);
        break;
    case NCCL_LOG_CHOICE:
        rows_put_choice(arg, fact);
        break;
    case NCCL_LOG_MESSAGE:
        put_message(arg, fact);
    }
}
