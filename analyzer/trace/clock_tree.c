/*
 * Common time: each clock by the chain of ties that is least off to the first
 * clock of its group (a spanning tree of shortest paths; errors of a chain add
 * as squares).
 */
#include <math.h>
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/clock.h"

/* Of a clock that leads its group. */
static const struct ct_clock_piece itself = {.from_ns = INT64_MIN};

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
        from_ns, first->own_ns, ct_clock_along(then, first->common_ns),
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

static void add_tie_line(struct ct_tie *tie, int64_t from_ns,
                         const struct ct_clock_piece *a,
                         const struct ct_clock_piece *b)
{
    tie->lines = ct_grow(tie->lines, &tie->line_capacity, tie->nlines,
                         sizeof(*tie->lines));
    tie->lines[tie->nlines++] = (struct ct_tie_line){
        from_ns, a->own_ns, back(b, a->common_ns) - a->own_ns,
        (1 + a->rate) / (1 + b->rate) - 1};
}

void ct_clock_tie_joined(struct ct_tie *tie, const struct ct_clock *a,
                         const struct ct_clock *b)
{
    int64_t from_ns = INT64_MIN;
    int i = 0, k = 0;

    for (;;) {
        int64_t of_a = INT64_MAX, of_b = INT64_MAX;

        add_tie_line(tie, from_ns, &a->pieces[i], &b->pieces[k]);
        if (i + 1 < a->npieces)
            of_a = a->pieces[i + 1].from_ns;
        if (k + 1 < b->npieces)
            of_b =
                back(&a->pieces[i], ct_clock_along(&b->pieces[k + 1],
                                                   b->pieces[k + 1].from_ns));
        if (of_a == INT64_MAX && of_b == INT64_MAX)
            return;
        from_ns = of_a < of_b ? of_a : of_b;
        i += of_a <= of_b;
        k += of_b <= of_a;
    }
}

struct way {       /* to a clock, as far as it is known */
    double square; /* of its error */
    const struct ct_tie *tie;
    bool done;
};

struct joining {
    struct ct_clocking *c;
    double most_ns;        /* of the error of a way */
    enum ct_clock_tie how; /* CT_TIE_NONE: any */
    struct way *ways;      /* per clock */
    int *first;            /* per clock: its ties in sorted */
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

        if (tie->nlines && !tie->spare && !j->ways[other].done &&
            (j->how == CT_TIE_NONE || j->how == tie->how) &&
            square <= j->most_ns * j->most_ns &&
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

void ct_clock_join(struct ct_clocking *c, enum ct_clock_tie how, double most_ns)
{
    struct joining j = {.c = c, .how = how, .most_ns = most_ns};
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
