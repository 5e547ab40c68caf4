/* Facts are told, once each, of the communicator that they are of. */
#include "hash.h"
#include "nccl_log_state.h"

/* Shared memory does not say which connector it is: that of rings and trees.
 * What names no end is said by the one that sends. */
static uint64_t conn_bit(const struct nccl_log_conn *conn)
{
    uint64_t hash = hash_add((uint64_t)conn->channel, (uint64_t)conn->src);
    hash = hash_add(hash, (uint64_t)conn->dst);
    return hash_add(hash, (uint64_t)(conn->end == NCCL_LOG_RECEIVE) * 2 +
                              (conn->connector == 1)) %
           LOG_CONN_BITS;
}

bool log_has_conn(const struct log_comm *comm, const struct nccl_log_conn *conn)
{
    uint64_t bit = conn_bit(conn);
    return comm->conns[bit / 64] >> bit % 64 & 1;
}

/* What of a fact helps to say whose later ones are. */
static void remember(struct log_comm *comm, const struct nccl_log_fact *fact)
{
    if (fact->kind == NCCL_LOG_CONN) {
        uint64_t bit = conn_bit(&fact->conn);
        comm->conns[bit / 64] |= UINT64_C(1) << bit % 64;
    } else if (fact->kind == NCCL_LOG_RING &&
               (unsigned)fact->ring.channel < LOG_CHANNELS) {
        comm->rings[fact->ring.channel] = fact->ring;
    } else if (fact->kind == NCCL_LOG_TREE &&
               (unsigned)fact->tree.channel < LOG_CHANNELS) {
        comm->trees[fact->tree.channel] = fact->tree;
    }
}

static bool same_tree(const struct nccl_log_tree *a,
                      const struct nccl_log_tree *b)
{
    return a->channel == b->channel && a->up == b->up &&
           memcmp(a->down, b->down, sizeof(a->down)) == 0;
}

/* Rings and trees come twice where the log has both of their kinds of lines. */
static bool is_told(const struct log_comm *comm,
                    const struct nccl_log_fact *fact)
{
    if (fact->kind == NCCL_LOG_RING &&
        (unsigned)fact->ring.channel < LOG_CHANNELS) {
        const struct nccl_log_ring *known = &comm->rings[fact->ring.channel];
        return known->channel == fact->ring.channel &&
               known->prev == fact->ring.prev && known->next == fact->ring.next;
    }
    if (fact->kind == NCCL_LOG_TREE &&
        (unsigned)fact->tree.channel < LOG_CHANNELS)
        return same_tree(&comm->trees[fact->tree.channel], &fact->tree);
    return false;
}

void log_tell_as(struct nccl_log *log, const struct log_thread *thread,
                 struct log_comm *comm, bool likely, struct nccl_log_fact *fact)
{
    if (comm && is_told(comm, fact))
        return;
    const struct log_process *process = log_process_of(log, thread);
    fact->source.host = process->host;
    fact->source.pid = process->pid;
    fact->source.tid = thread->tid;
    fact->comm = (struct nccl_log_name){0};
    if (comm) {
        fact->comm.pointer = comm->pointer;
        fact->comm.birth = comm->birth;
        fact->comm.likely = likely;
        remember(comm, fact);
    }
    log->counts.facts++;
    log->counts.unnamed += !comm && fact->kind != NCCL_LOG_MESSAGE;
    log->sink(log->arg, fact);
}

void log_tell_comm(const struct log_line *line, struct log_comm *comm,
                   enum nccl_log_phase phase)
{
    struct nccl_log_fact fact = {
        .kind = NCCL_LOG_COMM,
        .source.device = line->device,
        .about = comm->about,
    };
    fact.about.phase = phase;
    log_tell_as(line->log, line->thread, comm, false, &fact);
}

void log_tell_choice_of(struct nccl_log *log, struct log_undecided *undecided,
                        uint64_t pointer)
{
    const struct log_thread thread = {
        .process = undecided->process,
        .tid = undecided->tid,
    };
    struct log_comm *comm =
        pointer ? log_find_comm(log, &thread, pointer) : NULL;
    struct log_comm elder;
    if (comm && undecided->since < comm->order && comm->birth > 0) {
        elder = (struct log_comm){.pointer = pointer, .birth = comm->birth - 1};
        comm = &elder;
    }
    log_tell_as(log, &thread, comm, false, &undecided->fact);
}

/* The one communicator that may have said what a collective runs as: only rank
 * 0 does. */
static struct log_comm *chooser(const struct log_line *line)
{
    struct nccl_log *log = line->log;
    struct log_comm *last = NULL;
    int candidates = 0;
    uint32_t index = log_process_of(log, line->thread)->comms;
    for (; index; index = log_comm_at(log, index)->next) {
        struct log_comm *comm = log_comm_at(log, index);
        if (!comm->alive || comm->about.rank != 0 ||
            (comm->about.device >= 0 && comm->about.device != line->device))
            continue;
        if (comm->pointer == line->thread->called)
            return comm;
        last = comm;
        candidates++;
    }
    return candidates == 1 ? last : NULL;
}

/* In 2.4 one thread sets up all that ncclCommInitAll() makes, at a time. */
static struct log_comm *setting_up(const struct log_line *line, int rank)
{
    struct log_comm *comm = log_setting_up(line);
    if (!comm || rank < 0 || comm->about.rank == rank)
        return comm;
    uint32_t index = log_process_of(line->log, line->thread)->comms;
    for (; index; index = log_comm_at(line->log, index)->next) {
        struct log_comm *other = log_comm_at(line->log, index);
        if (other->alive && !other->complete && other->about.rank == rank)
            return other;
    }
    return comm;
}

static void tell_choice(const struct log_line *line, struct nccl_log_fact *fact)
{
    struct log_comm *comm = chooser(line);
    uint64_t pointer =
        log_take_call(line->log, &fact->choice, comm ? comm->pointer : 0);
    if (!comm && pointer)
        comm = log_find_comm(line->log, line->thread, pointer);
    if (!comm && line->log->calls.told)
        log_let_choice_wait(line, fact);
    else
        log_tell_as(line->log, line->thread, comm, false, fact);
}

void log_tell(const struct log_line *line, struct nccl_log_fact *fact, int rank)
{
    struct log_thread *thread = line->thread;
    struct log_comm *comm = setting_up(line, rank);
    fact->source.device = line->device;
    if (comm || fact->kind == NCCL_LOG_MESSAGE) {
        log_tell_as(line->log, thread, comm, false, fact);
    } else if (fact->kind == NCCL_LOG_CHOICE) {
        tell_choice(line, fact);
    } else if (fact->kind == NCCL_LOG_CONN && !thread->opening) {
        log_tell_conn(line, fact, rank);
    } else {
        thread->opening = true;
        log_wait(line->log, thread, fact, rank);
    }
}
