#include "rows.h"

int64_t stream_handle(int stream)
{
    return 0x7000 + 0x100 * stream;
}

/* One call, with the columns that op and launch have in common. */
struct issue {
    int64_t enter_ns, host_ns; /* true times */
    const struct record *record;
    bool timed;           /* on the GPU */
    int64_t gpu_error_ns; /* of where it says that was */
    int flags;
};

struct issue_columns {
    int enter_ns, host_ns, gpu_off_ns, gpu_ns, flags;
};

/* When the GPU says it was: its clock ticks. */
static int64_t gpu_time(const struct output *out, const struct options *o,
                        int64_t true_ns)
{
    int64_t ns = output_time(out, true_ns);

    return ns - ns % o->tick_ns;
}

static void put_gpu(int64_t *row, const struct output *out,
                    const struct options *o, const struct issue *call,
                    const struct issue_columns *columns)
{
    const struct record *r = call->record;
    const int64_t began_ns = r->start_ns + call->gpu_error_ns;
    const int64_t start = gpu_time(out, o, began_ns);

    row[columns->gpu_off_ns] = start - row[columns->enter_ns];
    row[columns->gpu_ns] = gpu_time(out, o, began_ns + r->gpu_ns) - start;
}

/* What had not returned or finished when the file was cut is open. */
static void put_call(int64_t *row, const struct output *out,
                     const struct options *o, const struct issue *call,
                     const struct issue_columns *columns)
{
    const int64_t leave_ns = call->enter_ns + call->host_ns;

    row[columns->flags] = call->flags;
    row[columns->enter_ns] = output_time(out, call->enter_ns);
    row[columns->host_ns] = output_time(out, leave_ns) - row[columns->enter_ns];
    row[columns->gpu_off_ns] = row[columns->gpu_ns] = BULK_NULL;
    if (leave_ns > out->cut_ns) {
        row[columns->host_ns] = BULK_NULL;
        row[columns->flags] |= CT_FLAG_IN_CALL;
    }
    if (!output_has_end(out, call->record))
        row[columns->flags] |= CT_FLAG_RUNNING;
    else if (call->timed)
        put_gpu(row, out, o, call, columns);
}

/* One more of what is counted by n_p. */
static void lose(struct output *out, long *n_p, int64_t at)
{
    if (at >= out->cut_ns)
        return;
    if (!out->lost && !out->lost_launches)
        out->first_lost_ns = at;
    out->last_lost_ns = at;
    ++*n_p;
}

static void put_launch(struct writer *w, struct output *out,
                       const struct options *o, const struct rank *rank,
                       const struct record *record)
{
    static const struct issue_columns columns = {
        launch_enter_ns, launch_host_ns, launch_gpu_off_ns, launch_gpu_ns,
        launch_flags};
    struct issue call = {.enter_ns = record->enter_ns + HOST_GROUPED_NS,
                         .host_ns = HOST_CALL_NS,
                         .record = record,
                         .timed = true,
                         .gpu_error_ns = gpu_error_ns(o, out->rank, out->n),
                         .flags = CT_FLAG_EVENT};
    const struct op_class *class = &rank->classes[record->cls];
    int64_t row[launch_column_count];

    if (is_launch_dropped(o, out->rank, out->n)) {
        lose(out, &out->lost_launches, call.enter_ns);
    } else if (call.enter_ns < out->cut_ns) {
        row[launch_id] = ++out->id;
        row[launch_grp] = record->group;
        row[launch_comm] = (int)class->comm + 1;
        row[launch_stream] = stream_handle(class->stream);
        row[launch_ops] = out->group_ops;
        put_call(row, out, o, &call, &columns);
        writer_bulk(w, T_launch, row);
    }
    out->group_ops = 0;
}

static bool is_collective(const struct op_class *class)
{
    return class->op != CT_OP_SEND && class->op != CT_OP_RECV;
}

