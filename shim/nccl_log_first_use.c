/*
 * Since 2.22 NCCL connects ranks when a communicator is first used, in threads
 * that name nobody, and sends and recvs it always has. What connects at a time
 * is of one communicator: the one that all of it fits; in doubt the rings and
 * trees that it told of and where its ranks are speak for it, then the
 * program's calls: what was called first was connected first. Where that does
 * not decide, what connects is of nobody, rather than of a likely one.
 */
#include "nccl_log_state.h"

static bool is_rank_of(const struct log_comm *comm, int rank)
{
    return rank < 0 || comm->about.nranks < 0 || rank < comm->about.nranks;
}

static bool has_channel(const struct nccl_log_comm *about, int channel)
{
    int most = about->channels;
    if (most > 0 && about->nvls_channels > most)
        most = about->nvls_channels;
    if (most > 0 && about->p2p_channels > most)
        most = about->p2p_channels;
    return most <= 0 || channel < most;
}

static bool fits(const struct log_comm *comm, const struct nccl_log_fact *fact,
                 int rank, uint64_t since)
{
    return (comm->alive || comm->ended > since) &&
           is_rank_of(comm, fact->conn.src) &&
           is_rank_of(comm, fact->conn.dst) &&
           has_channel(&comm->about, fact->conn.channel) &&
           (comm->about.rank < 0 || rank < 0 || comm->about.rank == rank) &&
           (comm->about.device < 0 ||
            comm->about.device == fact->source.device);
}

static bool is_in_tree(const struct nccl_log_tree *tree, int rank)
{
    return tree->up == rank || tree->down[0] == rank || tree->down[1] == rank ||
           tree->down[2] == rank;
}

/* Inside a node NCCL takes the network only where all else is forbidden. */
static bool is_odd(const struct nccl_log_comm *about, const char *via)
{
    if (strncmp(via, "NET/", 4) == 0)
        return about->nodes == 1;
    return about->local_ranks == 1 && about->mnnvl != 1;
}

/* Of sends and recvs. Shared memory does not say so, but what a collective
 * connects ends in a line of its own. */
static bool is_of_peers(const struct log_waiting *waiting)
{
    const int connector = waiting->fact.conn.connector;
    return connector == 1 || (connector < 0 && !waiting->connected);
}

/* What its rings and trees and its nodes say of it. */
static int shape(const struct log_comm *comm, const struct log_waiting *waiting)
{
    const struct nccl_log_conn *conn = &waiting->fact.conn;
    int rank = waiting->rank;
    int score = is_odd(&comm->about, conn->via) ? -2 : 0;
    if (is_of_peers(waiting) || (unsigned)conn->channel >= LOG_CHANNELS)
        return score;
    const struct nccl_log_ring *ring = &comm->rings[conn->channel];
    const struct nccl_log_tree *tree = &comm->trees[conn->channel];
    int peer = conn->src == rank ? conn->dst : conn->src;
    bool in_ring = ring->channel >= 0 &&
                   (conn->src == rank ? ring->next : ring->prev) == peer;
    return score + (in_ring || (tree->channel >= 0 && is_in_tree(tree, peer)));
}

struct candidate {
    struct log_comm *comm;
    int fitting;     /* facts that wait */
    int shape;       /* of them all */
    int told;        /* which it has already */
    uint64_t called; /* order of the first call that may have connected it */
};

/* Shared memory that no line has ended yet may be a collective's; but rather a
 * send's. */
static const uint64_t later = UINT64_C(1) << 62;

static uint64_t call_for(const struct log_comm *comm,
                         const struct log_waiting *waiting)
{
    if (!is_of_peers(waiting))
        return comm->collective_call;
    if (comm->peer_call || waiting->fact.conn.connector == 1 ||
        !comm->collective_call)
        return comm->peer_call;
    return comm->collective_call + later;
}

