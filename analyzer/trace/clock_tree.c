/*
 * Common time: each clock by the chain of ties that is least off to the first
 * clock of its group (a spanning tree of shortest paths; errors of a chain add
 * as squares). Messages check it: none is received before it was sent.
 */
#include <math.h>
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/clock.h"

#define SLACK_NS 1000.
#define TOO_MANY .05
#define LEAST_CHECKED 4

/* Of a clock that leads its group. */
static const struct ct_clock_piece itself = {.from_ns = INT64_MIN};

static const struct ct_clock_piece *piece_at(const struct ct_clock *clock,
                                             int64_t own_ns)
{
    int low = 0, high = clock->npieces - 1;

    while (low < high) {
        const int middle = low + (high - low + 1) / 2;

        if (own_ns >= clock->pieces[middle].from_ns)
            low = middle;
        else
            high = middle - 1;
    }
    return &clock->pieces[low];
}

static int64_t along(const struct ct_clock_piece *piece, int64_t own_ns)
{
    const int64_t since = own_ns - piece->own_ns;

    return piece->common_ns + since +
           (int64_t)floor((double)since * piece->rate + .5);
}

int64_t ct_clock_common(const struct ct_clock *clock, int64_t own_ns)
{
    return along(piece_at(clock, own_ns), own_ns);
}

/* Of a clock's tie to its parent, at a common time. */
static double tie_error(const struct ct_clock *clock, int64_t common_ns)
{
    const int64_t first = ct_clock_common(clock, clock->first_ns);
    const int64_t last = ct_clock_common(clock, clock->last_ns);
    double outside = 0;

    if (common_ns < first)
        outside = (double)(first - common_ns);
    if (common_ns > last)
        outside = (double)(common_ns - last);
    return clock->tie_error_ns + outside * clock->rate_error;
}

static int by_clocks(const void *left, const void *right)
{
    const struct ct_clock_pair *a = left, *b = right;

    return a->a != b->a ? (a->a < b->a ? -1 : 1)
                        : (a->b > b->b) - (a->b < b->b);
}

/* By what else ties a and b; INFINITY: nothing. */
static double pair_error(const struct ct_job *job, int a, int b,
                         int64_t ns_of_a)
{
    const struct ct_clock_pair key = {.a = a < b ? a : b, .b = a < b ? b : a};
    const struct ct_clock_pair *pair;

    if (!job->nclock_pairs)
        return INFINITY;
    pair = bsearch(&key, job->clock_pairs, (size_t)job->nclock_pairs,
                   sizeof(key), by_clocks);
    return pair && (a > b ||
                    (ns_of_a >= pair->first_ns && ns_of_a <= pair->last_ns))
               ? pair->error_ns
               : INFINITY;
}

/* Along the ties that lead from the one to the other. */
static double path_error(const struct ct_job *job, int a, int b, int64_t own_ns)
{
    const int64_t common_ns = ct_clock_common(&job->clocks[a], own_ns);
    double square = 0;

    if (job->clocks[a].group != job->clocks[b].group)
        return INFINITY;
    while (a != b) {
        int *deeper = job->clocks[a].depth >= job->clocks[b].depth ? &a : &b;
        const struct ct_clock *clock = &job->clocks[*deeper];
        const double error = tie_error(clock, common_ns);

        square += error * error;
        *deeper = clock->parent;
    }
    return sqrt(square);
}

double ct_clock_error(const struct ct_job *job, int a, int b, int64_t own_ns)
{
    return a == b ? 0
                  : fmin(path_error(job, a, b, own_ns),
                         pair_error(job, a, b, own_ns));
}

/* NULL: the job has none, and all of it is of one time. */
static const struct ct_clock *clock_of(const struct ct_trace *trace,
                                       const struct ct_process *p)
{
    const struct ct_job *job = &trace->jobs[p->job];

    return job->nclocks ? &job->clocks[p->clock] : NULL;
}

int64_t ct_common_ns(const struct ct_trace *trace, const struct ct_process *p,
                     int64_t ns)
{
    const struct ct_clock *clock = clock_of(trace, p);

    return clock ? ct_clock_common(clock, p->t0_ns + ns) : p->t0_ns + ns;
}

double ct_common_error(const struct ct_trace *trace, const struct ct_process *a,
                       const struct ct_process *b, int64_t ns)
{
    if (a->job != b->job)
        return INFINITY;
    if (!clock_of(trace, a))
        return 0;
    return ct_clock_error(&trace->jobs[a->job], a->clock, b->clock,
                          a->t0_ns + ns);
}

bool ct_clocks_are_tied(const struct ct_job *job)
{
    int i;

    for (i = 0; i < job->nclocks; i++)
        if (job->clocks[i].group != 0)
            return false;
    return true;
}

/* The line of a tie as pieces from own time (of b where down, else of a) to
 * that of the other. */
static struct ct_clock_piece piece_of(const struct ct_tie_line *line, bool down)
{
    const int64_t of_b = line->at_ns + line->apart_ns;
    struct ct_clock_piece piece = {.from_ns = line->from_ns};
    double since;

