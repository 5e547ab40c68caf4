/* Collectives as schedules of messages around the ring of ranks. */
#include <stdlib.h>
#include <string.h>

#include "nccl/comm.h"
#include "nccl/op.h"
#include "nccl/reduce.h"
#include "nccl/wire.h"

/* Chains (broadcast, reduce) pass a message on in pieces, so that all links
 * of the chain are busy at once: T = (n-1) alpha + S/B and a little. */
#define CHAIN_PIECES 16
#define CHAIN_PIECE_MIN ((size_t)64 << 10)

struct ring {
    struct ncclComm *comm;
    int n;
    int me;
    int next;
    int previous;
    size_t element;
    int64_t *time_ns;
};

/* A part of a buffer, in elements. */
struct part {
    size_t first;
    size_t count;
};

static struct ring ring_of(const struct op *op, int64_t *time_ns)
{
    int n = op->comm->nranks;
    int me = op->comm->rank;

    return (struct ring){
        .comm = op->comm,
        .n = n,
        .me = me,
        .next = (me + 1) % n,
        .previous = (me + n - 1) % n,
        .element = type_bytes(op->type),
        .time_ns = time_ns,
    };
}

/* The index that lies steps behind mine. */
static int behind(const struct ring *ring, int steps)
{
    return ((ring->me - steps) % ring->n + ring->n) % ring->n;
}

/* Sends to the next and receives from the previous rank; NULL: neither. */
static int pass(const struct ring *ring, const void *out, size_t out_count,
                void *in, size_t in_count)
{
    struct message m[2];
    int n = 0;

    if (out)
        m[n++] = (struct message){.peer = ring->next,
                                  .direction = WIRE_OUT,
                                  .data = (char *)out,
                                  .bytes = out_count * ring->element};
    if (in)
        m[n++] = (struct message){.peer = ring->previous,
                                  .direction = WIRE_IN,
                                  .data = in,
                                  .bytes = in_count * ring->element};
    return wire_transfer(ring->comm, m, n, ring->time_ns);
}

/* Part i of count elements cut in n; the last parts may be short. */
static struct part part_of(size_t count, int n, int i)
{
    size_t size = (count + (size_t)n - 1) / (size_t)n;
    struct part part = {.first = size * (size_t)i};

    if (part.first > count)
        part.first = count;
    part.count = count - part.first < size ? count - part.first : size;
    return part;
}

static char *at(const struct ring *ring, void *buffer, size_t first)
{
    return (char *)buffer + first * ring->element;
}

/* n - 1 steps: part me + 1 of buffer is then reduced over all ranks. */
static int reduce_around(const struct ring *ring, const struct op *op,
                         char *scratch)
{
    for (int k = 0; k < ring->n - 1; k++) {
        struct part out = part_of(op->count, ring->n, behind(ring, k));
        struct part in = part_of(op->count, ring->n, behind(ring, k + 1));

        if (pass(ring, at(ring, op->recv, out.first), out.count, scratch,
                 in.count))
            return -1;
        reduce_into(at(ring, op->recv, in.first), scratch, in.count, op->type,
                    op->redop);
    }
    return 0;
}

static int gather_around(const struct ring *ring, const struct op *op)
{
    for (int k = 0; k < ring->n - 1; k++) {
        struct part out = part_of(op->count, ring->n, behind(ring, k - 1));
        struct part in = part_of(op->count, ring->n, behind(ring, k));

        if (pass(ring, at(ring, op->recv, out.first), out.count,
                 at(ring, op->recv, in.first), in.count))
            return -1;
    }
    return 0;
}

static int all_reduce(const struct op *op, int64_t *time_ns)
{
    struct ring ring = ring_of(op, time_ns);
    struct part mine = part_of(op->count, ring.n, behind(&ring, -1));
    char *scratch = malloc(part_of(op->count, ring.n, 0).count * ring.element);
    int rc;

    if (!scratch)
        return -1;
    if (op->recv != op->send)
        memcpy(op->recv, op->send, op->count * ring.element);
    rc = reduce_around(&ring, op, scratch);
    if (!rc && op->redop == ncclAvg)
        reduce_divide(at(&ring, op->recv, mine.first), mine.count, op->type,
                      ring.n);
    if (!rc)
        rc = gather_around(&ring, op);
    free(scratch);
    return rc;
}

/* Each share starts at the rank after its owner and is reduced on its way. */
static int reduce_shares(const struct ring *ring, const struct op *op,
                         char *acc, char *scratch)
{
    size_t bytes = op->count * ring->element;
    const char *send = op->send;

    memcpy(acc, send + (size_t)behind(ring, 1) * bytes, bytes);
    for (int k = 0; k < ring->n - 1; k++) {
        if (pass(ring, acc, op->count, scratch, op->count))
            return -1;
        memcpy(acc, scratch, bytes);
        reduce_into(acc, send + (size_t)behind(ring, k + 2) * bytes, op->count,
                    op->type, op->redop);
    }
    return 0;
}

