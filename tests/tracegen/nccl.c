/*
 * What NCCL's log and profiler would say: the table of predictions and one
 * choice per operation. The table has the truth under RING and SIMPLE, which is
 * what is chosen; LL is better for small messages, and never taken.
 */
#include <stddef.h>
#include <stdlib.h>

#include "output.h"
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

/* The class whose choices are counted with those of class, the first of them.
 */
static int first_alike(const struct rank *rank, int class)
{
    int i;

    for (i = 0; i < class; i++) {
        const struct op_class *a = &rank->classes[class];
        const struct op_class *b = &rank->classes[i];

        if (a->op == b->op && a->comm == b->comm &&
            (a->peer == b->peer || !is_p2p(a->op)))
            break;
    }
    return i;
}

static uint32_t count(struct output *out, const struct rank *rank, int class)
{
    while (out->ncounters <= class) {
        const int n = out->ncounters++;

        out->counters = grow(out->counters, &out->counter_capacity, n,
                             sizeof(*out->counters));
        out->counter_of = grow(out->counter_of, &out->counter_of_capacity, n,
                               sizeof(*out->counter_of));
        out->counters[n] = 0;
        out->counter_of[n] = first_alike(rank, n);
    }
    return out->counters[out->counter_of[class]]++;
}

/* Classes of the log and of the profiler in turn. */
static int id_of(int class, bool plugin)
{
    return 1 + 2 * class + plugin;
}

static void put_class(struct writer *w, const struct layout *layout,
                      const struct rank *rank, int class, int r, bool plugin)
{
    const struct op_class *c = &rank->classes[class];
    const int nranks = layout->comms[layout->comm_of[r][c->comm]].nranks;
    sqlite3_stmt *row = writer_row(w, T_choice_class);

    put(row, choice_class_id, id_of(class, plugin));
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

/* Of what was there before the receiver came hardly anything is left to do. */
static int64_t kernel_ns(int64_t gpu_ns)
{
    return gpu_ns - (gpu_ns / 2 < LAUNCH_NS ? gpu_ns / 2 : LAUNCH_NS);
}

static void put_choice(struct writer *w, int64_t id, int class, uint32_t n,
                       const struct record *timed)
{
    int64_t row[choice_column_count];

    row[choice_id] = id;
    row[choice_class] = class;
    row[choice_n] = n;
    row[choice_launch] = BULK_NULL;
    row[choice_start_ns] =
        timed ? timed->start_ns + LAUNCH_NS + GLOBALTIMER_NS : BULK_NULL;
    row[choice_gpu_ns] = timed ? kernel_ns(timed->gpu_ns) : BULK_NULL;
    writer_bulk(w, T_choice, row);
}

static bool is_said(const struct layout *layout, const struct rank *rank, int r,
                    int class, bool plugin)
{
    const struct op_class *c = &rank->classes[class];

    if (layout->comms[layout->comm_of[r][c->comm]].nranks < 2)
        return false;
    return plugin || (!is_p2p(c->op) && layout->place_in[r][c->comm] == 0);
}

static void put_choices(struct writer *w, const struct layout *layout,
                        struct output *out, const struct rank *rank, int r)
{
    const bool kernels = layout->options->nccl == NCCL_KERNELS;
    int i;

    for (i = 0; i < rank->nrecords; i++) {
        const struct record *record = &rank->records[i];
        const int class = record->cls;
        const uint32_t n = count(out, rank, class);

        if (record->enter_ns >= out->cut_ns)
            break;
        if (is_said(layout, rank, r, class, false))
            put_choice(w, ++out->choice, id_of(class, false), n, NULL);
        if (kernels && is_said(layout, rank, r, class, true))
            put_choice(w, ++out->choice, id_of(class, true), n,
                       output_has_end(out, record) ? record : NULL);
    }
}

static void put_tables(struct writer *w, const struct layout *layout, int r)
{
    int kind;

    for (kind = 0; kind < COMM_KINDS; kind++) {
        const int comm = layout->comm_of[r][kind];
        const struct comm *c = &layout->comms[comm];

        if (comm >= 0 && (int)c->kind == kind && c->nranks > 1 &&
            layout->place_in[r][kind] == 0)
            put_table(w, layout->options, c);
    }
}

void nccl_put(struct writer *w, const struct simulation *s, struct output *out,
              int rank, bool last)
{
    const struct layout *layout = s->layout;
    const struct rank *r = &s->ranks[rank];
    const int plugins = layout->options->nccl == NCCL_KERNELS;
    int i, plugin;

    if (layout->options->nccl == NCCL_SILENT)
        return;
    put_choices(w, layout, out, r, rank);
    if (!last)
        return;
    put_tables(w, layout, rank);
    for (plugin = 0; plugin <= plugins; plugin++)
        for (i = 0; i < r->nclasses; i++)
            if (is_said(layout, r, rank, i, plugin))
                put_class(w, layout, r, i, rank, plugin);
}
