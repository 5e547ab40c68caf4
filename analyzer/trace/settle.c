/*
 * Which ops were still in flight. What comes from a ring, or was stored before
 * its events were read, is marked RUNNING because nobody looked. But a stream
 * works in order: where a later op of the stream is known to have begun, the
 * op was done. And a collective that ended on one rank had begun on all. Where
 * a trace could not grow, its last rows were not told how their ops ended.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/intern.h"
#include "trace/stages.h"

static bool has_begun(const struct ct_job *job, const struct ct_op_row *op,
                      enum ct_op_class cls)
{
    const struct ct_instance *instance = &job->instances[op->instance];

    if (ct_op_gpu_ns(op) != CT_NO_TIME)
        return true;
    if (instance->mismatch)
        return false;
    /* A transfer is known only from its recv. */
    return (cls == CT_COLL && instance->timed > 0) ||
           (cls == CT_SEND && instance->transfer_ns != CT_NO_TIME);
}

static void finish(struct ct_process *p, struct ct_op_row *op)
{
    op->flags &= ~(uint32_t)CT_FLAG_RUNNING;
    if (op->launch != CT_NONE)
        p->launches[op->launch].flags &= ~(uint32_t)CT_FLAG_RUNNING;
}

static void settle(const struct ct_job *job, struct ct_process *p)
{
    struct ct_intern begun = {0}; /* streams, of which a later op began */
    int o;

    for (o = p->nops - 1; o >= 0; o--) {
        struct ct_op_row *op = &p->ops[o];
        const struct ct_op_class_row *class = &p->classes[op->cls];
        const uint64_t *stream = &class->stream;

        if ((op->flags & (CT_FLAG_RUNNING | CT_FLAG_CUT)) == CT_FLAG_RUNNING &&
            ct_intern_find(&begun, stream, sizeof(*stream)) != CT_NONE)
            finish(p, op);
        if (has_begun(job, op, ct_op_infos[class->kind].cls))
            ct_intern_add(&begun, stream, sizeof(*stream));
    }
    ct_intern_release(&begun);
}

/* The program went on, unseen, after the last rows of its trace. */
static bool was_cut(const struct ct_process *p)
{
    int i;

    for (i = 0; i < p->nlosses; i++)
        if (p->losses[i].cause && (!strcmp(p->losses[i].cause, "size_limit") ||
                                   !strcmp(p->losses[i].cause, "write_error")))
            return true;
    return false;
}

static void finish_all(struct ct_process *p)
{
    int o;

    for (o = 0; o < p->nops; o++)
        if ((p->ops[o].flags & (CT_FLAG_RUNNING | CT_FLAG_CUT)) ==
            CT_FLAG_RUNNING)
            finish(p, &p->ops[o]);
}

void ct_trace_settle(struct ct_trace *trace, struct ct_job *job)
{
    int i, o;

    for (i = 0; i < job->nprocesses; i++) {
        struct ct_process *p = &trace->processes[job->processes[i]];

        if (p->end_ns == CT_NO_TIME)
            settle(job, p);
        else if (was_cut(p))
            finish_all(p);
    }
    for (i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = &trace->processes[job->processes[i]];

        for (o = 0; o < p->nops; o++)
            job->in_flight +=
                (p->ops[o].flags & (CT_FLAG_IN_CALL | CT_FLAG_RUNNING)) != 0;
    }
}
