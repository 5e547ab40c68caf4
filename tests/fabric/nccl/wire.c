#include "nccl/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/config.h"
#include "common/hash.h"
#include "nccl/comm.h"
#include "nccl/segment.h"

/* A transfer in progress: the queue of each peer and direction. */
struct transfer {
    struct ncclComm *comm;
    int64_t start_ns;
    struct message **queue[2];
    int left;
};

/* What a rank sends itself is a copy in the GPU's own memory. */
static const struct fabric_link self_link = {.bytes_per_ns = 1000};

static const struct fabric_link *link_of(struct ncclComm *comm, int peer)
{
    struct seat *seat = segment_seat(comm->segment, peer);

    if (peer == comm->rank)
        return &self_link;
    return &fabric_config()
                ->link[seat->peer.host_id == comm->host_id ? FABRIC_INTRA
                                                           : FABRIC_INTER];
}

/* The same job gets the same noise again, whatever the order of events. */
static double stretch(struct ncclComm *comm, int peer, double jitter)
{
    uint64_t h = fabric_mix(fabric_config()->seed ^ comm->noise);

    if (jitter <= 0)
        return 1;
    h = fabric_mix(h ^ (uint64_t)comm->rank << 40 ^ (uint64_t)peer << 20);
    h = fabric_mix(h ^ comm->messages[peer]);
    return 1 + jitter * ((double)(h >> 11) * 0x1p-52 - 1);
}

int64_t wire_book(struct ncclComm *comm, int peer, size_t bytes,
                  int64_t start_ns, int64_t *ready_ns)
{
    const struct fabric_link *link = link_of(comm, peer);
    double f = stretch(comm, peer, link->jitter);

    if (start_ns < comm->link_free_ns[peer])
        start_ns = comm->link_free_ns[peer];
    start_ns += (int64_t)((double)bytes / link->bytes_per_ns * f);
    comm->link_free_ns[peer] = start_ns;
    comm->messages[peer]++;
    *ready_ns = start_ns + (int64_t)((double)link->alpha_ns * f);
    return start_ns;
}

/* An empty pipe starts anew at its first byte: small messages then use few
 * pages of shared memory however many they are. */
static uint64_t place(struct pipe *pipe)
{
    uint64_t written =
        atomic_load_explicit(&pipe->written, memory_order_relaxed);
    uint32_t sent = atomic_load_explicit(&pipe->sent, memory_order_relaxed);

    if (atomic_load_explicit(&pipe->received, memory_order_acquire) != sent)
        return written;
    pipe->restart = (written + PIPE_BYTES - 1) / PIPE_BYTES * PIPE_BYTES;
    return pipe->restart;
}

/* The writer asks, then looks again; the reader makes room, then looks for a
 * request: in one total order, no request is missed. */
static uint32_t ask_for_room(struct message *m, struct pipe *pipe)
{
    m->waited = 1;
    atomic_store(&pipe->hungry, 1);
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load(&pipe->received);
}

static void offer_room(struct ncclComm *comm, int src, struct pipe *pipe)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load(&pipe->hungry))
        return;
    atomic_store(&pipe->hungry, 0);
    seat_ring(segment_seat(comm->segment, src));
}

static int send_envelope(struct transfer *t, struct message *m,
                         struct pipe *pipe)
{
    uint32_t sent = atomic_load_explicit(&pipe->sent, memory_order_relaxed);
    uint32_t received =
        atomic_load_explicit(&pipe->received, memory_order_acquire);
    struct envelope *envelope = &pipe->envelope[sent % PIPE_MESSAGES];

    if (sent - received >= PIPE_MESSAGES) {
        received = ask_for_room(m, pipe);
        if (sent - received >= PIPE_MESSAGES)
            return 0;
    }
    envelope->bytes = m->bytes;
    envelope->at = place(pipe);
    m->end_ns =
        wire_book(t->comm, m->peer, m->bytes, t->start_ns, &envelope->ready_ns);
    atomic_store_explicit(&pipe->written, envelope->at, memory_order_relaxed);
    /* Release: the envelope before its number. */
    atomic_store_explicit(&pipe->sent, sent + 1, memory_order_release);
    m->started = 1;
    return 1;
}