/* Shared memory for sends looks as that for a ring does. */
static bool is_told(const struct log_comm *comm,
                    const struct log_waiting *waiting)
{
    return (waiting->fact.conn.connector >= 0 || waiting->connected) &&
           log_has_conn(comm, &waiting->fact.conn);
}

/* Nothing is connected twice. */
static bool has_all(const struct candidate *candidate)
{
    return candidate->told == candidate->fitting;
}

static struct candidate examine(const struct nccl_log *log,
                                const struct log_thread *thread,
                                struct log_comm *comm)
{
    struct candidate candidate = {.comm = comm};
    for (uint32_t i = thread->first; i; i = log->waiting[i - 1].next) {
        const struct log_waiting *waiting = &log->waiting[i - 1];
        if (!fits(comm, &waiting->fact, waiting->rank, waiting->since))
            continue;
        candidate.fitting++;
        candidate.shape += shape(comm, waiting);
        candidate.told += is_told(comm, waiting);
        candidate.called = call_for(comm, waiting);
    }
    return candidate;
}

static bool suit_alike(const struct candidate *a, const struct candidate *b)
{
    return a->fitting == b->fitting && a->shape == b->shape;
}

/* That a call connects what waits: none, one of another kind, one of its kind.
 */
static int likeliness(uint64_t called)
{
    return called == 0 ? 0 : called > later ? 1 : 2;
}

/* all_told: of the calls that may have connected it. */
static bool is_better(const struct candidate *a, const struct candidate *b,
                      bool all_told)
{
    if (a->fitting != b->fitting)
        return a->fitting > b->fitting;
    if (has_all(a) != has_all(b))
        return has_all(b);
    if (all_told && likeliness(a->called) != likeliness(b->called))
        return likeliness(a->called) > likeliness(b->called);
    if (a->shape != b->shape)
        return a->shape > b->shape;
    if (a->told != b->told)
        return a->told < b->told;
    if (!a->called != !b->called)
        return a->called != 0;
    if (a->called != b->called)
        return a->called < b->called;
    return a->comm->order > b->comm->order;
}

/* The best, and what others are to it. */
struct choice {
    struct candidate best;
    int n;      /* that fit */
    bool alike; /* another one suits as well */
    bool tied;  /* and was called at the same time */
};

static struct choice choose(struct nccl_log *log, struct log_thread *thread,
                            bool all_told)
{
    struct choice choice = {.n = 0};
    uint32_t index = log_process_of(log, thread)->comms;
    for (; index; index = log_comm_at(log, index)->next) {
        struct candidate next = examine(log, thread, log_comm_at(log, index));
        if (!next.fitting)
            continue;
        bool same = choice.n && suit_alike(&next, &choice.best);
        bool tied = same && next.called == choice.best.called;
        if (!choice.n++ || is_better(&next, &choice.best, all_told)) {
            choice.best = next;
            choice.alike &= same;
            choice.tied &= tied;
        }
        choice.alike |= same;
        choice.tied |= tied;
    }
    return choice;
}

static void tell_fitting(struct nccl_log *log, struct log_thread *thread,
                         struct log_comm *comm, bool likely)
{
    uint32_t next;
    for (uint32_t i = log_take_waiting(thread); i; i = next) {
        struct log_waiting *waiting = &log->waiting[i - 1];
        next = waiting->next;
        if (fits(comm, &waiting->fact, waiting->rank, waiting->since)) {
            log_tell_as(log, thread, comm, likely, &waiting->fact);
            log_release_waiting(log, i);
        } else {
            log_keep_waiting(log, thread, i);
        }
    }
}

/* Calls that have not been told may be those that connected it. */
static bool is_sure(const struct nccl_log *log, const struct choice *choice)
{
    if (choice->n == 1)
        return true;
    if (!log->calls.told)
        return !choice->alike;
    return choice->best.called &&
           (!choice->alike || (log->all_told && !choice->tied));
}

