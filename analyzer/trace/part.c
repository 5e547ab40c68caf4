/*
 * Who lists the ops of one rank of a thousand need not wait until all are read:
 * what an op cost follows from the ops of its own communicator. So of the
 * processes that are asked for all ops are read, for their order and the steps,
 * and of their peers those of the communicators that they share.
 */
#include "trace/part.h"

#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/parallel.h"
#include "trace/progress.h"
#include "trace/stages.h"

struct part {
    struct ct_trace *trace;
    bool *whole;
    struct ct_load_only shared; /* communicators of what is asked for */
    struct ct_arena **arenas;   /* per process; NULL: none of its ops */
    bool *failed;
};

/* Ops in a ring, ranks that share a process, and files that tell less than
 * others of the same process are only known once all is read. */
static bool is_simple(const struct ct_trace *trace)
{
    int i;

    for (i = 0; i < trace->nprocesses; i++)
        if (trace->processes[i].end_ns == CT_NO_TIME ||
            trace->processes[i].nparts > 1)
            return false;
    return trace->nprocesses && !trace->nskipped;
}

int ct_find_comm(const struct ct_job *job, const char *text)
{
    uint64_t uid;
    char *end;
    int i;

    if (strlen(text) < 10) {
        const long number = strtol(text, &end, 10);

        if (*text && !*end && number >= 0 && number < job->ncomms)
            return (int)number;
    }
    uid = strtoull(text, &end, 16);
    for (i = 0; *text && !*end && i < job->ncomms; i++)
        if (job->comms[i].uid == uid)
            return i;
    return CT_NONE;
}

static bool holds(const struct ct_process *p, int comm)
{
    int i;

    for (i = 0; i < p->ncomms; i++)
        if (p->comms[i].comm == comm)
            return true;
    return false;
}

static void share(struct part *p, int *capacity, uint64_t uid)
{
    uint64_t *uids = (uint64_t *)(uintptr_t)p->shared.uids;
    int i;

    for (i = 0; i < p->shared.nuids; i++)
        if (uids[i] == uid)
            return;
    uids = ct_grow(uids, capacity, p->shared.nuids, sizeof(*uids));
    uids[p->shared.nuids++] = uid;
    p->shared.uids = uids;
}

static void choose(struct part *p, const struct ct_part *part)
{
    int i, c, capacity = 0;

    for (i = 0; i < p->trace->nprocesses; i++) {
        const struct ct_process *process = &p->trace->processes[i];
        const struct ct_job *job = &p->trace->jobs[process->job];
        const int comm = part->comm ? ct_find_comm(job, part->comm) : CT_NONE;

        p->whole[i] =
            (part->rank == CT_NONE || process->rank == part->rank) &&
            (!part->comm || (comm != CT_NONE && holds(process, comm)));
        for (c = 0; p->whole[i] && c < process->ncomms; c++)
            if (comm == CT_NONE || process->comms[c].comm == comm)
                share(p, &capacity, process->comms[c].uid);
    }
}

static bool shares(const struct part *p, const struct ct_process *process)
{
    int i, c;

    for (c = 0; c < process->ncomms; c++)
        for (i = 0; i < p->shared.nuids; i++)
            if (process->comms[c].uid == p->shared.uids[i])
                return true;
    return false;
}

static void load_process(void *context, int i)
{
    struct part *p = context;
    struct ct_process *process = &p->trace->processes[i], loaded;
    char error[1024];

    ct_progress_item();
    if (!p->whole[i] && !shares(p, process))
        return;
    p->arenas[i] = ct_arena_new();
    p->failed[i] =
        ct_trace_load(process->file, p->whole[i] ? NULL : &p->shared,
                      p->arenas[i], &loaded, error, sizeof(error)) != CT_LOADED;
    if (!p->failed[i])
        *process = loaded;
}

static bool load_processes(struct part *p)
{
    const int n = p->trace->nprocesses;
    bool good = true;
    int i, nops = 0;

    p->arenas = ct_alloc((size_t)n, sizeof(*p->arenas));
    p->failed = ct_alloc((size_t)n, sizeof(*p->failed));
    ct_progress_stage("reading operations", n);
    ct_parallel_for(n, load_process, p);
    for (i = 0; i < n; i++) {
        good &= !p->failed[i];
        nops += p->whole[i] && p->trace->processes[i].nops;
        if (p->arenas[i])
            ct_arena_merge(p->trace->arena, p->arenas[i]);
    }
    free(p->arenas);
    free(p->failed);
    return good && nops;
}

bool ct_part_load(struct ct_trace *trace, const struct ct_part *part,
                  bool *whole)
{
    struct part p = {.trace = trace, .whole = whole};
    int *ranks, i;
    bool good;

    if (!is_simple(trace))
        return false;
    ranks = ct_alloc((size_t)trace->nprocesses, sizeof(*ranks));
    for (i = 0; i < trace->nprocesses; i++)
        ranks[i] = trace->processes[i].rank;
    /* Joining makes up its mind on ranks, and is done once more. */
    ct_trace_join(trace);
    choose(&p, part);
    for (i = 0; i < trace->nprocesses; i++)
        trace->processes[i].rank = ranks[i];
    good = load_processes(&p);
    free(ranks);
    free((uint64_t *)(uintptr_t)p.shared.uids);
    return good;
}
