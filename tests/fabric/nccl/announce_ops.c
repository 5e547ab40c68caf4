#include "nccl/announce.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "nccl/comm.h"
#include "nccl/connect.h"
#include "nccl/layout.h"
#include "nccl/log.h"
#include "nccl/reduce.h"
#include "nccl/release.h"
#include "nccl/transport.h"
#include "nccl/tuning_table.h"

#define LOG_CONNECTIONS (LOG_INIT | LOG_P2P | LOG_SHM | LOG_NET)

struct announced {
    struct connections *connections;
};

void announced_free(struct announced *a)
{
    if (!a)
        return;
    connections_free(a->connections);
    free(a);
}

static struct announced *announced_of(struct ncclComm *comm)
{
    struct announced *a = comm->announced;

    if (a)
        return a;
    a = calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    a->connections = connections_new(comm);
    if (!a->connections) {
        free(a);
        return NULL;
    }
    comm->announced = a;
    return a;
}

void announce_connections(struct ncclComm *comm)
{
    struct announced *a = announced_of(comm);

    if (comm->nranks == 1 || !a || transport_is_lazy())
        return;
    connect_algorithm(a->connections, comm, ALGORITHM_RING);
    connect_algorithm(a->connections, comm, ALGORITHM_TREE);
    if (layout_of(comm)->nvls_channels)
        connect_algorithm(a->connections, comm,
                          layout_of(comm)->nodes > 1 ? ALGORITHM_NVLS_TREE
                                                     : ALGORITHM_NVLS);
}

/* What a thread is to connect. */
struct work {
    struct ncclComm *comm;
    unsigned algorithms;
};

static void *connect_work(void *arg)
{
    const struct work *w = arg;
    struct announced *a = w->comm->announced;

    if (comm_enter(w->comm))
        return NULL;
    for (int i = 0; i < ALGORITHMS; i++) {
        if (w->algorithms >> i & 1)
            connect_algorithm(a->connections, w->comm, (enum algorithm)i);
    }
    if (connections_are_new(a->connections))
        connect_peers(a->connections, w->comm);
    comm_leave();
    return NULL;
}

/* From a thread of its own, as NCCL does, since the log tells threads. */
static void connect_now(struct work *work)
{
    pthread_t thread;
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&thread, NULL, connect_work, work);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        connect_work(work);
    else
        pthread_join(thread, NULL);
}

static void announce_needs(const struct op *ops, int n)
{
    struct ncclComm *comm = ops[0].comm;
    struct announced *a = announced_of(comm);
    struct work work = {.comm = comm};

    for (int i = 0; i < n && a; i++) {
        if (op_is_p2p(&ops[i]))
            connect_note_peer(a->connections, comm, ops[i].peer,
                              ops[i].kind == OP_SEND ? END_SEND : END_RECEIVE);
        else if (!op_is_rma(&ops[i]) && transport_is_lazy())
            work.algorithms |= 1u << fabric_choose(&ops[i]).algorithm;
    }
    if (!a)
        return;
    work.algorithms &= ~connections_algorithms(a->connections);
    if (work.algorithms || connections_are_new(a->connections))
        connect_now(&work);
}

/* 2.20 is the first to tell each collective's choice, and 2.24 to tell it by
 * name, of a rank's own share. */
static void announce_choice(const struct op *op)
{
    struct fabric_choice c = fabric_choose(op);
    const char *name = tuning_function_name(tuning_function(op));
    size_t bytes = op_bytes(op);
    int release = nccl_release();

    if (release < 22003)
        return;
    if (release < 22304)
        log_info(LOG_TUNING, "%zu Bytes -> Algo %d proto %d time %f", bytes,
                 (int)c.algorithm, (int)c.protocol, c.us);
    else if (release < 22403)
        log_info(LOG_TUNING, "%s: %zu Bytes -> Algo %d proto %d time %f", name,
                 bytes, (int)c.algorithm, (int)c.protocol, c.us);
    else
        log_info(LOG_TUNING,
                 "%s: %zu Bytes -> Algo %s proto %s channel{Lo..Hi}={%d..%d}",
                 name, op->count * type_bytes(op->type), c.algorithm_name,
                 c.protocol_name, c.first_channel,
                 c.first_channel + c.channels - 1);
}

static void announce_choices(const struct op *ops, int n)
{
    int *order = calloc((size_t)n, sizeof(*order));

    if (!order)
        return;
    for (int i = 0; i < n; i++) {
        int at = i;

        for (; at && op_comes_before(&ops[i], &ops[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 0; i < n; i++) {
        const struct op *op = &ops[order[i]];

        if (!op_is_p2p(op) && !op_is_rma(op))
            announce_choice(op);
    }
    free(order);
}

void announce_ops(const struct op *ops, int n)
{
    struct ncclComm *comm = ops[0].comm;

    if (!log_wants(LOG_CONNECTIONS | LOG_TUNING) || comm->nranks < 2 ||
        !layout_of(comm))
        return;
    if (log_wants(LOG_CONNECTIONS))
        announce_needs(ops, n);
    if (!comm->rank && log_wants(LOG_TUNING))
        announce_choices(ops, n);
}
