#include "nccl/rma.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <nccl_newer.h>

#include "nccl/api.h"
#include "nccl/comm.h"
#include "nccl/fault.h"
#include "nccl/group.h"
#include "nccl/op.h"
#include "nccl/reduce.h"
#include "nccl/segment.h"
#include "nccl/wire.h"

struct arrival { /* a signal that nobody has waited for yet */
    int peer, index, context;
    int64_t ready_ns;
};

struct ncclWindow_vidmem {
    uint32_t number;
};

struct rma {
    pthread_mutex_t lock; /* of buffer */
    char **buffer;        /* of window n + 1; NULL: registered no more */
    uint32_t windows;
    struct arrival *arrived; /* in order; the stream task's own */
    int n_arrived;
};

/* What a record in a mailbox begins with; its bytes follow. */
struct letter {
    uint64_t bytes;
    uint64_t offset;
    int64_t ready_ns;
    uint32_t window; /* 0: none, a signal alone */
    int signals;
    int index, context;
};

#define LETTER_MAX (MAILBOX_BYTES / 4)

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static struct rma *rma_of(struct ncclComm *comm)
{
    pthread_mutex_lock(&making);
    if (!comm->rma && (comm->rma = calloc(1, sizeof(*comm->rma))))
        pthread_mutex_init(&comm->rma->lock, NULL);
    pthread_mutex_unlock(&making);
    return comm->rma;
}

void rma_free(struct rma *rma)
{
    if (!rma)
        return;
    pthread_mutex_destroy(&rma->lock);
    free(rma->buffer);
    free(rma->arrived);
    free(rma);
}

/* ---- windows: all ranks register in the same order, so a number names one */

NCCL_API(ncclResult_t, CommWindowRegister,
         (ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win,
          int winFlags))
{
    ncclResult_t result = comm_check_ready(comm);
    struct rma *rma;
    char **more;

    if (result)
        return result;
    if (!buff || !size || !win || winFlags & ~NCCL_WIN_COLL_SYMMETRIC)
        return nccl_fail(ncclInvalidArgument, "CommWindowRegister");
    rma = rma_of(comm);
    *win = malloc(sizeof(**win));
    if (!rma || !*win)
        return ncclSystemError;
    pthread_mutex_lock(&rma->lock);
    more = realloc(rma->buffer, (rma->windows + 1) * sizeof(*more));
    if (more) {
        rma->buffer = more;
        more[rma->windows++] = buff;
        (*win)->number = rma->windows;
    }
    pthread_mutex_unlock(&rma->lock);
    return more ? ncclSuccess : ncclSystemError;
}

NCCL_API(ncclResult_t, CommWindowDeregister,
         (ncclComm_t comm, ncclWindow_t win))
{
    ncclResult_t result = comm_check(comm);

    if (result)
        return result;
    if (!win)
        return nccl_fail(ncclInvalidArgument, "CommWindowDeregister: NULL");
    pthread_mutex_lock(&comm->rma->lock);
    comm->rma->buffer[win->number - 1] = NULL;
    pthread_mutex_unlock(&comm->rma->lock);
    free(win);
    return ncclSuccess;
}

/* Where to put bytes; false: the window is still to be registered. */
static int find_window(struct rma *rma, uint32_t number, char **buffer)
{
    int known;

    pthread_mutex_lock(&rma->lock);
    known = number <= rma->windows;
    *buffer = known && number ? rma->buffer[number - 1] : NULL;
    pthread_mutex_unlock(&rma->lock);
    return known;
}

/* ---- mailboxes: one writer, one reader */

static void write_at(struct mailbox *box, uint64_t at, const void *from,
                     size_t n)
{
    size_t offset = at % MAILBOX_BYTES;
    size_t first = n < MAILBOX_BYTES - offset ? n : MAILBOX_BYTES - offset;

    if (!n)
        return; /* from may be NULL */
    memcpy(box->data + offset, from, first);
    memcpy(box->data, (const char *)from + first, n - first);
}

