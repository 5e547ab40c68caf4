/*
 * How far clocks are apart, op by op.
 *
 * A collective that synchronises ends everywhere at about the same moment; of a
 * clock with several ranks the middle one counts, and of the clocks of a
 * communicator each is tied to the first. Ends differ by up to the time of a
 * message: in a ring the rank that came last ends a hop before or after others,
 * and the ring hands that on to the next op. So short ops tell more than long
 * ones, all-reduces, which go round twice, more than all-gathers, and it counts
 * who came last.
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
#include <string.h>

#include "trace/arena.h"
#include "trace/clock.h"
#include "trace/select.h"

#define BASE_NS 1000 /* of the time of an op, beside its transfer */
/* Who took longer than an op does by this share of it, and this time, waited.
 */
#define CLEARLY 1.1
#define CLEARLY_NS 2000
#define ONE_WAY .1 /* weight of what goes round once */
#define STRETCHES 64
#define LEAST_MESSAGES 8 /* each way, of a stretch */
#define FEW_STRETCHES 4
#define LATE .015 /* of both ways together: no receiver's fault */

static struct ct_tie *tie_of(struct ct_clocking *c, int a, int b,
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

static void add_sample(struct ct_tie *tie, const struct ct_tie_sample *sample,
                       double op_ns)
{
    tie->samples = ct_grow(tie->samples, &tie->capacity, tie->nsamples,
                           sizeof(*tie->samples));
    if (!tie->nsamples || op_ns < tie->least_ns)
        tie->least_ns = op_ns;
    tie->samples[tie->nsamples++] = *sample;
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
    op_ns = (double)instance->transfer_ns + BASE_NS;
    weight = 1 / op_ns;
    if (ct_op_infos[instance->base].wire != CT_TWO_RING)
        weight *= ONE_WAY;
    for (i = 1; i < n; i++)
        add_sample(tie_of(c, met[0].clock, met[i].clock, CT_TIE_COLLECTIVES),
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

struct message { /* between clocks a < b */
    int a, b;
    bool up;          /* from a to b */
    int64_t at_ns;    /* of a */
    int64_t apart_ns; /* b - a: at most where up, else at least */
    double op_ns;
};

struct messages {
    int n, capacity;
    struct message *of;
};

static int by_pair_and_time(const void *left, const void *right)
{
    const struct message *a = left, *b = right;

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

static struct message message_of(int from, int to, const struct ct_span *send,
                                 const struct ct_span *recv)
{
    const int64_t apart_ns = recv->end_ns - send->start_ns;
    const double op_ns = (double)(recv->end_ns - recv->start_ns);

    if (from < to)
        return (struct message){from,           to,       true,
                                send->start_ns, apart_ns, op_ns};
    return (struct message){to, from, false, recv->end_ns, -apart_ns, op_ns};
}

static void add_messages(struct ct_clocking *c, const struct ct_watch *w,
                         struct messages *all)
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

/* How much later than its sender a receiver began, if clocks are so far apart.
 */
static double late_by(const struct message *of, int64_t apart_ns)
{
    const double since = (double)(of->apart_ns - apart_ns);

    return (of->up ? since : -since) - of->op_ns;
}

/* One sample of the n messages of a stretch, if they go both ways; where only
 * those count that were waited for, if both of the quickest were. A receiver
 * that comes late makes its way longer than the way back. */
static void add_stretch(struct ct_tie *tie, const struct message *of, int n,
                        bool waited_for)
{
    const struct message *up = NULL, *down = NULL;
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
    if (waited_for &&
        fmax(late_by(up, middle), late_by(down, middle)) > LATE * (double)width)
        return;
    add_sample(tie,
               &(struct ct_tie_sample){
                   of[0].at_ns + (of[n - 1].at_ns - of[0].at_ns) / 2, middle,
                   (float)(1 / ((double)width + BASE_NS)), CT_NONE},
               (double)width);
}

/* The n messages of one pair of clocks, in stretches of equally many. */
static void add_stretches(struct ct_tie *tie, const struct message *of, int n,
                          bool waited_for)
{
    int up = 0, i, k, stretches;

    for (i = 0; i < n; i++)
        up += of[i].up;
    stretches = (up < n - up ? up : n - up) / LEAST_MESSAGES;
    stretches = stretches < 1 ? 1 : stretches;
    stretches = stretches > STRETCHES ? STRETCHES : stretches;
    for (k = 0; up > 0 && up < n && k < stretches; k++) {
        const int64_t from = (int64_t)n * k / stretches;
        const int64_t until = (int64_t)n * (k + 1) / stretches;

        add_stretch(tie, of + from, (int)(until - from), waited_for);
    }
}

void ct_tie_release(struct ct_tie *tie)
{
    free(tie->samples);
    free(tie->lines);
}

static void tie_pair(struct ct_clocking *c, const struct message *of, int n)
{
    struct ct_tie messages = {.a = of->a,
                              .b = of->b,
                              .how = CT_TIE_P2P,
                              .span_ns = (double)(of[n - 1].at_ns - of->at_ns)};
    const int before = c->nties;
    struct ct_tie *tie;

    add_stretches(&messages, of, n, true);
    if (messages.nsamples < FEW_STRETCHES) {
        messages.nsamples = 0;
        add_stretches(&messages, of, n, false);
    }
    if (!messages.nsamples)
        return;
    ct_clock_fit(&messages);
    tie = tie_of(c, of->a, of->b, CT_TIE_P2P);
    if (c->nties == before && !ct_clock_correct(tie, &messages)) {
        ct_tie_release(&messages);
        return;
    }
    ct_tie_release(tie);
    *tie = messages;
}

void ct_clock_tie_p2p(struct ct_clocking *c)
{
    struct messages all = {0};
    int i, k;

    for (i = 0; i < c->nwatches; i++)
        if (c->m->lanes[c->watches[i].lane].kind == CT_LANE_P2P)
            add_messages(c, &c->watches[i], &all);
    if (all.n)
        qsort(all.of, (size_t)all.n, sizeof(*all.of), by_pair_and_time);
    for (i = 0; i < all.n; i += k) {
        for (k = 1; i + k < all.n && all.of[i].a == all.of[i + k].a &&
                    all.of[i].b == all.of[i + k].b;
             k++)
            ;
        tie_pair(c, all.of + i, k);
    }
    free(all.of);
}
