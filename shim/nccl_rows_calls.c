/* The program's calls, which lines that name no communicator are about. */
#include "nccl_rows_parts.h"

#include "nccl_file.h"
#include "op_facts.h"

/* Of a type that is not known it is a call all the same. */
static int64_t share_of(const struct row_op_class *row)
{
    int64_t bytes = type_bytes(row->type);
    return row->count * (bytes ? bytes : 1);
}

static int64_t whole(const struct call *call, int64_t nranks)
{
    return op_facts[call->op].size == CT_ALL_SHARES ? nranks * call->share
                                                    : call->share;
}

static void tell_call(struct nccl_rows *rows, const struct call *call,
                      bool choices, bool together)
{
    const struct place *place = &rows->places[call->comm % COMMS];
    if (place->comm != call->comm || place->nranks < 2 || call->share <= 0 ||
        op_facts[call->op].class == CT_ONE_SIDED)
        return;
    struct nccl_log *log = rows->of[place->copy].log;
    if (log && nccl_file_has_choices(place->copy) == choices)
        nccl_log_called(log, place->pointer, call->op, call->share,
                        whole(call, place->nranks), together);
}

static void take_class(struct nccl_rows *rows, const struct row_op_class *row)
{
    rows->calls[row->id % CALLS] = (struct call){
        .class = row->id,
        .comm = row->comm,
        .op = (int)row->kind,
        .share = share_of(row),
        .first = true,
    };
}

static int64_t end_of(const struct row_op *row)
{
    return row->host_ns == CT_NULL ? INT64_MAX : row->enter_ns + row->host_ns;
}

/* With the call before: in its group, or while it was under way. */
static bool is_together(struct nccl_rows *rows, const struct row_op *row)
{
    bool together = (row->grp != CT_NULL && row->grp == rows->grp) ||
                    row->enter_ns < rows->busy_until_ns;
    rows->grp = row->grp;
    if (end_of(row) >= rows->busy_until_ns) {
        rows->busy_until_ns = end_of(row);
        rows->busy_op = row->id;
    }
    return together;
}

/* The first call of its kind may connect ranks; later ones matter to choices
 * alone. */
static void take_op(struct nccl_rows *rows, const struct row_op *row)
{
    struct call *call = &rows->calls[row->class % CALLS];
    if (row->id == rows->busy_op)
        rows->busy_until_ns = end_of(row);
    if (row->id <= rows->last_op) /* its end is told */
        return;
    rows->last_op = row->id;
    bool together = is_together(rows, row);
    if (call->class != row->class)
        return;
    if (call->first)
        tell_call(rows, call, false, together);
    call->first = false;
    tell_call(rows, call, true, together);
}

void rows_take_calls(struct nccl_rows *rows, const struct batch *batch,
                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct row *row = &batch->rows[i];
        if (row->table == ROW_op_class)
            take_class(rows, &row->u.op_class);
        else if (row->table == ROW_op)
            take_op(rows, &row->u.op);
    }
}
