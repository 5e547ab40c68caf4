/* The tables that hold the calls: op_class, launch, op. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "trace/load.h"
#include "trace/stages.h"

uint64_t ct_load_bytes(const struct ct_loader *loader, enum ct_op kind,
                       int comm, uint64_t count, uint64_t type_bytes)
{
    uint64_t shares = 1;

    if (ct_op_infos[kind].size == CT_ALL_SHARES)
        shares = (uint64_t)loader->process->comms[comm].nranks;
    else if (ct_op_infos[kind].size != CT_ONE_SHARE)
        return 0;
    return count * type_bytes * shares;
}

uint64_t ct_load_count(uint64_t count, int nranks)
{
    return count > (CT_MAX_BYTES >> 10) / (uint64_t)nranks ? 0 : count;
}

struct ct_op_class_row *ct_load_add_class(struct ct_loader *loader, int64_t id)
{
    struct ct_process *p = loader->process;
    struct ct_op_class_row *row;

    p->classes = ct_grow(p->classes, &loader->class_capacity, p->nclasses,
                         sizeof(*p->classes));
    row = &p->classes[p->nclasses++];
    memset(row, 0, sizeof(*row));
    row->stack = CT_NONE;
    ct_ids_add(&loader->class_ids, id);
    return row;
}

static int comm_of(struct ct_rows *rows, int column)
{
    int64_t id = ct_rows_int(rows, column, "comm", 0, INT32_MAX);
    int comm = ct_ids_find(&rows->loader->comm_ids, id);

    if (comm == CT_NONE)
        ct_rows_fail(rows, "comm %lld does not exist", (long long)id);
    return comm;
}

static bool is_within(const struct ct_rows *rows, int column, int64_t low,
                      int64_t high)
{
    const int64_t value = sqlite3_column_int64(rows->stmt, column);

    return ct_rows_null(rows, column) || (value >= low && value <= high);
}

/* Arguments that a call cannot have had and succeeded; NCCL refuses them. */
static bool is_odd(struct ct_rows *rows, const struct ct_op_class_row *row)
{
    const int nranks = rows->loader->process->comms[row->comm].nranks;

    return !is_within(rows, 3, CT_NONE, CT_MAX_CODES - 1) ||
           !is_within(rows, 4, CT_NONE, INT32_MAX) ||
           !is_within(rows, 6, CT_NONE, nranks - 1) ||
           (ct_is_p2p(row->kind) && ct_rows_null(rows, 6));
}

static void read_arguments(struct ct_rows *rows, struct ct_op_class_row *row)
{
    struct ct_loader *loader = rows->loader;
    int64_t type =
        ct_rows_opt(rows, 3, "type", CT_NONE, CT_MAX_CODES - 1, CT_NONE);
    int64_t redop = ct_rows_opt(rows, 4, "redop", CT_NONE, INT32_MAX, CT_NONE);
    uint64_t type_bytes = type >= 0 ? loader->type_bytes[type] : 0;

    row->type = ct_code_of(&loader->types, type);
    row->redop = ct_code_of(&loader->redops, redop);
    if (row->redop == CT_NONE)
        row->redop = (int)redop; /* the program's own */
    row->count = ct_load_count(
        (uint64_t)ct_rows_opt(rows, 5, "count", INT64_MIN, INT64_MAX, 0),
        loader->process->comms[row->comm].nranks);
    row->peer =
        (int)ct_rows_opt(rows, 6, "peer", CT_NONE,
                         loader->process->comms[row->comm].nranks - 1, CT_NONE);
    row->stream =
        (uint64_t)ct_rows_opt(rows, 7, "stream", INT64_MIN, INT64_MAX, 0);
    row->site = (uint64_t)ct_rows_opt(rows, 8, "site", INT64_MIN, INT64_MAX, 0);
    row->stack =
        ct_ids_find(&loader->stack_ids,
                    ct_rows_opt(rows, 10, "stack", 0, INT32_MAX, CT_NONE));
    if (loader->failed)
        return;
    row->bytes =
        ct_load_bytes(loader, row->kind, row->comm, row->count, type_bytes);
    if (ct_is_p2p(row->kind) && row->peer == CT_NONE)
        ct_rows_fail(rows, "a %s without peer", ct_op_infos[row->kind].name);
}