static void copy_in(struct pipe *pipe, uint64_t at, const char *src, size_t n)
{
    size_t offset = at % PIPE_BYTES;
    size_t first = n < PIPE_BYTES - offset ? n : PIPE_BYTES - offset;

    memcpy(pipe->data + offset, src, first);
    memcpy(pipe->data, src + first, n - first);
}

static void copy_out(struct pipe *pipe, uint64_t at, char *dst, size_t n)
{
    size_t offset = at % PIPE_BYTES;
    size_t first = n < PIPE_BYTES - offset ? n : PIPE_BYTES - offset;

    memcpy(dst, pipe->data + offset, first);
    memcpy(dst + first, pipe->data, n - first);
}

/* The reader's count lies behind a restart until it takes the envelope. */
static uint64_t room(const struct pipe *pipe)
{
    uint64_t read = atomic_load(&pipe->read);
    uint64_t written =
        atomic_load_explicit(&pipe->written, memory_order_relaxed);

    if (read < pipe->restart)
        read = pipe->restart;
    return PIPE_BYTES - (written - read);
}

static size_t send_bytes(struct message *m, struct pipe *pipe)
{
    size_t n = m->bytes - m->moved;
    uint64_t space = room(pipe);
    uint64_t written =
        atomic_load_explicit(&pipe->written, memory_order_relaxed);

    if (n > space) {
        ask_for_room(m, pipe);
        space = room(pipe);
    }
    if (n > space)
        n = space;
    if (!n)
        return 0;
    copy_in(pipe, written, m->data + m->moved, n);
    /* Release: the bytes before their count. */
    atomic_store_explicit(&pipe->written, written + n, memory_order_release);
    m->moved += n;
    return n;
}

/* A send that had to wait for room ends no earlier than room was made. */
static int finish_send(struct message *m, struct pipe *pipe)
{
    int64_t taken_ns;

    if (m->moved < m->bytes)
        return 0;
    taken_ns = atomic_load_explicit(&pipe->taken_ns, memory_order_acquire);
    if (m->waited && m->end_ns < taken_ns)
        m->end_ns = taken_ns;
    return 1;
}

static int advance_send(struct transfer *t, struct message *m, int *moved)
{
    struct ncclComm *comm = t->comm;
    struct pipe *pipe = segment_pipe(comm->segment, comm->rank, m->peer);
    int news = 0;

    if (!m->started)
        news = send_envelope(t, m, pipe);
    if (m->started && send_bytes(m, pipe))
        news = 1;
    if (news)
        seat_ring(segment_seat(comm->segment, m->peer));
    *moved |= news;
    return m->started && finish_send(m, pipe);
}

/* What does not fit in the pipe crosses the link after the receiver came. */
static void time_receive(struct transfer *t, struct message *m,
                         struct pipe *pipe, int64_t ready_ns)
{
    const struct fabric_link *link = link_of(t->comm, m->peer);
    int64_t taken = t->start_ns;

    m->end_ns = ready_ns;
    if (m->bytes > PIPE_BYTES) {
        double rest = (double)(m->bytes - PIPE_BYTES);

        taken += (int64_t)(rest / link->bytes_per_ns);
        if (m->end_ns < taken + link->alpha_ns)
            m->end_ns = taken + link->alpha_ns;
    }
    if (m->end_ns < t->start_ns)
        m->end_ns = t->start_ns;
    atomic_store_explicit(&pipe->taken_ns, taken, memory_order_release);
}

/* As with NCCL, a message of another size than expected is never received:
 * both ranks hang until they abort. But here it is said why. */
static void refuse(struct ncclComm *comm, struct message *m, uint64_t bytes)
{
    const char *strict = getenv("FABRIC_STRICT");

    if (m->refused)
        return;
    m->refused = 1;
    fprintf(stderr,
            "fabric: rank %d expects %zu bytes from rank %d, which sent %llu\n",
            comm->rank, m->bytes, m->peer, (unsigned long long)bytes);
    if (strict && !strcmp(strict, "1"))
        abort();
}

static int take_envelope(struct transfer *t, struct message *m,
                         struct pipe *pipe)
{
    uint32_t received =
        atomic_load_explicit(&pipe->received, memory_order_relaxed);
    struct envelope *envelope = &pipe->envelope[received % PIPE_MESSAGES];

