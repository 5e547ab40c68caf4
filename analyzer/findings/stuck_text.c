/*
 * RANK_NEVER_CAME and OP_NEVER_ENDED in words: who waited in what and how long,
 * who never came and what those did instead.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "findings/stuck.h"
#include "trace/clocks.h"

#define SILENT_NS INT64_C(5000000000)
#define SURELY_LONG_NS INT64_C(60000000000) /* no checkpoint, say */
#define UNSURE .5
#define RATHER_SURE .8

struct waiters {
    int n;
    int64_t least_ns, most_ns;
    bool aborted, live;
    const struct ct_process *first;
    const struct ct_op_row *op; /* of the first */
};

static const struct ct_op_row *op_in(const struct ct_hang *h, int process,
                                     const struct ct_instance *instance)
{
    const struct ct_process *p = &h->trace->processes[process];
    const int op = h->waits_in[process];

    return op != CT_NONE && &h->job->instances[p->ops[op].instance] == instance
               ? &p->ops[op]
               : NULL;
}

static struct waiters list_waiters(const struct ct_hang *h,
                                   const struct ct_instance *instance,
                                   int *ranks)
{
    struct waiters w = {0};

    for (int i = 0; i < h->job->nprocesses; i++) {
        const struct ct_process *p = &h->trace->processes[h->job->processes[i]];
        const struct ct_op_row *op = op_in(h, h->job->processes[i], instance);
        int64_t ns;

        if (!op)
            continue;
        ns = ct_stuck_ns(p, op);
        if (!w.n) {
            w.first = p;
            w.op = op;
            w.least_ns = w.most_ns = ns;
        }
        w.least_ns = ns < w.least_ns ? ns : w.least_ns;
        w.most_ns = ns > w.most_ns ? ns : w.most_ns;
        w.aborted |= (op->flags & CT_FLAG_CUT) != 0;
        w.live |= ct_stuck_lives(p);
        ranks[w.n++] = p->rank;
    }
    return w;
}

/* Ranks of the job that are so, and the process of the first; those without a
 * trace are only counted. */
static int list_members(const struct ct_hang *h,
                        const struct ct_instance *instance,
                        enum ct_presence presence, int *ranks, int *no_trace_p,
                        int *process_p)
{
    const struct ct_comm *comm = &h->job->comms[instance->comm];
    int n = 0;

    *no_trace_p = 0;
    *process_p = CT_NONE;
    for (int r = 0; r < comm->nranks; r++) {
        const int process = comm->members[r].process;

        if (!ct_stuck_takes_part(h, instance, r) ||
            ct_stuck_presence(h, instance, r) != presence)
            continue;
        if (process == CT_NONE) {
            ++*no_trace_p;
            continue;
        }
        *process_p = *process_p == CT_NONE ? process : *process_p;
        ranks[n++] = h->trace->processes[process].rank;
    }
    return n;
}

static void say_when(struct ct_finding_row *row, const struct waiters *w)
{
    const struct ct_process *p = w->first;
    const int step = ct_step_number(p, ct_op_step(p, w->op));
    int last = p->nsteps - 1;

    while (last >= 0 && p->steps[last].number == CT_NONE)
        last--;
    if (step != CT_NONE)
        ct_finding_say(row, " in step %d", step);
    else if (last >= 0 && w->op - p->ops > p->steps[last].last_op)
        ct_finding_say(row, " after step %d", p->steps[last].number);
}

static void say_waiters(const struct ct_hang *h,
                        const struct ct_instance *instance,
                        const struct waiters *w, const int *ranks,
                        struct ct_finding_row *row)
{
    char who[80], members[60], size[24];

    ct_rank_list(ranks, w->n, who, sizeof who);
    ct_ranks_text(h->trace, &h->job->comms[instance->comm], members,
                  sizeof members);
    ct_bytes_text((double)ct_usage_of(h->job, instance)->bytes, size,
                  sizeof size);
    ct_finding_say(row,
                   "rank%s %s %s in %s number %" PRIu32
                   " (%s) of the communicator of ranks %s",
                   ct_plural(w->n), who,
                   !w->live    ? "waited"
                   : w->n == 1 ? "waits"
                               : "wait",
                   ct_op_infos[w->first->classes[w->op->cls].kind].name,
                   instance->ordinal, size, members);
    say_when(row, w);
    if (w->most_ns - w->least_ns < w->most_ns / 20)
        ct_finding_say(row, " for %s s", CT_NUM((double)w->most_ns / 1e9, 3));
    else
        ct_finding_say(row, " for %s to %s s",
                       CT_NUM((double)w->least_ns / 1e9, 3),
                       CT_NUM((double)w->most_ns / 1e9, 3));
    ct_finding_say(row, w->aborted ? ", until it was aborted"
                        : w->live  ? " so far, which looks like a hang"
                                   : " at least, when last seen");
}

/* What the absent ones did instead. */
static void say_instead(const struct ct_hang *h,
                        const struct ct_instance *instance, int process,
                        struct ct_finding_row *row)
{
    const struct ct_process *p = &h->trace->processes[process];

