#include <stdlib.h>

#include "roles/chains.h"

/* Fewer ranks than this leave no difference between all and both neighbours. */
#define LEAST_RANKS 4

struct stamps { /* per rank of a communicator: last bracket that used it */
    int *sent, *received;
    int bracket;
};

struct count { /* per communicator */
    int brackets, whole;
};

/* Last op of the bracket that op first belongs to. */
static int bracket_end(const struct ct_process *process, int first, int last)
{
    const int launch = process->ops[first].launch;
    int i = first;

    while (launch != CT_NONE && i < last &&
           process->ops[i + 1].launch == launch)
        i++;
    return i;
}

static bool reaches_all(const struct ct_process *process, int first, int last,
                        int nranks, int self, struct stamps *stamps)
{
    int sends = 0, receives = 0;

    stamps->bracket++;
    for (int i = first; i <= last; i++) {
        const struct ct_op_class_row *cls =
            &process->classes[process->ops[i].cls];
        const bool send = ct_op_infos[cls->base].cls == CT_SEND;
        int *stamp = send ? stamps->sent : stamps->received;

        if (!ct_is_p2p(cls->base) || cls->peer < 0 || cls->peer >= nranks)
            continue;
        if (cls->peer == self)
            return true;
        if (stamp[cls->peer] == stamps->bracket)
            continue;
        stamp[cls->peer] = stamps->bracket;
        sends += send;
        receives += !send;
    }
    return nranks >= LEAST_RANKS && sends >= nranks - 1 &&
           receives >= nranks - 1;
}

static void count_window(const struct ct_job *job,
                         const struct ct_process *process,
                         const struct ct_window *window, struct stamps *stamps,
                         struct count *counts)
{
    int end;

    for (int i = window->first; i <= window->last; i = end + 1) {
        const struct ct_op_class_row *cls =
            &process->classes[process->ops[i].cls];

        end = i;
        if (!ct_is_p2p(cls->base))
            continue;
        end = bracket_end(process, i, window->last);
        const struct ct_comm_row *row = &process->comms[cls->comm];

        if (row->comm < 0)
            continue;
        counts[row->comm].brackets++;
        counts[row->comm].whole += reaches_all(
            process, i, end, job->comms[row->comm].nranks, row->rank, stamps);
    }
}

static void count_process(const struct ct_job *job,
                          const struct ct_process *process,
                          struct stamps *stamps, struct count *counts)
{
    struct ct_window windows[CT_WINDOWS], window;
    const int n = ct_windows(process, windows);
    double runs;

    for (int w = 0; w < n; w++)
        count_window(job, process, &windows[w], stamps, counts);
    for (int i = 0;
         (i = ct_captured_window(process, i, &window, &runs)) != CT_NONE;)
        count_window(job, process, &window, stamps, counts);
}

bool *ct_exchanges(const struct ct_trace *trace, const struct ct_job *job)
{
    const size_t room = (size_t)job->ncomms + 1;
    bool *exchanges = calloc(room, sizeof *exchanges);
    struct count *counts = calloc(room, sizeof *counts);
    struct stamps stamps = {0};
    int nranks = 1;

    for (int i = 0; i < job->ncomms; i++)
        if (job->comms[i].nranks > nranks)
            nranks = job->comms[i].nranks;
    stamps.sent = calloc((size_t)nranks, sizeof *stamps.sent);
    stamps.received = calloc((size_t)nranks, sizeof *stamps.received);
    if (!exchanges || !counts || !stamps.sent || !stamps.received) {
        free(exchanges);
        exchanges = NULL;
        goto out;
    }
    for (int i = 0; i < job->nprocesses; i++)
        count_process(job, &trace->processes[job->processes[i]], &stamps,
                      counts);
    for (int i = 0; i < job->ncomms; i++)
        exchanges[i] = counts[i].whole * 2 > counts[i].brackets;
out:
    free(counts);
    free(stamps.sent);
    free(stamps.received);
    return exchanges;
}