static void read_class(struct ct_rows *rows, struct ct_op_class_row *row)
{
    struct ct_loader *loader = rows->loader;
    int64_t id = ct_rows_int(rows, 0, "id", 0, INT64_MAX);
    int64_t kind = ct_rows_int(rows, 2, "kind", 0, CT_MAX_CODES - 1);
    int known = ct_code_of(&loader->kinds, kind);

    row->comm = comm_of(rows, 1);
    if (known == CT_NONE)
        ct_rows_fail(rows, "kind %lld is not known", (long long)kind);
    if (loader->failed)
        return;
    row->kind = (enum ct_op)known;
    row->base = ct_op_infos[known].base;
    row->type = row->redop = row->peer = CT_NONE;
    row->graph = ct_load_graph_of(
        loader, ct_rows_opt(rows, 9, "graph", -CT_MAX_GRAPHS, INT64_MAX, 0));
    if (!is_odd(rows, row) || !ct_load_is_refused(loader, id))
        read_arguments(rows, row);
}

void ct_load_classes(struct ct_loader *loader)
{
    struct ct_rows rows;

    ct_rows_open(&rows, loader, "op_class",
                 loader->version < 2
                     ? "SELECT id, comm, kind, type, redop, count, peer,"
                       " stream, site, NULL, NULL FROM op_class"
                       " ORDER BY id"
                     : "SELECT id, comm, kind, type, redop, count, peer,"
                       " stream, site, graph, stack FROM op_class"
                       " ORDER BY id");
    while (ct_rows_next(&rows))
        read_class(&rows, ct_load_add_class(loader, ct_rows_int(&rows, 0, "id",
                                                                0, INT64_MAX)));
}

int ct_load_stream_of(struct ct_loader *loader, uint64_t stream)
{
    struct ct_process *p = loader->process;
    const int guess = loader->stream_guess;
    int i;

    if (guess < p->nstreams && p->streams[guess] == stream)
        return guess;
    i = ct_intern_add(&loader->stream_keys, &stream, sizeof(stream));
    if (i == p->nstreams) {
        p->streams = ct_grow(p->streams, &loader->stream_capacity, i,
                             sizeof(*p->streams));
        p->streams[p->nstreams++] = stream;
    }
    return loader->stream_guess = i;
}

static struct ct_short_ns duration(struct ct_rows *rows, int column,
                                   const char *name, int64_t low)
{
    return ct_shorten_ns(
        ct_rows_opt(rows, column, name, low, CT_MAX_DURATION_NS, CT_NO_TIME));
}

struct ct_launch_row *ct_load_add_launch(struct ct_loader *loader, int64_t id)
{
    struct ct_process *p = loader->process;
    struct ct_launch_row *row;

    p->launches = ct_grow(p->launches, &loader->launch_capacity, p->nlaunches,
                          sizeof(*p->launches));
    row = &p->launches[p->nlaunches++];
    *row = (struct ct_launch_row){.first_op = CT_NONE, .bytes = CT_NONE};
    ct_ids_add(&loader->launch_ids, id);
    return row;
}

static bool is_wanted(const struct ct_load_only *only, uint64_t uid)
{
    int i;

    for (i = 0; i < only->nuids; i++)
        if (only->uids[i] == uid)
            return true;
    return false;
}

/* Ids of the communicators that are wanted, or of the classes of their ops. */
static void append_wanted(sqlite3_str *sql, const struct ct_loader *loader,
                          bool classes)
{
    const struct ct_process *p = loader->process;
    const int n = classes ? p->nclasses : p->ncomms;
    const char *comma = "";
    int i;

    for (i = 0; i < n; i++) {
        const int comm = classes ? p->classes[i].comm : i;

        if (!is_wanted(loader->only, p->comms[comm].uid))
            continue;
        sqlite3_str_appendf(sql, "%s%lld", comma,
                            classes ? (long long)loader->class_ids.ids[i]
                                    : (long long)p->comms[i].id);
        comma = ", ";
    }
}

/* select, in the order of ids; where not all is wanted, the rows whose column,
 * "class" or "comm", is. */
static const char *select_wanted(struct ct_loader *loader, const char *select,
                                 const char *column)
{
    sqlite3_str *sql = sqlite3_str_new(loader->db.handle);
    const char *text = NULL;
    char *built;

    sqlite3_str_appendall(sql, select);
    if (loader->only && !loader->failed) {
        sqlite3_str_appendf(sql, " WHERE %s IN (", column);
        append_wanted(sql, loader, !strcmp(column, "class"));
        sqlite3_str_appendall(sql, ")");
    }
    sqlite3_str_appendall(sql, " ORDER BY id");
    built = sqlite3_str_finish(sql);
    if (built)
        text = ct_arena_text(loader->arena, built, strlen(built));
    else
        ct_load_fail(loader, "out of memory");
    sqlite3_free(built);
    return text ? text : "";
}

