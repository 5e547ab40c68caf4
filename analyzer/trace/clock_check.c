/* Messages check common time: none is received before it was sent. */
#include <math.h>

#include "trace/clock.h"

#define SLACK_NS 1000.
#define TOO_MANY .05
#define LEAST_CHECKED 4

static void check_watch(struct ct_clocking *c, const struct ct_watch *w)
{
    const struct ct_lane *lane = &c->m->lanes[w->lane];
    const struct ct_comm *comm = &c->m->job->comms[lane->comm];
    struct ct_clock *clocks = c->m->job->clocks;
    const int sender = ct_clock_at(c, comm, lane->src);
    const int receiver = ct_clock_at(c, comm, lane->dst);
    struct ct_clock *from = &clocks[sender], *to = &clocks[receiver];
    int k;

    if (from == to || from->group != to->group || from->distrusted ||
        to->distrusted)
        return;
    for (k = 0; k < w->npicks; k++) {
        struct ct_span send, recv;
        double early;

        if (!ct_watch_message(c, w, k, &send, &recv))
            continue;
        early = (double)(ct_clock_common(from, send.start_ns) -
                         ct_clock_common(to, recv.end_ns));
        early -= SLACK_NS +
                 2 * ct_clock_error(c->m->job, sender, receiver, send.start_ns);
        from->checked++;
        to->checked++;
        from->contradicted += early > 0;
        to->contradicted += early > 0;
    }
}

static double share(const struct ct_clock *clock)
{
    return clock->checked < LEAST_CHECKED || clock->parent == CT_NONE
               ? 0
               : (double)clock->contradicted / (double)clock->checked;
}

/* The clock that most of its messages contradict; CT_NONE: none is off. */
static int most_contradicted(struct ct_clocking *c)
{
    struct ct_job *job = c->m->job;
    int i, worst = 0;

    for (i = 0; i < job->nclocks; i++)
        if (!job->clocks[i].distrusted)
            job->clocks[i].checked = job->clocks[i].contradicted = 0;
    for (i = 0; i < c->nwatches; i++)
        if (c->m->lanes[c->watches[i].lane].kind == CT_LANE_P2P)
            check_watch(c, &c->watches[i]);
    for (i = 1; i < job->nclocks; i++)
        if (!job->clocks[i].distrusted &&
            share(&job->clocks[i]) > share(&job->clocks[worst]))
            worst = i;
    return share(&job->clocks[worst]) > TOO_MANY ? worst : CT_NONE;
}

/* Its ties count no more, nor do those that others have by it, as clusters may.
 */
static void distrust(struct ct_clocking *c, int id)
{
    int i;

    c->m->job->clocks[id].distrusted = true;
    for (i = 0; i < c->nties; i++) {
        struct ct_tie *tie = &c->ties[i];

        tie->spare = false;
        if (tie->a == id || tie->b == id || tie->pooled)
            tie->nlines = 0;
    }
    ct_clock_join(c, CT_TIE_NONE, INFINITY);
}

void ct_clock_check(struct ct_clocking *c)
{
    int id;

    while ((id = most_contradicted(c)) != CT_NONE)
        distrust(c, id);
}
