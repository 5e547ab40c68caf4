/*
 * Which processes read one clock. Those of one boot of one node should, but a
 * time name space or a library that fakes time sets some apart. That shows:
 *
 *   by their readings: CLOCK_REALTIME minus CLOCK_MONOTONIC is the same for all
 *   of a machine, to what steps of CLOCK_REALTIME change
 *
 *   by the ops: no rank ends a synchronising collective before another begins
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/clock.h"

#define STEP_NS INT64_C(500000000) /* of CLOCK_REALTIME: less is no sign */
#define SLACK_NS 50000             /* ends on the GPU may be off by so much */
#define TOO_MANY .1                /* ops that contradict */

struct reading {
    int64_t ahead_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
    int machine, process;
};

static int by_machine(const void *left, const void *right)
{
    const struct reading *a = left, *b = right;

    if (a->machine != b->machine)
        return a->machine < b->machine ? -1 : 1;
    if (a->ahead_ns != b->ahead_ns)
        return a->ahead_ns < b->ahead_ns ? -1 : 1;
    return a->process - b->process;
}

static int machine_of(struct ct_intern *keys, const struct ct_process *p,
                      int number)
{
    char key[512];

    /* An unknown boot is a machine of its own. */
    if (*p->boot_id)
        snprintf(key, sizeof(key), "%.200s %.200s", p->boot_id, p->host_id);
    else
        snprintf(key, sizeof(key), "%d", number);
    return ct_intern_add(keys, key, strlen(key));
}

/* Readings of all processes; one that is not known is as another of its
 * machine. */
static struct reading *read_all(const struct ct_matching *m)
{
    const int n = m->job->nprocesses;
    struct reading *readings = ct_alloc((size_t)n, sizeof(*readings));
    int64_t *ahead_ns = ct_alloc((size_t)n, sizeof(*ahead_ns));
    struct ct_intern keys = {0};
    int i;

    for (i = n - 1; i >= 0; i--) {
        const struct ct_process *p = ct_process_at(m, i);

        readings[i].process = i;
        readings[i].machine = machine_of(&keys, p, i);
        if (p->t0_real_ns)
            ahead_ns[readings[i].machine] = p->t0_real_ns - p->t0_ns;
    }
    for (i = 0; i < n; i++) {
        const struct ct_process *p = ct_process_at(m, i);

        readings[i].ahead_ns = p->t0_real_ns ? p->t0_real_ns - p->t0_ns
                                             : ahead_ns[readings[i].machine];
    }
    ct_intern_release(&keys);
    free(ahead_ns);
    return readings;
}

int *ct_clock_kernels(const struct ct_matching *m)
{
    const int n = m->job->nprocesses;
    struct reading *readings = read_all(m);
    int *kernel_of = ct_alloc((size_t)n, sizeof(*kernel_of));
    int i, kernel = 0;

    qsort(readings, (size_t)n, sizeof(*readings), by_machine);
    for (i = 0; i < n; i++) {
        if (i && (readings[i].machine != readings[i - 1].machine ||
                  readings[i].ahead_ns - readings[i - 1].ahead_ns > STEP_NS))
            kernel++;
        kernel_of[readings[i].process] = kernel;
    }
    free(readings);
    return kernel_of;
}

struct grouping {
    struct ct_clocking *c;
    int *parents; /* union-find over processes of the job */
    int nconflicts, capacity;
    int (*conflicts)[2]; /* processes of the job */
};

static int root_of(int *parents, int i)
{
    while (parents[i] != i)
        i = parents[i] = parents[parents[i]];
    return i;
}

/* What the picks of w say of ranks a and b. */
static void compare(struct grouping *g, const struct ct_watch *w, int a, int b,
                    int process_a, int process_b)
{
    int k, n = 0, against = 0;

    for (k = 0; k < w->npicks; k++) {
        const struct ct_span *spans = ct_watch_spans(g->c, w, k);
        const struct ct_instance *instance = ct_watch_instance(g->c, w, k);

        if (spans[a].start_ns == CT_NO_TIME ||
            spans[b].start_ns == CT_NO_TIME || instance->mismatch ||
            instance->cut || ct_op_infos[instance->base].cls != CT_COLL)
            continue;
        n++;
        against += spans[a].end_ns < spans[b].start_ns - SLACK_NS ||
                   spans[b].end_ns < spans[a].start_ns - SLACK_NS;
    }
    if (n > 0 && against <= TOO_MANY * n) {
        g->parents[root_of(g->parents, process_b)] =
            root_of(g->parents, process_a);
    } else if (n > 0) {
        g->conflicts = ct_grow(g->conflicts, &g->capacity, g->nconflicts,
                               sizeof(*g->conflicts));
        g->conflicts[g->nconflicts][0] = process_a;
        g->conflicts[g->nconflicts++][1] = process_b;
    }
}