    if (!down) {
        piece.own_ns = line->at_ns;
        piece.common_ns = of_b;
        piece.rate = line->rate;
        return piece;
    }
    piece.own_ns = of_b;
    piece.common_ns = line->at_ns;
    piece.rate = 1 / (1 + line->rate) - 1;
    if (line->from_ns != INT64_MIN) {
        since = (double)(line->from_ns - line->at_ns);
        piece.from_ns =
            line->from_ns + line->apart_ns + (int64_t)(line->rate * since);
    }
    return piece;
}

/* Own time at which piece says common_ns. */
static int64_t back(const struct ct_clock_piece *piece, int64_t common_ns)
{
    const int64_t since = common_ns - piece->common_ns;

    return piece->own_ns + since +
           (int64_t)((double)since * (1 / (1 + piece->rate) - 1));
}

struct pieces {
    int n, capacity;
    struct ct_clock_piece *of;
};

/* First from one clock to another, then from that to the common time. */
static void add_composed(struct pieces *to, const struct ct_clock_piece *first,
                         const struct ct_clock_piece *then, int64_t from_ns)
{
    to->of = ct_grow(to->of, &to->capacity, to->n, sizeof(*to->of));
    to->of[to->n++] = (struct ct_clock_piece){
        from_ns, first->own_ns, along(then, first->common_ns),
        (1 + first->rate) * (1 + then->rate) - 1};
}

/* Pieces of clock, which tie leads to its parent. */
static void compose(struct ct_clocking *c, struct ct_clock *clock,
                    const struct ct_tie *tie, bool down)
{
    const struct ct_clock *parent = &c->m->job->clocks[clock->parent];
    struct pieces pieces = {0};
    int i, k;

    for (i = 0; i < tie->nlines; i++) {
        const struct ct_clock_piece first = piece_of(&tie->lines[i], down);
        int64_t until = INT64_MAX;

        if (i + 1 < tie->nlines)
            until = piece_of(&tie->lines[i + 1], down).from_ns;
        for (k = 0; k < parent->npieces; k++) {
            const struct ct_clock_piece *then = &parent->pieces[k];
            int64_t from = first.from_ns, to = until;

            if (k > 0 && back(&first, then->from_ns) > from)
                from = back(&first, then->from_ns);
            if (k + 1 < parent->npieces && back(&first, then[1].from_ns) < to)
                to = back(&first, then[1].from_ns);
            if (from < to)
                add_composed(&pieces, &first, then, from);
        }
    }
    clock->pieces = ct_arena_adopt(c->m->trace->arena, pieces.of);
    clock->npieces = pieces.n;
}

struct way {       /* to a clock, as far as it is known */
    double square; /* of its error */
    const struct ct_tie *tie;
    bool done;
};

struct joining {
    struct ct_clocking *c;
    struct way *ways; /* per clock */
    int *first;       /* per clock: its ties in sorted */
    int *sorted;
};

/* Ties of each clock, both of their ends. */
static void lay_out(struct joining *j)
{
    const struct ct_clocking *c = j->c;
    const int n = c->m->job->nclocks;
    int i;

    j->first = ct_alloc((size_t)n + 2, sizeof(*j->first));
    j->sorted = ct_alloc(2 * (size_t)c->nties, sizeof(*j->sorted));
    for (i = 0; i < c->nties; i++) {
        j->first[c->ties[i].a + 2]++;
        j->first[c->ties[i].b + 2]++;
    }
    for (i = 2; i < n + 2; i++)
        j->first[i] += j->first[i - 1];
    for (i = 0; i < c->nties; i++) {
        j->sorted[j->first[c->ties[i].a + 1]++] = i;
        j->sorted[j->first[c->ties[i].b + 1]++] = i;
    }
}

/* Times of a tie on the clock that it leads to the other. */
static void set_range(struct ct_clock *clock, const struct ct_tie *tie,
                      bool down)
{
    const struct ct_tie_line *last = &tie->lines[tie->nlines - 1];

    clock->first_ns = tie->first_ns + (down ? tie->lines[0].apart_ns : 0);
    clock->last_ns = tie->last_ns + (down ? last->apart_ns : 0);
}

static void settle(struct joining *j, int id)
{
    struct ct_clock *clocks = j->c->m->job->clocks, *clock = &clocks[id];
    const struct ct_tie *tie = j->ways[id].tie;
    const struct ct_clock *parent;

    j->ways[id].done = true;
    if (!tie) {
        *clock = (struct ct_clock){.node = clock->node,
                                   .first = clock->first,
                                   .nprocesses = clock->nprocesses,
                                   .distrusted = clock->distrusted,
                                   .checked = clock->checked,
                                   .contradicted = clock->contradicted,
                                   .group = id,
                                   .parent = CT_NONE,
                                   .npieces = 1,
                                   .pieces = &itself};
        return;
    }
    clock->parent = tie->a == id ? tie->b : tie->a;
    parent = &clocks[clock->parent];
    clock->group = parent->group;
    clock->tie = tie->how;
    clock->ties = tie->nsamples;
    clock->depth = parent->depth + 1;
    clock->error_ns = sqrt(j->ways[id].square);
    clock->tie_error_ns = tie->error_ns;
    clock->residual_ns = hypot(parent->residual_ns, tie->residual_ns);
    clock->rate_error = tie->rate_error;
    set_range(clock, tie, tie->b == id);
    compose(j->c, clock, tie, tie->b == id);
}

