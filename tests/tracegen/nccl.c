/*
 * What NCCL's log and profiler would say: the table of predictions and one
 * choice per operation. The table has the truth under RING and SIMPLE, which is
 * what is chosen; LL is better for small messages, and never taken.
 */
#include <stddef.h>
#include <stdlib.h>

#include "tracegen.h"
#include "writer.h"

#define LL_LATENCY .3
#define LL_BANDWIDTH .25
#define PLATEAU 1.4    /* NCCL's factor on latency of rings between nodes */
#define LAUNCH_NS 1000 /* of the kernel, that events see beside it */
#define GLOBALTIMER_NS 7000000000000

static void put_tuning(struct writer *w, int comm, enum ct_op op,
                       const char *algorithm, const char *protocol,
                       double latency_us, double GBps)
{
    sqlite3_stmt *row = writer_row(w, T_tuning);

    put(row, tuning_comm, comm);
    put(row, tuning_kind, (int)op);
    put_text(row, tuning_algorithm, algorithm);
    put_text(row, tuning_protocol, protocol);
    put_real(row, tuning_latency_us, latency_us);
    put_real(row, tuning_algbw_GBps, GBps);
    writer_add(w, row);
}

static void put_table(struct writer *w, const struct options *o,
                      const struct comm *comm)
{
    static const enum ct_op table[] = {CT_OP_BROADCAST, CT_OP_REDUCE,
                                       CT_OP_ALL_GATHER, CT_OP_REDUCE_SCATTER,
                                       CT_OP_ALL_REDUCE};
    const uint64_t large = 1 << 30;

    for (unsigned i = 0; i < sizeof(table) / sizeof(*table); i++) {
        const bool plateau = comm->crosses && table[i] == CT_OP_ALL_REDUCE;
        double us = o->alpha_us[comm->crosses];
        double GBps = (double)large / (transfer_ns(o, comm->crosses, table[i],
                                                   comm->nranks, large) -
                                       1e3 * us);
        int id = (int)comm->kind + 1;

        put_tuning(w, id, table[i], "RING", "SIMPLE",
                   plateau ? us / PLATEAU : us, GBps);
        put_tuning(w, id, table[i], "RING", "LL", us * LL_LATENCY,
                   GBps * LL_BANDWIDTH);
        put_tuning(w, id, table[i], "NVLS", "SIMPLE", 0, 0);
    }
}

static bool is_p2p(enum ct_op op)
{
    return op == CT_OP_SEND || op == CT_OP_RECV;
}

/* The first class whose choices are counted with those of class. */
static int counter_of(const struct rank *rank, int class)
{
    const struct op_class *a = &rank->classes[class];
    int i;

    for (i = 0; i < class; i++) {
        const struct op_class *b = &rank->classes[i];

        if (a->op == b->op && a->comm == b->comm &&
            (a->peer == b->peer || !is_p2p(a->op)))
            break;
    }
    return i;
}

/* Classes of the log are those of ops, the profiler's follow. */
static int id_of(const struct rank *rank, int class, bool plugin)
{
    return 1 + class + (plugin ? rank->nclasses : 0);
}

static void put_class(struct writer *w, const struct layout *layout,
                      const struct rank *rank, int class, int r, bool plugin)
{
    const struct op_class *c = &rank->classes[class];
    const int nranks = layout->comms[layout->comm_of[r][c->comm]].nranks;
    sqlite3_stmt *row = writer_row(w, T_choice_class);

    put(row, choice_class_id, id_of(rank, class, plugin));
    put(row, choice_class_comm, (int)c->comm + 1);
    put(row, choice_class_kind, (int)c->op);
    put(row, choice_class_bytes,
        (int64_t)op_bytes(c->op, c->type, c->count, nranks));
    put_or_null(row, choice_class_peer, is_p2p(c->op) ? c->peer : -1);
    if (is_p2p(c->op)) {
        put_null(row, choice_class_algorithm);
        put_null(row, choice_class_protocol);
    } else {
        put_text(row, choice_class_algorithm, "RING");
        put_text(row, choice_class_protocol, "SIMPLE");
    }
    put(row, choice_class_channels, is_p2p(c->op) ? 2 : 16);
    put_text(row, choice_class_source, plugin ? "plugin" : "log");
    writer_add(w, row);
}

static void put_choice(struct writer *w, int64_t id, int class, uint32_t n,
                       const struct record *timed)
{
    sqlite3_stmt *row = writer_row(w, T_choice);

    put(row, choice_id, id);
    put(row, choice_class, class);
    put(row, choice_n, n);
    put_or_null(row, choice_launch, -1);
    put_or_null(row, choice_start_ns,
                timed ? timed->start_ns + LAUNCH_NS + GLOBALTIMER_NS : -1);
    put_or_null(row, choice_gpu_ns, timed ? timed->gpu_ns - LAUNCH_NS : -1);
    writer_add(w, row);
}

static bool is_said(const struct layout *layout, const struct rank *rank, int r,
                    int class, bool plugin)
{
    const struct op_class *c = &rank->classes[class];

    if (layout->comms[layout->comm_of[r][c->comm]].nranks < 2)
        return false;
    return plugin || (!is_p2p(c->op) && layout->place_in[r][c->comm] == 0);
}

static int64_t put_choices(struct writer *w, const struct layout *layout,
                           const struct rank *rank, int r, bool plugin,
                           int64_t id)
{
    uint32_t *counters =
        zeros((unsigned long)rank->nclasses, sizeof(*counters));
    int i;

    for (i = 0; i < rank->nclasses; i++)
        if (is_said(layout, rank, r, i, plugin))
            put_class(w, layout, rank, i, r, plugin);
    for (i = 0; i < rank->nrecords; i++) {
        const struct record *record = &rank->records[i];

        if (is_said(layout, rank, r, record->cls, plugin))
            put_choice(w, ++id, id_of(rank, record->cls, plugin),
                       counters[counter_of(rank, record->cls)]++,
                       plugin ? record : NULL);
    }
    free(counters);
    return id;
}

void nccl_put(struct writer *w, const struct simulation *s, int rank)
{
    const struct layout *layout = s->layout;
    int64_t id = 0;
    int kind;

    if (layout->options->nccl == NCCL_SILENT)
        return;
    for (kind = 0; kind < COMM_KINDS; kind++) {
        if (layout_size(layout, rank, (enum comm_kind)kind) > 1 &&
            (int)layout->comms[layout->comm_of[rank][kind]].kind == kind &&
            layout->place_in[rank][kind] == 0)
            put_table(w, layout->options,
                      &layout->comms[layout->comm_of[rank][kind]]);
    }
    id = put_choices(w, layout, &s->ranks[rank], rank, false, id);
    if (layout->options->nccl == NCCL_KERNELS)
        put_choices(w, layout, &s->ranks[rank], rank, true, id);
}
