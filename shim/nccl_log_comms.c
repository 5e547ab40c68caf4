/* The communicators of a log: what is known of each, from its set-up on. */
#include "nccl_log_state.h"

void log_comm_clear(struct nccl_log_comm *about)
{
    memset(about, 0, sizeof(*about));
    about->rank = about->nranks = about->device = NCCL_LOG_UNKNOWN;
    about->nodes = about->local_ranks = about->mnnvl = NCCL_LOG_UNKNOWN;
    about->channels = about->nvls_channels = NCCL_LOG_UNKNOWN;
    about->p2p_channels = NCCL_LOG_UNKNOWN;
}

static void add(int *to, int from)
{
    if (from != NCCL_LOG_UNKNOWN)
        *to = from;
}

/* Numbers that are known in `more` replace those in `about`. */
static void add_known(struct nccl_log_comm *about,
                      const struct nccl_log_comm *more)
{
    if (more->hash)
        about->hash = more->hash;
    if (more->parent)
        about->parent = more->parent;
    add(&about->rank, more->rank);
    add(&about->nranks, more->nranks);
    add(&about->device, more->device);
    add(&about->nodes, more->nodes);
    add(&about->local_ranks, more->local_ranks);
    add(&about->mnnvl, more->mnnvl);
    add(&about->channels, more->channels);
    add(&about->nvls_channels, more->nvls_channels);
    add(&about->p2p_channels, more->p2p_channels);
    if (more->network[0])
        memcpy(about->network, more->network, sizeof(about->network));
}

struct log_comm *log_find_comm(struct nccl_log *log,
                               const struct log_thread *thread,
                               uint64_t pointer)
{
    struct log_comm *comm =
        log_comm_at(log, log_process_of(log, thread)->comms);
    while (comm && comm->pointer != pointer)
        comm = log_comm_at(log, comm->next);
    return comm;
}

static void unlink_comm(struct nccl_log *log, struct log_comm *comm)
{
    uint32_t *link = &log->processes[comm->process - 1].comms;
    while (*link && *link != log_index_of(log, comm))
        link = &log_comm_at(log, *link)->next;
    *link = comm->next;
}

/* One of the oldest, a dead one if there is one among them. */
static struct log_comm *victim(struct nccl_log *log)
{
    enum { TRIES = 64 };
    for (int i = 0; i < TRIES; i++) {
        struct log_comm *comm = &log->comms[log->next_victim++ % LOG_COMMS];
        if (!comm->alive || i == TRIES - 1)
            return comm;
    }
    return NULL;
}

static struct log_comm *free_comm(struct nccl_log *log)
{
    if (log->top_comm < LOG_COMMS)
        return &log->comms[log->top_comm++];
    struct log_comm *comm = victim(log);
    unlink_comm(log, comm);
    return comm;
}

static void forget_ways(struct log_comm *comm)
{
    memset(comm->conns, 0, sizeof(comm->conns));
    for (int i = 0; i < LOG_CHANNELS; i++)
        comm->rings[i].channel = comm->trees[i].channel = NCCL_LOG_UNKNOWN;
}

/* A communicator that begins, at an address where others may have been. */
static struct log_comm *bear(struct nccl_log *log, struct log_thread *thread,
                             uint64_t pointer)
{
    struct log_comm *comm = log_find_comm(log, thread, pointer);
    unsigned birth = 0;
    if (comm) {
        log_settle_process(log, thread->process);
        birth = comm->birth + 1;
        unlink_comm(log, comm);
    } else {
        comm = free_comm(log);
    }
    struct log_process *process = log_process_of(log, thread);
    comm->process = thread->process;
    comm->next = process->comms;
    process->comms = log_index_of(log, comm);
    comm->pointer = pointer;
    comm->birth = birth;
    comm->order = ++log->clock;
    comm->alive = true;
    comm->complete = false;
    comm->collective_call = comm->peer_call = 0;
    log_comm_clear(&comm->about);
    forget_ways(comm);
    return comm;
}

struct log_comm *log_setting_up(const struct log_line *line)
{
    return log_referred(line->log, line->thread->comm);
}

static void take_pending(struct log_thread *thread, struct log_comm *comm,
                         const struct nccl_log_comm *about)
{
    add_known(&comm->about, &thread->pending);
    add_known(&comm->about, about);
    log_comm_clear(&thread->pending);
}

void log_start(const struct log_line *line, uint64_t pointer,
               const struct nccl_log_comm *about)
{
    log_settle(line->log, line->thread, true);
    struct log_comm *comm = bear(line->log, line->thread, pointer);
    line->thread->comm = log_refer(line->log, comm);
    line->thread->run = log_refer(line->log, NULL);
    line->thread->opening = false;
    take_pending(line->thread, comm, about);
    log_tell_comm(line, comm, NCCL_LOG_START);
}

void log_detail(const struct log_line *line, uint64_t pointer,
                const struct nccl_log_comm *about)
{
    struct log_comm *comm = log_find_comm(line->log, line->thread, pointer);
    if (!comm) {
        log_start(line, pointer, about);
        return;
    }
    add_known(&comm->about, about);
    log_tell_comm(line, comm, NCCL_LOG_DETAIL);
}

void log_complete(const struct log_line *line, uint64_t pointer,
                  const struct nccl_log_comm *about)
{
    struct log_thread *thread = line->thread;
    struct log_comm *comm = log_find_comm(line->log, thread, pointer);
    if (!comm || comm->complete)
        comm = bear(line->log, thread, pointer);
    take_pending(thread, comm, about);
    comm->complete = true;
    log_tell_waiting(line->log, thread, comm, comm->about.rank);
    thread->comm = thread->run = log_refer(line->log, NULL);
    thread->opening = thread->first != 0;
    log_tell_comm(line, comm, NCCL_LOG_COMPLETE);
}

void log_end(const struct log_line *line, uint64_t pointer)
{
    struct log_comm *comm = log_find_comm(line->log, line->thread, pointer);
    if (!comm || !comm->alive)
        return;
    comm->alive = false;
    comm->ended = ++line->log->clock;
    log_tell_comm(line, comm, NCCL_LOG_END);
}
