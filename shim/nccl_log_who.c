/*
 * Which thread a line is of. Processes, threads and communicators are known by
 * the numbers that the log gives them, in tables of fixed size: when one is
 * full, what was used longest ago goes.
 */
#include "hash.h"
#include "nccl_log_state.h"

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