#define MOST_RESERVED (1 << 22)

/* At most so many rows as the file says by ids and has room for, so that arrays
 * need not be moved while they grow; those of a file that is, or says that it
 * is, huge grow. */
static int rows_of(const struct ct_loader *loader, const char *last,
                   const char *first)
{
    const long long low = ct_db_int(&loader->db, first, 0);
    const long long high = ct_db_int(&loader->db, last, -1);
    long long rows;

    if (high < low || __builtin_sub_overflow(high, low, &rows))
        return 0;
    if (rows >= loader->most_rows)
        rows = loader->most_rows;
    return rows < MOST_RESERVED ? (int)rows + 1 : MOST_RESERVED;
}

void ct_load_launches(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_launch_row *row;
    struct ct_rows rows;

    p->launches = ct_reserve(p->launches, &loader->launch_capacity,
                             rows_of(loader, "SELECT max(id) FROM launch",
                                     "SELECT min(id) FROM launch"),
                             sizeof(*p->launches));
    ct_rows_open(&rows, loader, "launch",
                 select_wanted(loader,
                               "SELECT grp, comm, stream, ops, enter_ns,"
                               " host_ns, gpu_off_ns, gpu_ns, flags, id"
                               " FROM launch",
                               "comm"));
    while (ct_rows_next(&rows)) {
        row = ct_load_add_launch(loader,
                                 ct_rows_int(&rows, 9, "id", 0, INT64_MAX));
        row->grp = (uint32_t)ct_rows_opt(&rows, 0, "grp", 0, UINT32_MAX, 0);
        row->comm = comm_of(&rows, 1);
        row->stream = ct_load_stream_of(
            loader,
            (uint64_t)ct_rows_opt(&rows, 2, "stream", INT64_MIN, INT64_MAX, 0));
        row->nops = (int)ct_rows_opt(&rows, 3, "ops", 0, INT32_MAX, 0);
        row->enter_ns =
            ct_rows_int(&rows, 4, "enter_ns", -CT_MAX_TIME_NS, CT_MAX_TIME_NS);
        row->host = duration(&rows, 5, "host_ns", 0);
        row->offset = duration(&rows, 6, "gpu_off_ns", -CT_MAX_DURATION_NS);
        row->gpu = duration(&rows, 7, "gpu_ns", 0);
        row->flags = ct_load_flags(
            loader, (uint32_t)ct_rows_opt(&rows, 8, "flags", 0, UINT32_MAX, 0));
    }
}

static bool is_launch(const struct ct_launch_row *launch, uint64_t grp,
                      int comm, int stream)
{
    return launch->grp == grp && launch->comm == comm &&
           launch->stream == stream;
}

static int find_launch(struct ct_loader *loader, uint64_t grp, int comm,
                       int stream)
{
    struct ct_process *p = loader->process;
    uint64_t key[3];

    /* Launch i gets number i; a second launch with the same key would shift
     * the numbers, so it gets a key that no op asks for. */
    for (; loader->launch_known < p->nlaunches; loader->launch_known++) {
        const struct ct_launch_row *launch = &p->launches[loader->launch_known];

        key[0] = launch->grp;
        key[1] = (uint64_t)launch->comm;
        key[2] = (uint64_t)launch->stream;
        if (ct_intern_find(&loader->launch_keys, key, sizeof(key)) != CT_NONE)
            ct_intern_add(&loader->launch_keys, &loader->launch_known,
                          sizeof(loader->launch_known));
        else
            ct_intern_add(&loader->launch_keys, key, sizeof(key));
    }
    key[0] = grp;
    key[1] = (uint64_t)comm;
    key[2] = (uint64_t)stream;
    return ct_intern_find(&loader->launch_keys, key, sizeof(key));
}