/* Each rank with the first rank of its machine, and of each part of that which
 * was found to read another clock. */
static void compare_ranks(struct grouping *g, const struct ct_watch *w)
{
    const struct ct_lane *lane = &g->c->m->lanes[w->lane];
    const struct ct_comm *comm = &g->c->m->job->comms[lane->comm];
    int *firsts = ct_alloc((size_t)comm->nranks, sizeof(*firsts));
    int r, i, nfirsts = 0;

    for (r = 0; r < comm->nranks; r++) {
        const int process = comm->members[r].process == CT_NONE
                                ? CT_NONE
                                : g->c->number[comm->members[r].process];
        bool placed = process == CT_NONE;

        for (i = 0; i < nfirsts && !placed; i++) {
            const int other = g->c->number[comm->members[firsts[i]].process];

            if (g->c->kernel_of[other] != g->c->kernel_of[process])
                continue;
            if (root_of(g->parents, other) != root_of(g->parents, process))
                compare(g, w, firsts[i], r, other, process);
            placed = root_of(g->parents, other) == root_of(g->parents, process);
        }
        if (!placed)
            firsts[nfirsts++] = r;
    }
    free(firsts);
}

static bool conflict(struct grouping *g, int a, int b)
{
    int i;

    for (i = 0; i < g->nconflicts; i++) {
        const int x = root_of(g->parents, g->conflicts[i][0]);
        const int y = root_of(g->parents, g->conflicts[i][1]);

        if ((x == a && y == b) || (x == b && y == a))
            return true;
    }
    return false;
}

/* Processes of a machine that never met are taken for one clock. */
static void unite_rest(struct grouping *g)
{
    const int n = g->c->m->job->nprocesses;
    int *first = ct_alloc((size_t)n, sizeof(*first)); /* per kernel: list */
    int *next = ct_alloc((size_t)n, sizeof(*next));
    int i;

    for (i = 0; i < n; i++)
        first[i] = next[i] = CT_NONE;
    for (i = 0; i < n; i++) {
        int *at = &first[g->c->kernel_of[i]];

        for (; *at != CT_NONE; at = &next[*at]) {
            const int other = root_of(g->parents, *at);
            const int own = root_of(g->parents, i);

            if (other == own)
                break;
            if (!conflict(g, other, own)) {
                g->parents[own] = other;
                break;
            }
        }
        if (*at == CT_NONE)
            *at = i;
    }
    free(first);
    free(next);
}

static void number_clocks(struct grouping *g)
{
    const struct ct_matching *m = g->c->m;
    struct ct_job *job = m->job;
    int *clock_of = ct_alloc((size_t)job->nprocesses, sizeof(*clock_of));
    int i;

    for (i = 0; i < job->nprocesses; i++)
        job->nclocks += root_of(g->parents, i) == i;
    job->clocks = ct_arena_alloc(m->trace->arena, (size_t)job->nclocks,
                                 sizeof(*job->clocks));
    job->nclocks = 0;
    memset(clock_of, 0xff, (size_t)job->nprocesses * sizeof(*clock_of));
    for (i = 0; i < job->nprocesses; i++) {
        struct ct_process *p = ct_process_at(m, i);
        const int root = root_of(g->parents, i);

        if (clock_of[root] == CT_NONE) {
            clock_of[root] = job->nclocks;
            job->clocks[job->nclocks] = (struct ct_clock){
                .node = p->node, .first = job->processes[i], .parent = CT_NONE};
            job->nclocks++;
        }
        p->clock = clock_of[root];
        job->clocks[p->clock].nprocesses++;
    }
    free(clock_of);
}

void ct_clock_group(struct ct_clocking *c)
{
    const struct ct_matching *m = c->m;
    struct grouping g = {.c = c};
    int i;

    g.parents = ct_alloc((size_t)m->job->nprocesses, sizeof(*g.parents));
    for (i = 0; i < m->job->nprocesses; i++)
        g.parents[i] = i;
    for (i = 0; i < c->nwatches; i++)
        if (m->lanes[c->watches[i].lane].kind == CT_LANE_COLL)
            compare_ranks(&g, &c->watches[i]);
    unite_rest(&g);
    number_clocks(&g);
    free(g.parents);
    free(g.conflicts);
}
