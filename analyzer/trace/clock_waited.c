/*
 * Messages that were waited for, once it is known about how far clocks are
 * apart: their way is the transfer and nothing else. Of these not the quickest
 * counts, which depends on how many there are of each direction, but what a
 * quarter is below.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/clock.h"
#include "trace/select.h"

#define SHARE 4

struct ways { /* of one direction: beyond what clocks are said to be apart */
    int n;
    int64_t *ns;
};

struct stretch {
    struct ways up, down;
    int64_t from_ns, until_ns;
};

/* What one in SHARE is below. */
static double low(const struct ways *ways)
{
    const double at = (ways->n + 1.) / SHARE - 1;
    const int k = at > 0 ? (int)at : 0;
    const double below = (double)ct_nth(ways->ns, ways->n, k);

    if (at <= k || k + 1 >= ways->n)
        return below;
    return below +
           (at - k) * ((double)ct_nth(ways->ns, ways->n, k + 1) - below);
}

static void end_stretch(struct ct_tie *to, struct stretch *s,
                        const struct ct_tie *known)
{
    const double up = low(&s->up), down = low(&s->down);
    const int64_t at_ns = s->from_ns + (s->until_ns - s->from_ns) / 2;

    if (up + down > 0)
        ct_tie_add(to,
                   &(struct ct_tie_sample){
                       at_ns,
                       ct_tie_apart(known, at_ns) + (int64_t)((up - down) / 2),
                       (float)(1 / (up + down + CT_TIE_BASE_NS)), CT_NONE},
                   up + down);
    s->up.n = s->down.n = 0;
}

static void add_way(struct stretch *s, const struct ct_message *of,
                    int64_t apart_ns)
{
    struct ways *ways = of->up ? &s->up : &s->down;

    if (!s->up.n && !s->down.n)
        s->from_ns = of->at_ns;
    s->until_ns = of->at_ns;
    ways->ns[ways->n++] =
        of->up ? of->apart_ns - apart_ns : apart_ns - of->apart_ns;
}

static bool was_waited_for(const struct ct_tie *known,
                           const struct ct_message *of)
{
    return !ct_message_is_late(of, ct_tie_apart(known, of->at_ns),
                               known->least_ns);
}

/* Messages each way of a stretch. */
static int length(const struct ct_tie *known, const struct ct_message *of,
                  int n)
{
    int up = 0, down = 0, i, most;

    for (i = 0; i < n; i++)
        if (was_waited_for(known, &of[i])) {
            up += of[i].up;
            down += !of[i].up;
        }
    most = (up < down ? up : down) / CT_STRETCHES;
    return most > CT_LEAST_MESSAGES ? most : CT_LEAST_MESSAGES;
}

/* Stretches with enough of both directions: messages may come in bursts. */
static void add_stretches(struct ct_tie *to, const struct ct_tie *known,
                          const struct ct_message *of, int n)
{
    struct stretch s = {.up.ns = ct_alloc((size_t)n, sizeof(*s.up.ns)),
                        .down.ns = ct_alloc((size_t)n, sizeof(*s.down.ns))};
    const int least = length(known, of, n);
    int i;

    for (i = 0; i < n; i++) {
        if (!was_waited_for(known, &of[i]))
            continue;
        add_way(&s, &of[i], ct_tie_apart(known, of[i].at_ns));
        if (s.up.n >= least && s.down.n >= least)
            end_stretch(to, &s, known);
    }
    free(s.up.ns);
    free(s.down.ns);
}

void ct_messages_refine(struct ct_tie *tie, const struct ct_message *of, int n)
{
    struct ct_tie better = {.a = tie->a,
                            .b = tie->b,
                            .how = tie->how,
                            .pooled = tie->pooled,
                            .waited_for = true,
                            .span_ns = tie->span_ns};

    add_stretches(&better, tie, of, n);
    if (better.nsamples < CT_FEW_STRETCHES) {
        ct_tie_release(&better);
        return;
    }
    ct_clock_fit(&better);
    ct_tie_release(tie);
    *tie = better;
}