/* last: in doubt now, and not later, it is of nobody. */
static void settle(struct nccl_log *log, struct log_thread *thread, bool last)
{
    const bool told = log->calls.told > 0;
    if (thread->opening || log_referred(log, thread->comm))
        return;
    while (thread->first) {
        struct choice choice = choose(log, thread, told && log->all_told);
        if (!choice.n) {
            log_tell_waiting(log, thread, NULL, NCCL_LOG_UNKNOWN);
            return;
        }
        bool sure = is_sure(log, &choice);
        if (!sure && told && !last)
            return;
        tell_fitting(log, thread, choice.best.comm, !sure);
        thread->run = log_refer(log, sure ? choice.best.comm : NULL);
    }
}

static uint64_t since(const struct nccl_log *log,
                      const struct log_thread *thread)
{
    return log->waiting[thread->first - 1].since;
}

/* Of the threads of which something waits, the first that began after `after`;
 * NULL: none. */
static struct log_thread *next_waiting(struct nccl_log *log, uint64_t after)
{
    struct log_thread *next = NULL;
    for (int i = 0; i < LOG_THREAD_SETS * LOG_THREAD_WAYS; i++) {
        struct log_thread *thread = &log->threads[i];
        if (thread->process && thread->first && since(log, thread) > after &&
            (!next || since(log, thread) < since(log, next)))
            next = thread;
    }
    return next;
}

/* What was connected first was called first, so those that began to wait
 * earlier choose earlier. */
void log_settle(struct nccl_log *log, struct log_thread *thread, bool last)
{
    struct log_thread *earlier;
    uint64_t at = 0;
    while (log->calls.told && thread->first &&
           (earlier = next_waiting(log, at)) != NULL && earlier != thread) {
        at = since(log, earlier);
        if (earlier->process == thread->process)
            settle(log, earlier, false);
    }
    settle(log, thread, last);
}

void log_settle_connected(struct nccl_log *log, struct log_thread *thread)
{
    for (uint32_t i = thread->first; i; i = log->waiting[i - 1].next)
        log->waiting[i - 1].connected = true;
    log_settle(log, thread, false);
}

void log_settle_all(struct nccl_log *log, bool last)
{
    struct log_thread *thread;
    uint64_t at = 0;
    while ((thread = next_waiting(log, at)) != NULL) {
        at = since(log, thread);
        settle(log, thread, last);
        if (last)
            log_tell_waiting(log, thread, NULL, NCCL_LOG_UNKNOWN);
    }
}

void log_settle_process(struct nccl_log *log, uint32_t process)
{
    for (int i = 0; i < LOG_THREAD_SETS * LOG_THREAD_WAYS; i++)
        if (log->threads[i].process == process && log->threads[i].first)
            log_settle(log, &log->threads[i], true);
}

/* Number of those that it fits, and one of them. */
static int count_fitting(struct nccl_log *log, const struct log_thread *thread,
                         const struct nccl_log_fact *fact, int rank,
                         struct log_comm **one)
{
    int n = 0;
    uint32_t index = log_process_of(log, thread)->comms;
    for (; index; index = log_comm_at(log, index)->next) {
        if (fits(log_comm_at(log, index), fact, rank, log->clock)) {
            *one = log_comm_at(log, index);
            n++;
        }
    }
    return n;
}

void log_tell_conn(const struct log_line *line, struct nccl_log_fact *fact,
                   int rank)
{
    struct nccl_log *log = line->log;
    struct log_thread *thread = line->thread;
    struct log_comm *comm = log_referred(log, thread->run);
    if (comm && fits(comm, fact, rank, log->clock)) {
        log_tell_as(log, thread, comm, false, fact);
        return;
    }
    int n = count_fitting(log, thread, fact, rank, &comm);
    thread->run = log_refer(log, n == 1 ? comm : NULL);
    if (n == 1) {
        tell_fitting(log, thread, comm, false);
        log_settle(log, thread, true);
        thread->run = log_refer(log, comm);
        log_tell_as(log, thread, comm, false, fact);
        return;
    }
    thread->opening |= n == 0;
    log_wait(log, thread, fact, rank);
}
