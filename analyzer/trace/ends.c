/*
 * Processes that end without running exit handlers, as workers of Python's
 * multiprocessing do, leave their trace open though nothing went wrong. What
 * tells is how their communicators ended: a process that has none left owes
 * NCCL nothing, and the ops of one that was destroyed have finished.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/load.h"

enum end { IN_USE, ABORTED, DESTROYED };

static enum end end_of(const struct ct_comm_event_row *event)
{
    if (event->result != 0 || event->host_ns == CT_NO_TIME)
        return IN_USE;
    if (!strcmp(event->what, "destroy") || !strcmp(event->what, "finalize"))
        return DESTROYED;
    return strcmp(event->what, "abort") ? IN_USE : ABORTED;
}

static enum end *ends_of_comms(const struct ct_process *p)
{
    enum end *ends = ct_alloc((size_t)p->ncomms + 1, sizeof(*ends));
    int i;

    for (i = 0; i < p->nevents; i++) {
        const struct ct_comm_event_row *event = &p->events[i];
        const enum end end = end_of(event);

        /* An abort after a finalize that did not come to its end wins. */
        if (event->comm != CT_NONE && end != IN_USE &&
            ends[event->comm] != ABORTED)
            ends[event->comm] = end;
    }
    return ends;
}

static void finish_ops(struct ct_process *p, const enum end *ends)
{
    int i;

    for (i = 0; i < p->nops; i++)
        if (ends[p->classes[p->ops[i].cls].comm] == DESTROYED)
            p->ops[i].flags &= ~(uint32_t)CT_FLAG_RUNNING;
    for (i = 0; i < p->nlaunches; i++)
        if (ends[p->launches[i].comm] == DESTROYED)
            p->launches[i].flags &= ~(uint32_t)CT_FLAG_RUNNING;
}

void ct_load_ends(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    enum end *ends = ends_of_comms(p);
    int i, in_use = 0;

    finish_ops(p, ends);
    for (i = 0; i < p->ncomms; i++)
        in_use += ends[i] == IN_USE;
    p->left = p->dead && !p->ring_missing && p->ncomms && !in_use;
    p->dead &= !p->left;
    free(ends);
}