static void read_at(const struct mailbox *box, uint64_t at, void *to, size_t n)
{
    size_t offset = at % MAILBOX_BYTES;
    size_t first = n < MAILBOX_BYTES - offset ? n : MAILBOX_BYTES - offset;

    memcpy(to, box->data + offset, first);
    memcpy((char *)to + first, box->data, n - first);
}

static int note_arrival(struct rma *rma, int peer, const struct letter *letter)
{
    struct arrival *more =
        realloc(rma->arrived, ((size_t)rma->n_arrived + 1) * sizeof(*more));

    if (!more)
        return -1;
    rma->arrived = more;
    more[rma->n_arrived++] = (struct arrival){
        peer, letter->index, letter->context, letter->ready_ns};
    return 0;
}

/* Takes one letter; false: there is none that can be taken now. */
static int take_letter(struct ncclComm *comm, int src)
{
    struct mailbox *box = segment_mailbox(comm->segment, src, comm->rank);
    uint64_t read = atomic_load_explicit(&box->read, memory_order_relaxed);
    struct letter letter;
    char *buffer;

    if (atomic_load_explicit(&box->written, memory_order_acquire) == read)
        return 0;
    read_at(box, read, &letter, sizeof(letter));
    if (!find_window(comm->rma, letter.window, &buffer))
        return 0;
    if (buffer)
        read_at(box, read + sizeof(letter), buffer + letter.offset,
                letter.bytes);
    if (letter.signals && note_arrival(comm->rma, src, &letter))
        return 0;
    /* Sequentially consistent: then the writer is looked for, see post. */
    atomic_store(&box->read, read + sizeof(letter) + letter.bytes);
    if (atomic_exchange(&box->hungry, 0))
        seat_ring(segment_seat(comm->segment, src));
    return 1;
}

static void take_letters(struct ncclComm *comm)
{
    for (int src = 0; src < comm->nranks; src++) {
        while (take_letter(comm, src))
            ;
    }
}

static int has_room(struct mailbox *box, size_t n)
{
    uint64_t written =
        atomic_load_explicit(&box->written, memory_order_relaxed);

    return MAILBOX_BYTES - (written - atomic_load(&box->read)) >= n;
}

/* While there is no room, what came for us is taken: two ranks that put much
 * into each other would wait for ever. */
static int post(struct ncclComm *comm, int peer, const struct letter *letter,
                const char *bytes)
{
    struct mailbox *box = segment_mailbox(comm->segment, comm->rank, peer);
    struct seat *seat = segment_seat(comm->segment, comm->rank);
    size_t n = sizeof(*letter) + letter->bytes;
    uint64_t written;

    for (;;) {
        uint32_t heard = seat_listen(seat);

        if (comm_is_stopped(comm))
            return -1;
        if (has_room(box, n))
            break;
        atomic_store(&box->hungry, 1);
        take_letters(comm);
        if (!has_room(box, n))
            seat_sleep(seat, heard);
    }
    written = atomic_load_explicit(&box->written, memory_order_relaxed);
    write_at(box, written, letter, sizeof(*letter));
    if (letter->bytes)
        write_at(box, written + sizeof(*letter), bytes, letter->bytes);
    atomic_store_explicit(&box->written, written + n, memory_order_release);
    seat_ring(segment_seat(comm->segment, peer));
    return 0;
}

/* ---- ops */

static int run_put(const struct op *op, int64_t *time_ns)
{
    size_t left = op->count * type_bytes(op->type);
    const char *from = op->send;
    struct letter letter = {.window = op->signal.window,
                            .offset = op->signal.offset,
                            .index = op->signal.index,
                            .context = op->signal.context};

    *time_ns = wire_book(op->comm, op->peer, left, *time_ns, &letter.ready_ns);
    do {
        letter.bytes = left < LETTER_MAX ? left : LETTER_MAX;
        left -= letter.bytes;
        letter.signals = !left;
        if (post(op->comm, op->peer, &letter, from))
            return -1;
        letter.offset += letter.bytes;
        from += letter.bytes;
    } while (left);
    return 0;
}