    if (atomic_load_explicit(&pipe->sent, memory_order_acquire) == received)
        return 0;
    if (envelope->bytes != m->bytes) {
        refuse(t->comm, m, envelope->bytes);
        return 0;
    }
    atomic_store_explicit(&pipe->read, envelope->at, memory_order_relaxed);
    time_receive(t, m, pipe, envelope->ready_ns);
    m->started = 1;
    return 1;
}

static size_t receive_bytes(struct message *m, struct pipe *pipe)
{
    uint64_t read = atomic_load_explicit(&pipe->read, memory_order_relaxed);
    uint64_t written =
        atomic_load_explicit(&pipe->written, memory_order_acquire);
    uint64_t n = written > read ? written - read : 0;

    if (n > m->bytes - m->moved)
        n = m->bytes - m->moved;
    if (!n)
        return 0;
    copy_out(pipe, read, m->data + m->moved, n);
    /* Release: the bytes are read before their room is offered. */
    atomic_store_explicit(&pipe->read, read + n, memory_order_release);
    m->moved += n;
    return n;
}

static int advance_receive(struct transfer *t, struct message *m, int *moved)
{
    struct ncclComm *comm = t->comm;
    struct pipe *pipe = segment_pipe(comm->segment, m->peer, comm->rank);
    int news = 0;
    int done;

    if (!m->started)
        news = take_envelope(t, m, pipe);
    if (m->started && receive_bytes(m, pipe))
        news = 1;
    done = m->started && m->moved == m->bytes;
    if (done)
        atomic_fetch_add_explicit(&pipe->received, 1, memory_order_release);
    if (news)
        offer_room(comm, m->peer, pipe);
    *moved |= news;
    return done;
}

static int advance(struct transfer *t, struct message *m, int *moved)
{
    return m->direction == WIRE_OUT ? advance_send(t, m, moved)
                                    : advance_receive(t, m, moved);
}

/* One round over all peers; whether anything moved. */
static int round_of_all(struct transfer *t, int64_t *end_ns)
{
    int moved = 0;

    for (int d = WIRE_OUT; d <= WIRE_IN; d++) {
        for (int peer = 0; peer < t->comm->nranks; peer++) {
            struct message **head = &t->queue[d][peer];

            while (*head && advance(t, *head, &moved)) {
                if (*end_ns < (*head)->end_ns)
                    *end_ns = (*head)->end_ns;
                *head = (*head)->next;
                t->left--;
                moved = 1;
            }
        }
    }
    return moved;
}

static int move_all(struct transfer *t, int64_t *end_ns)
{
    struct seat *seat = segment_seat(t->comm->segment, t->comm->rank);

    while (t->left) {
        uint32_t heard = seat_listen(seat);

        if (comm_is_stopped(t->comm))
            return -1;
        if (!round_of_all(t, end_ns))
            seat_sleep(seat, heard);
    }
    return 0;
}

static void line_up(struct transfer *t, struct message *messages, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        struct message *m = &messages[i];
        struct message **head = &t->queue[m->direction][m->peer];

        m->next = *head;
        *head = m;
    }
}

/* A rank that fell behind the machine's time (stopped, or on a host that is
 * too slow) goes on in real time. */
static int64_t caught_up(int64_t time_ns)
{
    int64_t now = fabric_now_ns();

    return now - time_ns > fabric_config()->catch_up_ns ? now : time_ns;
}

int wire_transfer(struct ncclComm *comm, struct message *messages, int n,
                  int64_t *time_ns)
{
    struct transfer t = {.comm = comm, .left = n};
    size_t peers = (size_t)comm->nranks;
    struct message **queues;
    int64_t end_ns;
    int rc;

    if (!n)
        return 0;
    queues = calloc(2 * peers, sizeof(struct message *));
    if (!queues)
        return -1;
    t.start_ns = caught_up(*time_ns);
    t.queue[WIRE_OUT] = queues;
    t.queue[WIRE_IN] = queues + peers;
    line_up(&t, messages, n);
    end_ns = t.start_ns;
    rc = move_all(&t, &end_ns);
    free(queues);
    *time_ns = end_ns;
    return rc;
}