    if (ct_is_collective(instance->base))
        for (int r = 0; r < h->job->comms[instance->comm].nranks; r++)
            if (h->job->comms[instance->comm].members[r].process == process)
                ct_finding_say(row,
                               ": it issued %" PRId64
                               " calls there, the others %" PRId64,
                               h->issued[h->first[instance->comm] + r],
                               (int64_t)instance->ordinal + 1);
    if (h->waits_in[process] != CT_NONE) {
        const struct ct_op_row *op = &p->ops[h->waits_in[process]];
        const struct ct_op_class_row *class = &p->classes[op->cls];

        ct_finding_say(row,
                       "; it waited itself in %s number %" PRIu32 " of comm %d",
                       ct_op_infos[class->kind].name, op->ordinal,
                       p->comms[class->comm].comm);
    } else if (p->end_ns != CT_NO_TIME) {
        ct_finding_say(row, "; it closed its trace and was in no call");
    } else if (p->nops) {
        const struct ct_op_row *op = &p->ops[p->nops - 1];
        const struct ct_op_class_row *class = &p->classes[op->cls];

        ct_finding_say(row,
                       "; its last call was %s number %" PRIu32 " of comm %d",
                       ct_op_infos[class->kind].name, op->ordinal,
                       p->comms[class->comm].comm);
    }
}

/* Processes whose recorders stand still: they are stopped, or their host is. */
static void say_silent(const struct ct_hang *h,
                       const struct ct_instance *instance,
                       const struct waiters *w, int *ranks,
                       struct ct_finding_row *row)
{
    const struct ct_comm *comm = &h->job->comms[instance->comm];
    const int64_t now = ct_common_ns(h->trace, w->first, w->first->looked_ns);
    int64_t longest = 0;
    char who[60];
    int n = 0;

    for (int r = 0; r < comm->nranks; r++) {
        const int process = comm->members[r].process;
        const struct ct_process *p;
        int64_t silent_ns;

        if (process == CT_NONE)
            continue;
        p = &h->trace->processes[process];
        silent_ns = now - ct_common_ns(h->trace, p, p->last_ns);
        if (!ct_stuck_lives(p) || silent_ns < SILENT_NS ||
            ct_common_error(h->trace, p, w->first, p->last_ns) > SILENT_NS / 2.)
            continue;
        longest = silent_ns > longest ? silent_ns : longest;
        ranks[n++] = p->rank;
    }
    if (!n)
        return;
    ct_rank_list(ranks, n, who, sizeof who);
    ct_finding_say(row, "; rank%s %s gave no sign of life for %s s: stopped?",
                   ct_plural(n), who, CT_NUM((double)longest / 1e9, 3));
}

static void say_absent(const struct ct_hang *h,
                       const struct ct_instance *instance, bool live,
                       int *ranks, struct ct_finding_row *row)
{
    int no_trace, process, n;
    char who[80];

    n = list_members(h, instance, CT_ABSENT, ranks, &no_trace, &process);
    if (n) {
        ct_rank_list(ranks, n, who, sizeof who);
        ct_finding_say(row, "; rank%s %s %s", ct_plural(n), who,
                       !live    ? "never came"
                       : n == 1 ? "has not come"
                                : "have not come");
        if (n == 1)
            say_instead(h, instance, process, row);
    }
    n = list_members(h, instance, CT_UNKNOWN, ranks, &no_trace, &process);
    if (n) {
        ct_rank_list(ranks, n, who, sizeof who);
        ct_finding_say(
            row, "; whether rank%s %s came is not known: %s not whole",
            ct_plural(n), who, n == 1 ? "its trace is" : "their traces are");
    }
    if (no_trace)
        ct_finding_say(row, "; %d of its ranks left no trace", no_trace);
    if (n || no_trace)
        row->confidence = UNSURE;
}

void ct_stuck_tell(const struct ct_hang *h, const struct ct_instance *instance,
                   struct ct_finding_row *row)
{
    const int nranks = h->job->comms[instance->comm].nranks;
    int *ranks =
        calloc((size_t)h->job->nprocesses + (size_t)nranks + 1, sizeof *ranks);
    struct waiters w;

    if (!ranks)
        return;
    w = list_waiters(h, instance, ranks);
    if (w.live)
        row->confidence = w.most_ns < SURELY_LONG_NS ? UNSURE : RATHER_SURE;
    say_waiters(h, instance, &w, ranks, row);
    if (row->id == CT_FINDING_RANK_NEVER_CAME) {
        say_absent(h, instance, w.live, ranks, row);
        snprintf(row->advice, sizeof row->advice,
                 "see what the absent ranks did: an exception, a branch that "
                 "the others did not take, or a long pause");
    } else {
        ct_finding_say(row, "; all its ranks %s issued it",
                       w.live ? "have" : "had");
        snprintf(row->advice, sizeof row->advice,
                 "all ranks issued the call: look for a link, a GPU or a peer "
                 "process that failed (NCCL's log, the hosts'), then for work "
                 "before it on its stream that did not end");
    }
    if (w.live)
        say_silent(h, instance, &w, ranks, row);
    if (instance->mismatch)
        ct_finding_say(row, "; ranks issued different calls under this number");
    free(ranks);
}

void ct_stuck_tell_rest(int ops, struct ct_finding_row *row)
{
    ct_finding_say(row, "; %d more op%s hung behind", ops, ct_plural(ops));
}
