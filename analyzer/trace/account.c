/*
 * How whole instances are: over all ranks, or lacking some, and why. A rank
 * whose trace is whole, and that issued fewer operations of a communicator than
 * others did, is behind them; who has a trace but not the record has lost it.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/match.h"

void ct_account_lay_out(struct ct_matching *m)
{
    int64_t n = 0;
    int l;

    for (l = 0; l < m->nlanes; l++) {
        m->lanes[l].issued = n;
        n += ct_lane_width(m, &m->lanes[l]);
    }
    m->issued = ct_alloc((size_t)n, sizeof(*m->issued));
}

/* Every call of it is in the trace. */
static bool is_whole(const struct ct_process *p)
{
    return !p->lost && !p->ring_missing && !p->unstored &&
           (p->end_ns != CT_NO_TIME || p->left);
}

/* How many have a trace, and how many they issued: all, and those of whole
 * traces; sorted. */
struct members {
    int nknown, nwhole;
    int64_t *known, *whole;
};

static const struct ct_process *member_at(const struct ct_matching *m,
                                          const struct ct_lane *lane, int i)
{
    const struct ct_comm *comm = &m->job->comms[lane->comm];
    const int rank = ct_lane_rank(lane, i);
    const int process = rank < 0 ? CT_NONE : comm->members[rank].process;

    return process == CT_NONE ? NULL : &m->trace->processes[process];
}

static int by_number(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

static void read_members(const struct ct_matching *m,
                         const struct ct_lane *lane, struct members *of)
{
    int i;

    of->nknown = of->nwhole = 0;
    for (i = 0; i < ct_lane_width(m, lane); i++) {
        const struct ct_process *p = member_at(m, lane, i);

        if (!p)
            continue;
        of->known[of->nknown++] = m->issued[lane->issued + i];
        if (is_whole(p))
            of->whole[of->nwhole++] = m->issued[lane->issued + i];
    }
    qsort(of->known, (size_t)of->nknown, sizeof(*of->known), by_number);
    qsort(of->whole, (size_t)of->nwhole, sizeof(*of->whole), by_number);
}

static void count_instance(struct ct_matching *m, const struct ct_lane *lane,
                           const struct ct_instance *instance,
                           const struct members *of)
{
    struct ct_met *met = &m->job->met;
    const int n = ct_lane_width(m, lane);

    if (instance->mismatch)
        met->unlike++;
    if ((int)instance->ranks >= n)
        met->whole++;
    else if (of->nwhole && of->whole[0] <= instance->ordinal)
        met->ahead++;
    else if (of->nknown < n && (int)instance->ranks == of->nknown)
        met->untraced++;
    else
        met->lost++;
}

/* Who issued fewest of a whole trace, if others issued more. */
static void note_ahead(struct ct_matching *m, const struct ct_lane *lane,
                       const struct members *of, int *capacity)
{
    struct ct_job *job = m->job;
    int i;

    if (!of->nwhole || of->whole[0] == of->known[of->nknown - 1])
        return;
    for (i = 0; m->issued[lane->issued + i] != of->whole[0] ||
                !member_at(m, lane, i) || !is_whole(member_at(m, lane, i));
         i++)
        ;
    job->ahead =
        ct_grow(job->ahead, capacity, job->nahead, sizeof(*job->ahead));
    job->ahead[job->nahead++] =
        (struct ct_ahead){.comm = lane->comm,
                          .src = lane->src,
                          .dst = lane->dst,
                          .behind = ct_lane_rank(lane, i),
                          .issued = of->whole[0],
                          .most = of->known[of->nknown - 1]};
}

void ct_account(struct ct_matching *m)
{
    struct members of = {0};
    int l, i, most = 2, capacity = 0;

    for (i = 0; i < m->job->ncomms; i++)
        if (m->job->comms[i].nranks > most)
            most = m->job->comms[i].nranks;
    of.known = ct_alloc((size_t)most, sizeof(*of.known));
    of.whole = ct_alloc((size_t)most, sizeof(*of.whole));
    for (l = 0; l < m->nlanes; l++) {
        const struct ct_lane *lane = &m->lanes[l];

        if (lane->kind == CT_LANE_ONE_SIDED)
            continue;
        read_members(m, lane, &of);
        for (i = 0; i < lane->count; i++)
            count_instance(m, lane, &m->job->instances[lane->first + i], &of);
        note_ahead(m, lane, &of, &capacity);
    }
    ct_arena_adopt(m->trace->arena, m->job->ahead);
    free(of.known);
    free(of.whole);
}
