#include "unfinished.h"

#include "commtrace/ops.h"

void unfinished_keep(struct unfinished_list *list,
                     const struct unfinished *item)
{
    if (list->n == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        struct unfinished *items = realloc(list->items, room * sizeof(*items));
        if (!items)
            return;
        list->items = items;
        list->room = room;
    }
    list->items[list->n++] = *item;
}

struct timing_columns timing_of(struct row *row)
{
    if (row->table == ROW_launch)
        return (struct timing_columns){
            row->u.launch.enter_ns, &row->u.launch.host_ns,
            &row->u.launch.gpu_off_ns, &row->u.launch.gpu_ns,
            &row->u.launch.flags};
    return (struct timing_columns){row->u.op.enter_ns, &row->u.op.host_ns,
                                   &row->u.op.gpu_off_ns, &row->u.op.gpu_ns,
                                   &row->u.op.flags};
}

enum gpu_read unfinished_read(struct unfinished *call, int64_t t0_ns)
{
    struct timing_columns columns = timing_of(&call->row);
    int64_t start_ns, gpu_ns;
    enum gpu_read read = gpu_read(call->events, &start_ns, &gpu_ns);
    *columns.flags &= ~(int64_t)CT_FLAG_RUNNING;
    if (read == GPU_DONE) {
        *columns.gpu_off_ns = start_ns - t0_ns - columns.enter_ns;
        *columns.gpu_ns = gpu_ns;
    } else if (read == GPU_PENDING) {
        *columns.flags |= CT_FLAG_RUNNING;
    } else {
        *columns.flags &= ~(int64_t)CT_FLAG_EVENT;
    }
    return read;
}

/* Streams in which something was found unfinished: what follows there is not
 * finished either, so the driver is not asked. */
enum { BUSY = 32 };
struct busy {
    uint64_t streams[BUSY];
    unsigned n;
};

static bool is_busy(const struct busy *busy, uint64_t stream)
{
    unsigned i = 0;
    while (i < busy->n && busy->streams[i] != stream)
        i++;
    return i < busy->n;
}

void unfinished_poll(struct unfinished_list *list, int64_t t0_ns,
                     struct batch *batch)
{
    struct busy busy = {.n = 0};
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct unfinished call = list->items[i];
        bool wait = busy.n == BUSY || is_busy(&busy, call.stream);
        if (!wait && unfinished_read(&call, t0_ns) == GPU_PENDING) {
            busy.streams[busy.n++] = call.stream;
            wait = true;
        }
        if (wait)
            list->items[kept++] = call;
        else
            batch_add_row(batch, &call.row);
    }
    list->n = kept;
}
