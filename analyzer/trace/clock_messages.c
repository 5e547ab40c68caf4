/*
 * How far clocks are apart, by messages.
 *
 * Messages from a to b are received after they were sent, and so are those from
 * b to a: in a stretch of the run the clocks are apart by at most the least
 * (end on b - start on a) and by at least the largest (start on b - end on a).
 * The truth is taken to be in the middle: the way is as long as the way back,
 * where receivers waited.
 * That also puts right what all ends of collectives have in common.
 */
#include <math.h>
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/clock.h"

#define ROUNDS 4  /* to find them */
#define LATE .015 /* of both ways together: no receiver's fault */

static int by_pair_and_time(const void *left, const void *right)
{
    const struct ct_message *a = left, *b = right;

    if (a->a != b->a)
        return a->a < b->a ? -1 : 1;
    if (a->b != b->b)
        return a->b < b->b ? -1 : 1;
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    if (a->up != b->up)
        return a->up ? -1 : 1;
    return (a->apart_ns > b->apart_ns) - (a->apart_ns < b->apart_ns);
}

static struct ct_message message_of(int from, int to,
                                    const struct ct_span *send,
                                    const struct ct_span *recv)
{
    const int64_t apart_ns = recv->end_ns - send->start_ns;
    const double op_ns = (double)(recv->end_ns - recv->start_ns);

    if (from < to)
        return (struct ct_message){.a = from,
                                   .b = to,
                                   .up = true,
                                   .at_ns = send->start_ns,
                                   .apart_ns = apart_ns,
                                   .op_ns = op_ns};
    return (struct ct_message){.a = to,
                               .b = from,
                               .at_ns = recv->end_ns,
                               .apart_ns = -apart_ns,
                               .op_ns = op_ns};
}

static void add_messages(struct ct_clocking *c, const struct ct_watch *w,
                         struct ct_messages *all)
{
    const struct ct_lane *lane = &c->m->lanes[w->lane];
    const struct ct_comm *comm = &c->m->job->comms[lane->comm];
    const int from = ct_clock_at(c, comm, lane->src);
    const int to = ct_clock_at(c, comm, lane->dst);
    int k;

    if (from == to)
        return;
    for (k = 0; k < w->npicks; k++) {
        struct ct_span send, recv;

        if (!ct_watch_message(c, w, k, &send, &recv))
            continue;
        all->of = ct_grow(all->of, &all->capacity, all->n, sizeof(*all->of));
        all->of[all->n++] = message_of(from, to, &send, &recv);
    }
}

bool ct_message_is_late(const struct ct_message *of, int64_t apart_ns,
                        double ways_ns)
{
    const double since = (double)(of->apart_ns - apart_ns);

    return (of->up ? since : -since) - of->op_ns > LATE * ways_ns;
}

/* One sample of the n messages of a stretch, if they go both ways; where only
 * those count that were waited for, if both of the quickest were. A receiver
 * that comes late makes its way longer than the way back. */
static void add_stretch(struct ct_tie *tie, const struct ct_message *of, int n,
                        bool waited_for)
{
    const struct ct_message *up = NULL, *down = NULL;
    int64_t width, middle;
    int i;

    for (i = 0; i < n; i++) {
        if (of[i].up && (!up || of[i].apart_ns < up->apart_ns))
            up = &of[i];
        if (!of[i].up && (!down || of[i].apart_ns > down->apart_ns))
            down = &of[i];
    }
    if (!up || !down || up->apart_ns < down->apart_ns)
        return;
    width = up->apart_ns - down->apart_ns;
    middle = down->apart_ns + width / 2;
    if (waited_for && (ct_message_is_late(up, middle, (double)width) ||
                       ct_message_is_late(down, middle, (double)width)))
        return;
    ct_tie_add(tie,
               &(struct ct_tie_sample){
                   of[0].at_ns + (of[n - 1].at_ns - of[0].at_ns) / 2, middle,
                   (float)(1 / ((double)width + CT_TIE_BASE_NS)), CT_NONE},
               (double)width);
}

/* The n messages of one pair of clocks, in stretches of equally many. */
static void add_stretches(struct ct_tie *tie, const struct ct_message *of,
                          int n, bool waited_for)
{
    int up = 0, i, k, stretches;

    for (i = 0; i < n; i++)
        up += of[i].up;
    stretches = (up < n - up ? up : n - up) / CT_LEAST_MESSAGES;
    stretches = stretches < 1 ? 1 : stretches;
    stretches = stretches > CT_STRETCHES ? CT_STRETCHES : stretches;
    for (k = 0; up > 0 && up < n && k < stretches; k++) {
        const int64_t from = (int64_t)n * k / stretches;
        const int64_t until = (int64_t)n * (k + 1) / stretches;

        add_stretch(tie, of + from, (int)(until - from), waited_for);
    }
}

bool ct_messages_fit(struct ct_tie *tie, const struct ct_message *of, int n)
{
    tie->a = of->a;
    tie->b = of->b;
    tie->how = CT_TIE_P2P;
    tie->span_ns = (double)(of[n - 1].at_ns - of->at_ns);
    add_stretches(tie, of, n, true);
    if (tie->nsamples < CT_FEW_STRETCHES) {
        tie->nsamples = 0;
        add_stretches(tie, of, n, false);
    }
    if (!tie->nsamples)
        return false;
    ct_clock_fit(tie);
    ct_messages_refine(tie, of, n);
    return true;
}

static void tie_pair(struct ct_clocking *c, const struct ct_message *of, int n)
{
    struct ct_tie messages = {0};
    const int before = c->nties;
    struct ct_tie *tie;

    if (!ct_messages_fit(&messages, of, n))
        return;
    tie = ct_tie_of(c, of->a, of->b, CT_TIE_P2P);
    if (c->nties == before && !ct_clock_correct(tie, &messages)) {
        ct_tie_release(&messages);
        return;
    }
    ct_tie_release(tie);
    *tie = messages;
}

void ct_messages_sort(struct ct_messages *all)
{
    if (all->n)
        qsort(all->of, (size_t)all->n, sizeof(*all->of), by_pair_and_time);
}

int ct_messages_alike(const struct ct_messages *all, int first)
{
    int i = first + 1;

    while (i < all->n && all->of[i].a == all->of[first].a &&
           all->of[i].b == all->of[first].b)
        i++;
    return i - first;
}

void ct_clock_tie_p2p(struct ct_clocking *c)
{
    struct ct_messages *all = &c->messages;
    int i, k;

    for (i = 0; i < c->nwatches; i++)
        if (c->m->lanes[c->watches[i].lane].kind == CT_LANE_P2P)
            add_messages(c, &c->watches[i], all);
    ct_messages_sort(all);
    for (i = 0; i < all->n; i += k) {
        k = ct_messages_alike(all, i);
        tie_pair(c, all->of + i, k);
    }
}