static void look_around(struct joining *j, int id)
{
    const struct ct_clocking *c = j->c;
    int i;

    for (i = j->first[id]; i < j->first[id + 1]; i++) {
        const struct ct_tie *tie = &c->ties[j->sorted[i]];
        const int other = tie->a == id ? tie->b : tie->a;
        const double square =
            j->ways[id].square + tie->error_ns * tie->error_ns;

        if (tie->nlines && !j->ways[other].done &&
            square < j->ways[other].square) {
            j->ways[other].square = square;
            j->ways[other].tie = tie;
        }
    }
}

static int nearest(const struct joining *j)
{
    const int n = j->c->m->job->nclocks;
    int i, best = CT_NONE, first = CT_NONE;

    for (i = 0; i < n; i++) {
        if (j->ways[i].done)
            continue;
        if (first == CT_NONE)
            first = i;
        if (j->ways[i].tie &&
            (best == CT_NONE || j->ways[i].square < j->ways[best].square))
            best = i;
    }
    return best == CT_NONE ? first : best;
}

void ct_clock_join(struct ct_clocking *c)
{
    struct joining j = {.c = c};
    int i, id;

    lay_out(&j);
    j.ways = ct_alloc((size_t)c->m->job->nclocks, sizeof(*j.ways));
    for (i = 0; i < c->m->job->nclocks; i++)
        j.ways[i].square = INFINITY;
    while ((id = nearest(&j)) != CT_NONE) {
        if (!j.ways[id].tie)
            j.ways[id].square = 0;
        settle(&j, id);
        look_around(&j, id);
    }
    free(j.ways);
    free(j.first);
    free(j.sorted);
}

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

/* Its ties count no more, nor do those that others have by it. */
static void distrust(struct ct_clocking *c, int id)
{
    int i;

    c->m->job->clocks[id].distrusted = true;
    for (i = 0; i < c->nties; i++)
        if (c->ties[i].a == id || c->ties[i].b == id)
            c->ties[i].nlines = 0;
    ct_clock_join(c);
}

void ct_clock_check(struct ct_clocking *c)
{
    int id;

    while ((id = most_contradicted(c)) != CT_NONE)
        distrust(c, id);
}

/* How far off a tie says that the common times of its clocks are, at at_ns of
 * clock a. */
static double gap_at(const struct ct_job *job, const struct ct_tie *tie,
                     int64_t at_ns)
{
    const struct ct_tie_line *line = tie->lines;
    int i;

    for (i = 1; i < tie->nlines && at_ns >= tie->lines[i].from_ns; i++)
        line = &tie->lines[i];
    return (
        double)(ct_clock_common(
                    &job->clocks[tie->b],
                    at_ns + line->apart_ns +
                        (int64_t)(line->rate * (double)(at_ns - line->at_ns))) -
                ct_clock_common(&job->clocks[tie->a], at_ns));
}

static bool leads(const struct ct_job *job, const struct ct_tie *tie)
{
    return job->clocks[tie->a].parent == tie->b ||
           job->clocks[tie->b].parent == tie->a;
}

void ct_clock_compare_pairs(struct ct_clocking *c)
{
    struct ct_job *job = c->m->job;
    int i, capacity = 0;

    for (i = 0; i < c->nties; i++) {
        const struct ct_tie *tie = &c->ties[i];
        double gap;

        if (!tie->nlines || leads(job, tie) ||
            job->clocks[tie->a].group != job->clocks[tie->b].group)
            continue;
        gap = fmax(fabs(gap_at(job, tie, tie->first_ns)),
                   fabs(gap_at(job, tie, tie->last_ns)));
        job->clock_pairs =
            ct_grow(job->clock_pairs, &capacity, job->nclock_pairs,
                    sizeof(*job->clock_pairs));
        job->clock_pairs[job->nclock_pairs++] = (struct ct_clock_pair){
            .a = tie->a < tie->b ? tie->a : tie->b,
            .b = tie->a < tie->b ? tie->b : tie->a,
            .first_ns = tie->a < tie->b ? tie->first_ns : INT64_MIN,
            .last_ns = tie->a < tie->b ? tie->last_ns : INT64_MAX,
            .error_ns = tie->error_ns + gap};
    }
    if (job->nclock_pairs)
        qsort(job->clock_pairs, (size_t)job->nclock_pairs,
              sizeof(*job->clock_pairs), by_clocks);
    ct_arena_adopt(c->m->trace->arena, job->clock_pairs);
}