static int reduce_scatter(const struct op *op, int64_t *time_ns)
{
    struct ring ring = ring_of(op, time_ns);
    size_t bytes = op->count * ring.element;
    char *acc = malloc(2 * bytes);
    int rc;

    if (!acc)
        return -1;
    rc = reduce_shares(&ring, op, acc, acc + bytes);
    if (!rc && op->redop == ncclAvg)
        reduce_divide(acc, op->count, op->type, ring.n);
    if (!rc)
        memcpy(op->recv, acc, bytes);
    free(acc);
    return rc;
}

static int all_gather(const struct op *op, int64_t *time_ns)
{
    struct ring ring = ring_of(op, time_ns);
    size_t bytes = op->count * ring.element;
    char *recv = op->recv;
    char *mine = recv + (size_t)ring.me * bytes;

    if (mine != op->send)
        memmove(mine, op->send, bytes);
    for (int k = 0; k < ring.n - 1; k++) {
        if (pass(&ring, recv + (size_t)behind(&ring, k) * bytes, op->count,
                 recv + (size_t)behind(&ring, k + 1) * bytes, op->count))
            return -1;
    }
    return 0;
}

static int chain_pieces(size_t bytes)
{
    size_t pieces = bytes / CHAIN_PIECE_MIN;

    if (pieces > CHAIN_PIECES)
        return CHAIN_PIECES;
    return pieces ? (int)pieces : 1;
}

/* Piece k comes in while piece k - 1 goes on. */
static int broadcast(const struct op *op, int64_t *time_ns)
{
    struct ring ring = ring_of(op, time_ns);
    int pieces = chain_pieces(op->count * ring.element);
    int is_root = ring.me == op->peer;
    int is_last = ring.next == op->peer;

    if (is_root && op->recv != op->send)
        memcpy(op->recv, op->send, op->count * ring.element);
    for (int k = 0; k <= pieces; k++) {
        struct part in = part_of(op->count, pieces, k);
        struct part out = part_of(op->count, pieces, k - 1);
        void *to =
            !is_root && k < pieces ? at(&ring, op->recv, in.first) : NULL;
        void *from = !is_last && k > 0 ? at(&ring, op->recv, out.first) : NULL;

        if (pass(&ring, from, out.count, to, in.count))
            return -1;
    }
    return 0;
}

static int reduce_pieces(const struct ring *ring, const struct op *op,
                         char *acc, char *scratch)
{
    int pieces = chain_pieces(op->count * ring->element);
    int is_root = ring->me == op->peer;
    int is_first = ring->previous == op->peer;

    for (int k = 0; k <= pieces; k++) {
        struct part in = part_of(op->count, pieces, k);
        struct part out = part_of(op->count, pieces, k - 1);
        void *to = !is_first && k < pieces ? scratch : NULL;
        void *from = !is_root && k > 0 ? at(ring, acc, out.first) : NULL;

        if (pass(ring, from, out.count, to, in.count))
            return -1;
        if (to)
            reduce_into(at(ring, acc, in.first), scratch, in.count, op->type,
                        op->redop);
    }
    return 0;
}

static int reduce(const struct op *op, int64_t *time_ns)
{
    struct ring ring = ring_of(op, time_ns);
    size_t bytes = op->count * ring.element;
    char *acc = malloc(2 * bytes);
    int rc;

    if (!acc)
        return -1;
    memcpy(acc, op->send, bytes);
    rc = reduce_pieces(&ring, op, acc, acc + bytes);
    if (!rc && ring.me == op->peer) {
        if (op->redop == ncclAvg)
            reduce_divide(acc, op->count, op->type, ring.n);
        memcpy(op->recv, acc, bytes);
    }
    free(acc);
    return rc;
}

static int run_plain(const struct op *op, int64_t *time_ns)
{
    switch (op->kind) {
    case OP_ALL_REDUCE:
        return all_reduce(op, time_ns);
    case OP_REDUCE_SCATTER:
        return reduce_scatter(op, time_ns);
    case OP_ALL_GATHER:
        return all_gather(op, time_ns);
    case OP_BROADCAST:
        return broadcast(op, time_ns);
    case OP_REDUCE:
        return reduce(op, time_ns);
    case OP_SEND:
    case OP_RECV:
    case OP_PUT:
    case OP_WAIT:
        break;
    }
    return -1;
}

/* A PreMulSum is a sum of scaled contributions. */
static int run_premul(const struct op *op, int64_t *time_ns)
{
    size_t shares =
        op->kind == OP_REDUCE_SCATTER ? (size_t)op->comm->nranks : 1;
    size_t count = op->count * shares;
    size_t bytes = count * type_bytes(op->type);
    double factor = op->scalar ? number_read(op->scalar, op->type) : op->factor;
    struct op sum = *op;
    char *scaled = malloc(bytes);
    int rc;

    if (!scaled)
        return -1;
    memcpy(scaled, op->send, bytes);
    reduce_multiply(scaled, count, op->type, factor);
    sum.send = scaled;
    sum.redop = ncclSum;
    rc = run_plain(&sum, time_ns);
    free(scaled);
    return rc;
}

int collective_run(const struct op *op, int64_t *time_ns)
{
    return op->premul ? run_premul(op, time_ns) : run_plain(op, time_ns);
}
