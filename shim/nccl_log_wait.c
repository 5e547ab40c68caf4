/* Facts that wait in their thread until it is known whose they are. */
#include "nccl_log_state.h"

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
