/*
 * How far clocks are apart, by collectives.
 *
 * A collective that synchronises ends everywhere at about the same moment; of a
 * clock with several ranks the middle one counts, and of the clocks of a
 * communicator each is tied to the first. Ends differ by up to the time of a
 * message: in a ring the rank that came last ends a hop before or after others,
 * and the ring hands that on to the next op. So short ops tell more than long
 * ones, all-reduces, which go round twice, more than all-gathers, and it counts
 * who came last.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/clock.h"
#include "trace/select.h"

/* Who took longer than an op does by this share of it, and this time, waited.
 */
#define CLEARLY 1.1
#define CLEARLY_NS 2000
#define ONE_WAY .1 /* weight of what goes round once */

struct ct_tie *ct_tie_of(struct ct_clocking *c, int a, int b,
                         enum ct_clock_tie how)
{
    const int key[2] = {a, b};
    const int n = c->nties, i = ct_intern_add(&c->tie_keys, key, sizeof(key));

    if (i == n) {
        c->ties = ct_grow(c->ties, &c->tie_capacity, n, sizeof(*c->ties));
        c->ties[c->nties++] = (struct ct_tie){.a = a, .b = b, .how = how};
    }
    return &c->ties[i];
}

void ct_tie_add(struct ct_tie *tie, const struct ct_tie_sample *sample,
                double op_ns)
{
    tie->samples = ct_grow(tie->samples, &tie->capacity, tie->nsamples,
                           sizeof(*tie->samples));
    if (!tie->nsamples || op_ns < tie->least_ns)
        tie->least_ns = op_ns;
    tie->samples[tie->nsamples++] = *sample;
}

int64_t ct_tie_apart(const struct ct_tie *tie, int64_t at_ns)
{
    const struct ct_tie_line *line = tie->lines;
    int i;

    for (i = 1; i < tie->nlines && at_ns >= tie->lines[i].from_ns; i++)
        line = &tie->lines[i];
    return line->apart_ns +
           (int64_t)(line->rate * (double)(at_ns - line->at_ns));
}

void ct_tie_release(struct ct_tie *tie)
{
    free(tie->samples);
    free(tie->lines);
}

struct rank { /* of a communicator that is watched */
    int clock, rank;
};

static int by_clock(const void *left, const void *right)
{
    const struct rank *a = left, *b = right;

    return a->clock != b->clock ? (a->clock < b->clock ? -1 : 1)
                                : a->rank - b->rank;
}

/* Those with a trace, clock by clock. */
static int sort_ranks(const struct ct_clocking *c, const struct ct_comm *comm,
                      struct rank *ranks)
{
    int r, n = 0;

    for (r = 0; r < comm->nranks; r++)
        if (comm->members[r].process != CT_NONE)
            ranks[n++] = (struct rank){ct_clock_at(c, comm, r), r};
    qsort(ranks, (size_t)n, sizeof(*ranks), by_clock);
    return n;
}

struct met {        /* what ranks of one clock saw of an op */
    int64_t end_ns; /* the middle of their ends */
    int64_t ns;     /* shortest duration */
    int clock;
};

struct rooms { /* for as many as a communicator has ranks */
    int64_t *work;
    struct met *met;
};

/* False: none of the ranks was timed. */
static bool look(const struct ct_span *spans, const struct rank *ranks, int n,
                 int64_t *work, struct met *met)
{
    int i, k = 0;
    int64_t low;

    met->ns = INT64_MAX;
    for (i = 0; i < n; i++) {
        const struct ct_span *span = &spans[ranks[i].rank];

        if (span->start_ns == CT_NO_TIME)
            continue;
        work[k++] = span->end_ns;
        if (span->end_ns - span->start_ns < met->ns)
            met->ns = span->end_ns - span->start_ns;
    }
    if (k == 0)
        return false;
    low = ct_nth(work, k, (k - 1) / 2);
    met->end_ns = low + (ct_nth(work, k, k / 2) - low) / 2;
    return true;
}

static bool waited(const struct met *met, double op_ns)
{
    return (double)met->ns > CLEARLY * op_ns + CLEARLY_NS;
}

/* The clock that came last, if that says something of clocks a and b. */
static int last_of(const struct met *a, const struct met *b,
                   const struct met *last, double op_ns)
{
    return (a == last || waited(a, op_ns)) && (b == last || waited(b, op_ns))
               ? last->clock
               : CT_NONE;
}

static bool is_fit(const struct ct_instance *i)
{
    return i->base != CT_OP_COUNT && ct_op_infos[i->base].cls == CT_COLL &&
           ct_op_infos[i->base].size != CT_NO_SHARE && !i->grouped &&
           !i->mismatch && !i->cut && i->timed > 1;
}

/* What the clocks that took part in an op saw. */
static int look_all(const struct ct_span *spans, const struct rank *ranks,
                    int nranks, int64_t *work, struct met *met)
{
    int i, n, k = 0;

    for (i = 0; i < nranks; i += n) {
        for (n = 1; i + n < nranks && ranks[i + n].clock == ranks[i].clock; n++)
            ;
        met[k].clock = ranks[i].clock;
        k += look(spans, ranks + i, n, work, &met[k]);
    }
    return k;
}

static void tie_pick(struct ct_clocking *c, const struct ct_watch *w, int pick,
                     const struct rank *ranks, int nranks,
                     const struct rooms *rooms)
{
    const struct ct_instance *instance = ct_watch_instance(c, w, pick);
    struct met *met = rooms->met;
    int i, n, last = 0;
    double op_ns, weight;

    if (!is_fit(instance))
        return;
    n = look_all(ct_watch_spans(c, w, pick), ranks, nranks, rooms->work, met);
    for (i = 1; i < n; i++)
        last = met[i].ns < met[last].ns ? i : last;
    op_ns = (double)instance->transfer_ns + CT_TIE_BASE_NS;
    weight = 1 / op_ns;
    if (ct_op_infos[instance->base].wire != CT_TWO_RING)
        weight *= ONE_WAY;
    for (i = 1; i < n; i++)
        ct_tie_add(ct_tie_of(c, met[0].clock, met[i].clock, CT_TIE_COLLECTIVES),
                   &(struct ct_tie_sample){
                       met[0].end_ns, met[i].end_ns - met[0].end_ns,
                       (float)weight,
                       last_of(&met[0], &met[i], &met[last], op_ns)},
                   op_ns);
}

static void tie_watch(struct ct_clocking *c, const struct ct_watch *w)
{
    const struct ct_comm *comm = &c->m->job->comms[c->m->lanes[w->lane].comm];
    struct rank *ranks = ct_alloc((size_t)comm->nranks, sizeof(*ranks));
    struct rooms rooms = {
        .work = ct_alloc((size_t)comm->nranks, sizeof(*rooms.work)),
        .met = ct_alloc((size_t)comm->nranks, sizeof(*rooms.met))};
    const int n = sort_ranks(c, comm, ranks);
    int k;

    if (n && ranks[0].clock != ranks[n - 1].clock)
        for (k = 0; k < w->npicks; k++)
            tie_pick(c, w, k, ranks, n, &rooms);
    free(ranks);
    free(rooms.work);
    free(rooms.met);
}

void ct_clock_tie_collectives(struct ct_clocking *c)
{
    int i;

    for (i = 0; i < c->nwatches; i++)
        if (c->m->lanes[c->watches[i].lane].kind == CT_LANE_COLL)
            tie_watch(c, &c->watches[i]);
    for (i = 0; i < c->nties; i++)
        ct_clock_fit(&c->ties[i]);
}
