#include "pipeline/travel.h"

#include <stdlib.h>

#include "trace/clocks.h"

struct message {
    int low, high; /* processes */
    uint64_t bytes;
    int step;
    bool up;    /* from low to high */
    int64_t ns; /* receiver's end - sender's start */
    int instance;
};

struct ends {             /* of an instance */
    int sender, receiver; /* processes; CT_NONE */
    int step;             /* of the receiver */
    int64_t start_ns, end_ns;
};

static void note_ends(const struct ct_trace *trace, int id, struct ends *ends)
{
    const struct ct_process *process = &trace->processes[id];

    for (int i = 0; i < process->nops; i++) {
        const struct ct_op_row *op = &process->ops[i];
        const enum ct_op_class cls =
            ct_op_infos[process->classes[op->cls].base].cls;

        if (op->instance == CT_NONE || ct_op_start_ns(op) == CT_NO_TIME ||
            ct_op_gpu_ns(op) == CT_NO_TIME)
            continue;
        if (cls == CT_SEND) {
            ends[op->instance].sender = id;
            ends[op->instance].start_ns =
                ct_common_ns(trace, process, ct_op_start_ns(op));
        } else if (cls == CT_RECV) {
            ends[op->instance].receiver = id;
            ends[op->instance].end_ns =
                ct_common_ns(trace, process, ct_op_start_ns(op)) +
                ct_op_gpu_ns(op);
            ends[op->instance].step = ct_op_step(process, op);
        }
    }
}

static int compare_messages(const void *pa, const void *pb)
{
    const struct message *a = pa;
    const struct message *b = pb;

    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return a->instance - b->instance;
}

static int list_messages(const struct ct_job *job, const struct ends *ends,
                         struct message *messages)
{
    int n = 0;

    for (int i = 0; i < job->ninstances; i++) {
        const struct ends *e = &ends[i];

        if (e->sender == CT_NONE || e->receiver == CT_NONE ||
            e->step == CT_NONE || e->sender == e->receiver)
            continue;
        messages[n++] = (struct message){
            .low = e->sender < e->receiver ? e->sender : e->receiver,
            .high = e->sender < e->receiver ? e->receiver : e->sender,
            .bytes = ct_usage_of(job, &job->instances[i])->bytes,
            .step = e->step,
            .up = e->sender < e->receiver,
            .ns = e->end_ns - e->start_ns,
            .instance = i};
    }
    return n;
}

static bool same_edge(const struct message *a, const struct message *b)
{
    return a->low == b->low && a->high == b->high && a->bytes == b->bytes;
}

/* Travel time from the n messages of one edge and size; CT_NO_TIME: no step
 * has both directions. */
static int64_t travel(const struct message *messages, int n)
{
    int64_t best = CT_NO_TIME;
    int k;

    for (int i = 0; i < n; i += k) {
        int64_t least[2] = {INT64_MAX, INT64_MAX};

        for (k = 0; i + k < n && messages[i + k].step == messages[i].step;
             k++) {
            int64_t *slot = &least[messages[i + k].up];

            if (messages[i + k].ns < *slot)
                *slot = messages[i + k].ns;
        }
        if (least[0] == INT64_MAX || least[1] == INT64_MAX)
            continue;
        const int64_t ns = (least[0] + least[1]) / 2;

        if (ns > 0 && (best == CT_NO_TIME || ns < best))
            best = ns;
    }
    return best;
}

static void set_times(struct message *messages, int n, int64_t *times)
{
    int k;

    if (n > 0)
        qsort(messages, (size_t)n, sizeof *messages, compare_messages);
    for (int i = 0; i < n; i += k) {
        int64_t ns;

        for (k = 1; i + k < n && same_edge(&messages[i], &messages[i + k]); k++)
            ;
        ns = travel(messages + i, k);
        for (int j = i; j < i + k && ns != CT_NO_TIME; j++)
            times[messages[j].instance] = ns;
    }
}

int64_t *ct_travel_times(const struct ct_trace *trace, const struct ct_job *job)
{
    const size_t n = (size_t)job->ninstances + 1;
    int64_t *times = malloc(n * sizeof *times);
    struct ends *ends = malloc(n * sizeof *ends);
    struct message *messages = malloc(n * sizeof *messages);

    if (!times || !ends || !messages) {
        free(times);
        times = NULL;
        goto out;
    }
    for (int i = 0; i < job->ninstances; i++) {
        times[i] = job->instances[i].transfer_ns;
        ends[i] = (struct ends){CT_NONE, CT_NONE, CT_NONE, 0, 0};
    }
    for (int i = 0; i < job->nprocesses; i++)
        note_ends(trace, job->processes[i], ends);
    set_times(messages, list_messages(job, ends, messages), times);
out:
    free(ends);
    free(messages);
    return times;
}