static struct op_class unlike_class(const struct op_class *class,
                                    enum unlike how)
{
    struct op_class other = *class;

    switch (how) {
    case UNLIKE_COUNT:
        other.count++;
        break;
    case UNLIKE_TYPE:
        other.type =
            class->type == CT_TYPE_INT32 ? CT_TYPE_FLOAT32 : CT_TYPE_INT32;
        break;
    case UNLIKE_KIND:
        other.op = class->op == CT_OP_ALL_GATHER ? CT_OP_REDUCE_SCATTER
                                                 : CT_OP_ALL_GATHER;
        other.redop = other.op == CT_OP_ALL_GATHER ? -1 : 0;
        other.peer = -1;
        break;
    }
    return other;
}

/* Number of the class under which a record is written. */
static int class_id(struct output *out, const struct options *o,
                    const struct rank *rank, struct record *record, int r)
{
    const struct op_class *class = &rank->classes[record->cls];
    enum unlike how;

    if (!is_collective(class) || !is_unlike(o, r, out->ncollectives++, &how))
        return record->cls + 1;
    record->unlike = true;
    out->planted = grow(out->planted, &out->planted_capacity, out->nplanted,
                        sizeof(*out->planted));
    out->planted[out->nplanted] = unlike_class(class, how);
    return FIRST_PLANTED_CLASS + out->nplanted++;
}

static void add_op(struct writer *w, struct output *out,
                   const struct options *o, struct record *record, int class,
                   int64_t at)
{
    static const struct issue_columns columns = {
        op_enter_ns, op_host_ns, op_gpu_off_ns, op_gpu_ns, op_flags};
    struct issue call = {
        .enter_ns = at,
        .host_ns = record->group ? HOST_GROUPED_NS : HOST_CALL_NS,
        .record = record,
        .timed = !record->group,
        .gpu_error_ns = gpu_error_ns(o, out->rank, out->n),
        .flags = record->group ? CT_FLAG_GROUP_TIME | CT_FLAG_GROUPED
                               : CT_FLAG_EVENT};
    int64_t row[op_column_count];

    row[op_id] = ++out->id;
    record->id = (int32_t)out->id;
    row[op_class] = class;
    row[op_ordinal] = record->ordinal;
    row[op_grp] = record->group ? record->group : BULK_NULL;
    put_call(row, out, o, &call, &columns);
    writer_bulk(w, T_op, row);
}

static void put_op(struct writer *w, struct output *out,
                   const struct options *o, const struct rank *rank,
                   struct record *record, int r)
{
    const int64_t at = record->enter_ns;
    int class = class_id(out, o, rank, record, r);

    record->id = 0;
    if (is_dropped(o, r, out->n++)) {
        lose(out, &out->lost, at);
    } else if (at < out->cut_ns) {
        add_op(w, out, o, record, class, at);
    }
    out->group_ops += record->group != 0;
    if (record->last_of_group)
        put_launch(w, out, o, rank, record);
}

void rows_put(struct writer *w, struct output *out, const struct options *o,
              struct rank *rank, int r)
{
    int i;

    for (i = 0; i < rank->nrecords; i++)
        put_op(w, out, o, rank, &rank->records[i], r);
}

static void put_loss(struct writer *w, const struct output *out,
                     const char *what, long n)
{
    sqlite3_stmt *row = writer_row(w, T_loss);

    if (!n)
        return;
    put_text(row, loss_cause, "ring_full");
    put_text(row, loss_what, what);
    put_null(row, loss_comm);
    put(row, loss_n, n);
    put(row, loss_first_ns, output_time(out, out->first_lost_ns));
    put(row, loss_last_ns, output_time(out, out->last_lost_ns));
    writer_add(w, row);
}

void rows_put_losses(struct writer *w, const struct output *out)
{
    put_loss(w, out, "op", out->lost);
    put_loss(w, out, "launch", out->lost_launches);
}
