/*
 * Calls that an abort of their communicator ended. The kernel of a call that
 * waits for a rank for ever leaves when the communicator is aborted, and its
 * stop event then says that all is well. Such a call took no time that means
 * anything: it loses its duration and counts as in flight.
 *
 * Told by its end after the abort. Where clocks cannot tell (an anchor is some
 * microseconds wide) a rank that never issued the collective decides: without
 * it nobody can have ended.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/stages.h"

/* Beyond the width of an anchor: its drift (10 us a second, at most a second
 * old) and the start of the event's own kernel. */
#define CLOCK_SLACK_NS 20000

/* What happens to a communicator so that its calls end early. */
static bool ends_calls(const struct ct_comm_event_row *event)
{
    return !strcmp(event->what, "abort") || !strcmp(event->what, "revoke") ||
           !strcmp(event->what, "shrink_abort");
}

static void note_aborts(struct ct_process *p)
{
    int i;

    for (i = 0; i < p->nevents; i++) {
        const struct ct_comm_event_row *event = &p->events[i];
        struct ct_comm_row *comm;

        if (event->comm == CT_NONE || !ends_calls(event))
            continue;
        comm = &p->comms[event->comm];
        if (comm->aborted_ns == CT_NO_TIME || event->at_ns < comm->aborted_ns)
            comm->aborted_ns = event->at_ns;
    }
}

static bool is_collective(const struct ct_process *p,
                          const struct ct_op_row *op)
{
    return ct_is_collective(p->classes[op->cls].kind);
}

/* Whether the ops of p are all there, so that one that is not was not
 * issued. */
static bool is_whole(const struct ct_process *p)
{
    return !p->lost && !p->ring_missing &&
           (p->end_ns != CT_NO_TIME || p->dead || p->left);
}

/* Per communicator: collectives that every rank has issued; 2^32-1: that is not
 * known. */
static uint32_t *count_issued(const struct ct_trace *trace,
                              const struct ct_job *job)
{
    uint32_t *least = ct_alloc((size_t)job->ncomms, sizeof(*least));
    uint32_t *mine = ct_alloc((size_t)job->ncomms, sizeof(*mine));
    int i, o, c;

    memset(least, 0xff, (size_t)job->ncomms * sizeof(*least));
    for (i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = &trace->processes[job->processes[i]];

        memset(mine, 0, (size_t)job->ncomms * sizeof(*mine));
        for (o = 0; o < p->nops; o++) {
            const struct ct_op_row *op = &p->ops[o];

            c = p->comms[p->classes[op->cls].comm].comm;
            if (is_collective(p, op) && op->ordinal >= mine[c])
                mine[c] = op->ordinal + 1;
        }
        for (c = 0; is_whole(p) && c < p->ncomms; c++)
            if (mine[p->comms[c].comm] < least[p->comms[c].comm])
                least[p->comms[c].comm] = mine[p->comms[c].comm];
    }
    free(mine);
    return least;
}

static bool is_cut(const struct ct_process *p, const struct ct_op_row *op,
                   const uint32_t *issued)
{
    const struct ct_comm_row *comm = &p->comms[p->classes[op->cls].comm];
    const int64_t slack = p->gpu_clock_ns + CLOCK_SLACK_NS;
    bool lacks_rank;
    int64_t end;

    if (comm->aborted_ns == CT_NO_TIME || op->enter_ns > comm->aborted_ns ||
        op->flags & (CT_FLAG_ZERO | CT_FLAG_CAPTURED))
        return false;
    lacks_rank = is_collective(p, op) && op->ordinal >= issued[comm->comm];
    if (ct_op_start_ns(op) == CT_NO_TIME || ct_op_gpu_ns(op) == CT_NO_TIME)
        return lacks_rank;
    end = ct_op_start_ns(op) + ct_op_gpu_ns(op);
    return end > comm->aborted_ns + slack ||
           (lacks_rank && end > comm->aborted_ns - slack);
}

static void cut(struct ct_process *p, struct ct_op_row *op)
{
    op->flags |= CT_FLAG_CUT | CT_FLAG_RUNNING;
    op->gpu = ct_shorten_ns(CT_NO_TIME);
    if (op->launch == CT_NONE)
        return;
    p->launches[op->launch].flags |= CT_FLAG_CUT | CT_FLAG_RUNNING;
    p->launches[op->launch].gpu = ct_shorten_ns(CT_NO_TIME);
}

void ct_trace_cut(struct ct_trace *trace, struct ct_job *job)
{
    uint32_t *issued = NULL;
    bool any = false;
    int i, o;

    for (i = 0; i < job->nprocesses; i++) {
        struct ct_process *p = &trace->processes[job->processes[i]];

        note_aborts(p);
        for (o = 0; o < p->ncomms; o++)
            any |= p->comms[o].aborted_ns != CT_NO_TIME;
    }
    if (!any)
        return;
    issued = count_issued(trace, job);
    for (i = 0; i < job->nprocesses; i++) {
        struct ct_process *p = &trace->processes[job->processes[i]];

        for (o = 0; o < p->nops; o++)
            if (is_cut(p, &p->ops[o], issued))
                cut(p, &p->ops[o]);
    }
    free(issued);
}
