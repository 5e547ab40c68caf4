/*
 * Whose a line is. Processes, threads and communicators are known by the
 * numbers that the log gives them, in tables of fixed size: when one is full,
 * what was used longest ago goes.
 */
#include "hash.h"
#include "nccl_log_state.h"

/* Telling. */

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

/* Waiting. */

static bool is_room_to_wait(const struct nccl_log *log)
{
    return log->free_waiting || log->top_waiting < LOG_WAITING;
}

static void make_room_to_wait(struct nccl_log *log, struct log_thread *thread)
{
    if (!is_room_to_wait(log))
        log_tell_waiting(log, thread, NULL, NCCL_LOG_UNKNOWN);
    if (!is_room_to_wait(log))
        log_settle_all(log, true);
}

uint32_t log_take_waiting(struct log_thread *thread)
{
    uint32_t first = thread->first;
    thread->first = thread->last = 0;
    return first;
}

void log_keep_waiting(struct nccl_log *log, struct log_thread *thread,
                      uint32_t index)
{
    log->waiting[index - 1].next = 0;
    if (thread->last)
        log->waiting[thread->last - 1].next = index;
    else
        thread->first = index;
    thread->last = index;
}

void log_release_waiting(struct nccl_log *log, uint32_t index)
{
    log->waiting[index - 1].next = log->free_waiting;
    log->free_waiting = index;
}

void log_wait(struct nccl_log *log, struct log_thread *thread,
              const struct nccl_log_fact *fact, int rank)
{
    make_room_to_wait(log, thread);
    uint32_t index = log->free_waiting;
    if (index)
        log->free_waiting = log->waiting[index - 1].next;
    else
        index = ++log->top_waiting;
    log->waiting[index - 1].since = log->clock;
    log->waiting[index - 1].rank = rank;
    log->waiting[index - 1].connected = false;
    log->waiting[index - 1].fact = *fact;
    log_keep_waiting(log, thread, index);
}

void log_tell_waiting(struct nccl_log *log, struct log_thread *thread,
                      struct log_comm *comm, int rank)
{
    uint32_t next;
    for (uint32_t i = log_take_waiting(thread); i; i = next) {
        struct log_waiting *waiting = &log->waiting[i - 1];
        next = waiting->next;
        if (rank == NCCL_LOG_UNKNOWN || waiting->rank == NCCL_LOG_UNKNOWN ||
            waiting->rank == rank) {
            log_tell_as(log, thread, comm, false, &waiting->fact);
            log_release_waiting(log, i);
        } else {
            log_keep_waiting(log, thread, i);
        }
    }
}

/* Threads. */

static bool ends_with(struct text text, const char *end)
{
    size_t n = strlen(end);
    return n && text_size(text) >= n && memcmp(text.end - n, end, n) == 0;
}

/* Other output may stand right before a host's name: a process with that
 * number on a host that the word ends with is taken for it. */
static bool is_process(const struct log_process *process, struct text host,
                       int64_t pid)
{
    return process->pid == pid &&
           (process->host[0] ? ends_with(host, process->host)
                             : text_size(host) == 0);
}

/* Index of it or of a free one; 0: it is none of those, and they are taken. */
static uint32_t seek_process(const struct nccl_log *log, struct text host,
                             int64_t pid)
{
    enum { TRIES = 32 };
    uint32_t at = (uint32_t)hash_mix((uint64_t)pid) % LOG_PROCESSES;
    for (int i = 0; i < TRIES; i++) {
        const struct log_process *process = &log->processes[at];
        if (!process->used || is_process(process, host, pid))
            return at + 1;
        at = (at + 1) % LOG_PROCESSES;
    }
    return 0;
}

static uint32_t find_process(struct nccl_log *log, struct text host,
                             int64_t pid)
{
    uint32_t index = seek_process(log, host, pid);
    if (index && !log->processes[index - 1].used) {
        struct log_process *process = &log->processes[index - 1];
        process->used = true;
        process->pid = pid;
        text_copy(process->host, sizeof(process->host), host);
    }
    return index;
}

size_t log_known_host(const struct nccl_log *log, struct text word, int64_t pid)
{
    uint32_t index = seek_process(log, word, pid);
    return index ? strlen(log->processes[index - 1].host) : 0;
}

static void forget_all(struct nccl_log *log)
{
    log_settle_all(log, true);
    log_tell_choices(log);
    memset(log->processes, 0, sizeof(log->processes));
    memset(log->comms, 0, sizeof(log->comms));
    memset(log->threads, 0, sizeof(log->threads));
    log->process = 0;
    log->top_comm = 0;
}

static void forget_thread(struct nccl_log *log, struct log_thread *thread)
{
    if (!thread->process)
        return;
    log_settle(log, thread, true);
    log_tell_waiting(log, thread, NULL, NCCL_LOG_UNKNOWN);
    memset(thread, 0, sizeof(*thread));
}

struct log_thread *log_who(struct nccl_log *log, struct text host, int64_t pid,
                           int64_t tid)
{
    uint32_t process = find_process(log, host, pid);
    if (!process) {
        forget_all(log);
        process = find_process(log, host, pid);
    }
    if (text_size(host) && (log->pid || !log->process))
        log->process = process;
    uint64_t hash = hash_add(process, (uint64_t)tid);
    struct log_thread *set =
        log->threads + hash % LOG_THREAD_SETS * LOG_THREAD_WAYS;
    struct log_thread *oldest = set;
    for (struct log_thread *way = set; way < set + LOG_THREAD_WAYS; way++) {
        if (way->process == process && way->tid == tid) {
            way->used = log->clock;
            return way;
        }
        if (way->used < oldest->used)
            oldest = way;
    }
    forget_thread(log, oldest);
    oldest->process = process;
    oldest->tid = tid;
    oldest->used = log->clock;
    log_comm_clear(&oldest->pending);
    return oldest;
}

/* Communicators. */

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

void log_comm_add(struct nccl_log_comm *about, const struct nccl_log_comm *more)
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
    log_comm_add(&comm->about, &thread->pending);
    log_comm_add(&comm->about, about);
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
    log_comm_add(&comm->about, about);
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
