/*
 * Lines about collectives name no communicator. Where a process is rank 0 of
 * several, the program's own calls tell whose they are: calls and lines come in
 * the same order but for groups, which NCCL sorts. Each side waits for the
 * other.
 */
#include "nccl_log_state.h"
#include "op_facts.h"

static struct log_call *call_at(struct log_calls *calls, uint64_t position)
{
    return &calls->ring[position % LOG_CALLS];
}

static bool is_about(const struct nccl_log_choice *choice,
                     const struct log_call *call)
{
    return call->pointer &&
           (choice->op == NCCL_LOG_UNKNOWN || choice->op == call->op) &&
           (choice->bytes == call->share || choice->bytes == call->whole);
}

/* What lies far behind a call that a line was about never had one. */
static void forget_before(struct log_calls *calls, uint64_t position)
{
    enum { LATE = 256 }; /* more than a group has */
    if (position > LATE && calls->first < position - LATE)
        calls->first = position - LATE;
    while (calls->first < calls->next && !call_at(calls, calls->first)->pointer)
        calls->first++;
}

uint64_t log_take_call(struct nccl_log *log,
                       const struct nccl_log_choice *choice, uint64_t pointer)
{
    struct log_calls *calls = &log->calls;
    for (uint64_t at = calls->first; at < calls->next; at++) {
        struct log_call *call = call_at(calls, at);
        if (!is_about(choice, call) || (pointer && call->pointer != pointer))
            continue;
        uint64_t found = call->pointer;
        call->pointer = 0;
        forget_before(calls, at);
        return found;
    }
    return 0;
}

static bool is_waiting(const struct log_choices *choices)
{
    return choices->first < choices->next;
}

static struct log_undecided *undecided_at(struct log_choices *choices,
                                          uint64_t position)
{
    return &choices->ring[position % LOG_CHOICES];
}

static void drop_told(struct log_choices *choices)
{
    while (is_waiting(choices) && undecided_at(choices, choices->first)->told)
        choices->first++;
}

static void tell_first(struct nccl_log *log)
{
    struct log_undecided *first =
        undecided_at(&log->choices, log->choices.first);
    first->told = true;
    log_tell_choice_of(log, first, 0);
    drop_told(&log->choices);
}

void log_let_choice_wait(const struct log_line *line,
                         const struct nccl_log_fact *fact)
{
    struct log_choices *choices = &line->log->choices;
    if (choices->next - choices->first == LOG_CHOICES)
        tell_first(line->log);
    *undecided_at(choices, choices->next++) = (struct log_undecided){
        .since = line->log->clock,
        .process = line->thread->process,
        .tid = line->thread->tid,
        .fact = *fact,
    };
}

void log_tell_choices(struct nccl_log *log)
{
    while (is_waiting(&log->choices))
        tell_first(log);
}

/* The first line that was about such a call. */
static bool tell_choice(struct nccl_log *log, const struct log_call *call)
{
    struct log_choices *choices = &log->choices;
    for (uint64_t at = choices->first; at < choices->next; at++) {
        struct log_undecided *undecided = undecided_at(choices, at);
        if (undecided->told || !is_about(&undecided->fact.choice, call))
            continue;
        undecided->told = true;
        log_tell_choice_of(log, undecided, call->pointer);
        drop_told(choices);
        return true;
    }
    return false;
}

static struct log_comm *comm_called(struct nccl_log *log, uint64_t pointer)
{
    const struct log_thread thread = {.process = log->process};
    return log->process ? log_find_comm(log, &thread, pointer) : NULL;
}

static void note_first(struct log_comm *comm, bool of_peers, uint64_t order)
{
    uint64_t *first = of_peers ? &comm->peer_call : &comm->collective_call;
    if (!*first)
        *first = order;
}

/* Sends and receives, and what is made of them. */
static bool is_of_peers(int op)
{
    int base = op_facts[op].base;
    return op_is_transfer(op) || base == CT_OP_ALL_TO_ALL ||
           base == CT_OP_GATHER || base == CT_OP_SCATTER;
}

void nccl_log_called(struct nccl_log *log, uint64_t pointer, int op,
                     int64_t share, int64_t whole, bool together)
{
    /* NCCL calls a collective by one name, whatever it was called by:
     * ncclBcast's lines are about "Broadcast". */
    const struct log_call call = {pointer, (int)op_facts[op].base, share,
                                  whole};
    struct log_calls *calls = &log->calls;
    struct log_comm *comm = comm_called(log, pointer);
    calls->told++;
    calls->moments += !together || !calls->moments;
    if (comm)
        note_first(comm, is_of_peers(op), calls->moments);
    if (op_is_transfer(op) || (comm && comm->about.rank > 0))
        return; /* no line is about it */
    if (tell_choice(log, &call))
        return;
    if (calls->next - calls->first == LOG_CALLS)
        calls->first++;
    *call_at(calls, calls->next++) = call;
}

void nccl_log_expect_calls(struct nccl_log *log)
{
    log->calls.told++;
}