/* The oldest signals of the kind are those that were waited for. */
static int consume(struct rma *rma, const struct op *op, int64_t *ready_ns)
{
    int found = 0, kept = 0;

    for (int i = 0; i < rma->n_arrived; i++) {
        const struct arrival *a = &rma->arrived[i];

        found += a->peer == op->peer && a->index == op->signal.index &&
                 a->context == op->signal.context;
    }
    if (found < op->signal.times)
        return 0;
    found = 0;
    for (int i = 0; i < rma->n_arrived; i++) {
        struct arrival a = rma->arrived[i];

        if (found < op->signal.times && a.peer == op->peer &&
            a.index == op->signal.index && a.context == op->signal.context) {
            found++;
            *ready_ns = *ready_ns < a.ready_ns ? a.ready_ns : *ready_ns;
        } else {
            rma->arrived[kept++] = a;
        }
    }
    rma->n_arrived = kept;
    return 1;
}

static int run_wait(const struct op *op, int64_t *time_ns)
{
    struct ncclComm *comm = op->comm;
    struct seat *seat = segment_seat(comm->segment, comm->rank);

    for (;;) {
        uint32_t heard = seat_listen(seat);

        if (comm_is_stopped(comm))
            return -1;
        take_letters(comm);
        if (consume(comm->rma, op, time_ns))
            return 0;
        seat_sleep(seat, heard);
    }
}

int rma_run(const struct op *op, int64_t *time_ns)
{
    return op->kind == OP_PUT ? run_put(op, time_ns) : run_wait(op, time_ns);
}

/* ---- calls */

static ncclResult_t issue(struct op *op, const char *call)
{
    ncclResult_t result = op_check(op, call);

    if (!result && !rma_of(op->comm))
        result = ncclSystemError;
    return result ? group_fail(result) : group_add_op(op);
}

static ncclResult_t put(struct op *op, unsigned flags, const char *call)
{
    ncclResult_t result = comm_check_ready(op->comm);

    if (result)
        return group_fail(result);
    if (flags || op->signal.index || op->signal.context)
        return group_fail(
            nccl_fail(ncclInvalidArgument, "%s: flags %u", call, flags));
    result = fault_strike(op->comm);
    return result ? group_fail(result) : issue(op, call);
}

NCCL_API(ncclResult_t, PutSignal,
         (const void *localbuff, size_t count, ncclDataType_t datatype,
          int peer, ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx,
          int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream))
{
    if (!peerWin || (count && !localbuff))
        return group_fail(nccl_fail(ncclInvalidArgument, "PutSignal: NULL"));
    return put(&(struct op){.kind = OP_PUT,
                            .send = localbuff,
                            .count = count,
                            .type = datatype,
                            .peer = peer,
                            .comm = comm,
                            .stream = stream,
                            .signal = {.window = peerWin->number,
                                       .offset = peerWinOffset,
                                       .index = sigIdx,
                                       .context = ctx}},
               flags, "PutSignal");
}

NCCL_API(ncclResult_t, Signal,
         (int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
          cudaStream_t stream))
{
    return put(&(struct op){.kind = OP_PUT,
                            .peer = peer,
                            .comm = comm,
                            .stream = stream,
                            .signal = {.index = sigIdx, .context = ctx}},
               flags, "Signal");
}

/* One call, and one launch, for all that it waits for. */
NCCL_API(ncclResult_t, WaitSignal,
         (int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm,
          cudaStream_t stream))
{
    ncclResult_t result = comm_check_ready(comm);

    if (result)
        return group_fail(result);
    if (nDesc < 1 || !signalDescs)
        return group_fail(
            nccl_fail(ncclInvalidArgument, "WaitSignal: %d of them", nDesc));
    result = fault_strike(comm);
    if (result)
        return group_fail(result);
    group_start();
    for (int i = 0; i < nDesc; i++) {
        const ncclWaitSignalDesc_t *d = &signalDescs[i];

        issue(&(struct op){.kind = OP_WAIT,
                           .peer = d->peer,
                           .comm = comm,
                           .stream = stream,
                           .signal = {.times = d->opCnt,
                                      .index = d->sigIdx,
                                      .context = d->ctx}},
              "WaitSignal");
    }
    return group_end();
}