int ct_load_launch_of(struct ct_loader *loader, uint64_t grp, int comm,
                      uint64_t stream)
{
    struct ct_process *p = loader->process;
    const int at = ct_load_stream_of(loader, stream);
    int i, end = loader->launch_guess + 8;

    /* Groups follow each other as their launches do: mostly the launch of the
     * op before or one soon after. */
    for (i = loader->launch_guess; i < end && i < p->nlaunches; i++)
        if (is_launch(&p->launches[i], grp, comm, at))
            return loader->launch_guess = i;
    i = find_launch(loader, grp, comm, at);
    if (i != CT_NONE)
        loader->launch_guess = i;
    return i;
}

struct ct_op_row *ct_load_add_op(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_op_row *op;

    p->ops = ct_grow(p->ops, &loader->op_capacity, p->nops, sizeof(*p->ops));
    op = &p->ops[p->nops++];
    op->launch = op->instance = CT_NONE;
    return op;
}

/* Of a group that never ended: it had a place in a launch, whose row nothing
 * can have cost. A rank alone launches collectives in the call. */
static bool was_never_launched(const struct ct_loader *loader,
                               const struct ct_op_row *op)
{
    const struct ct_process *p = loader->process;

    return loader->version >= 2 && p->end_ns != CT_NO_TIME && !p->nlosses &&
           op->flags & CT_FLAG_GROUPED &&
           op->flags & (CT_FLAG_GROUP_TIME | CT_FLAG_UNSAMPLED) &&
           !(op->flags & (CT_FLAG_EVENT | CT_FLAG_CAPTURED | CT_FLAG_ZERO)) &&
           p->comms[p->classes[op->cls].comm].nranks > 1;
}

static void enter_launch(struct ct_loader *loader, struct ct_op_row *op,
                         uint64_t grp)
{
    const struct ct_op_class_row *class = &loader->process->classes[op->cls];
    struct ct_launch_row *launch;

    op->launch = ct_load_launch_of(loader, grp, class->comm, class->stream);
    if (op->launch == CT_NONE) {
        if (was_never_launched(loader, op))
            op->flags |= CT_FLAG_SIMULATED;
        return;
    }
    launch = &loader->process->launches[op->launch];
    if (launch->first_op == CT_NONE)
        launch->first_op = loader->process->nops - 1;
    if (ct_op_gpu_ns(op) == CT_NO_TIME)
        ct_op_set_gpu(op, ct_launch_start_ns(launch), ct_launch_gpu_ns(launch));
}

static void read_op(struct ct_rows *rows, struct ct_op_row *op)
{
    struct ct_loader *loader = rows->loader;
    int64_t class = ct_rows_int(rows, 1, "class", 0, INT64_MAX);

    op->cls = ct_ids_find(&loader->class_ids, class);
    op->ordinal = (uint32_t)ct_rows_int(rows, 2, "ordinal", 0, UINT32_MAX);
    op->enter_ns =
        ct_rows_int(rows, 4, "enter_ns", -CT_MAX_TIME_NS, CT_MAX_TIME_NS);
    op->host = duration(rows, 5, "host_ns", 0);
    op->offset = duration(rows, 6, "gpu_off_ns", -CT_MAX_DURATION_NS);
    op->gpu = duration(rows, 7, "gpu_ns", 0);
    op->flags = ct_load_flags(
        loader, (uint32_t)ct_rows_opt(rows, 8, "flags", 0, UINT32_MAX, 0));
    op->flags &= ~(uint32_t)CT_FLAG_SIMULATED; /* only launches are */
    if (op->cls == CT_NONE)
        ct_rows_fail(rows, "class %lld does not exist", (long long)class);
    else if (!ct_rows_null(rows, 3))
        enter_launch(loader, op,
                     (uint64_t)ct_rows_int(rows, 3, "grp", 0, INT64_MAX));
}

void ct_load_ops(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    const bool closed = p->end_ns != CT_NO_TIME;
    struct ct_rows rows;

    p->ops = ct_reserve(
        p->ops, &loader->op_capacity,
        rows_of(loader, "SELECT max(id) FROM op", "SELECT min(id) FROM op"),
        sizeof(*p->ops));
    ct_rows_open(&rows, loader, "op",
                 select_wanted(loader,
                               "SELECT id, class, ordinal, grp, enter_ns,"
                               " host_ns, gpu_off_ns, gpu_ns, flags FROM op",
                               "class"));
    while (ct_rows_next(&rows)) {
        read_op(&rows, ct_load_add_op(loader));
        if (!closed) /* the ring may finish it */
            ct_ids_add(&loader->op_ids,
                       ct_rows_int(&rows, 0, "id", 0, INT64_MAX));
    }
}
