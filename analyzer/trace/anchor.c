/*
 * Of all tokens that occur once per step, the one that ends it: a reduction
 * (of gradients, of the norm), else a collective; the one before the way to the
 * next of them that is a forward pass. Parameters that are gathered right after
 * belong to the step; those that are gathered as the next forward pass needs
 * them do not.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/select.h"
#include "trace/steps.h"

#define MANY_PLACES 64
#define COMPUTING_NS 20000

/* Of the longest way, that a step ends before at least: 1 / LONG_PART. */
#define LONG_PART 3
#define FEW_CALLS 3

/* Of the time of a way, that nothing is communicated: on one that computes at
 * least, on one that does not at most, of the most of any also. */
#define COMPUTING 0.3
#define DENSE 0.1

/* Way from each occurrence of a once-per-step token to the next of any. */
struct way {
    int token, n;
    int to_sums;             /* that end with a large sum */
    struct ct_anchor anchor; /* at the token */
    int64_t *calls, *ns;
    int64_t *idle; /* time on it that nothing is communicated */
    int64_t *sums; /* kinds of large sums on it, and at its end */
    int64_t *gathers;
    int64_t median_calls, median_ns, median_idle, median_sums, median_gathers;
};

/* Sets once[token] for tokens that occur exactly once in most steps. */
static void find_once(const struct ct_stream *s, const struct ct_anchor *anchor,
                      bool *once)
{
    struct ct_places p = ct_places_of(s, anchor);
    int *steps = ct_alloc((size_t)s->ntokens, sizeof(*steps));
    int *seen = ct_alloc((size_t)s->ntokens, sizeof(*seen));
    int *last = ct_alloc((size_t)s->ntokens, sizeof(*last));
    int i, o, t;

    for (i = 1; i < p.n; i++)
        for (o = p.at[i - 1] + 1; o <= p.at[i]; o++) {
            t = s->token_at[o];
            if (last[t] != i) {
                last[t] = i;
                seen[t] = 0;
            }
            steps[t] += ++seen[t] == 1 ? 1 : seen[t] == 2 ? -1 : 0;
        }
    for (t = 0; t < s->ntokens; t++)
        once[t] = steps[t] >= CT_EQUAL_SHARE * (p.n - 1);
    free(steps);
    free(seen);
    free(last);
}

/* Gradients, or the norm; not the maxima of a loss over the vocabulary. */
static bool sums(const struct ct_stream *s, int token)
{
    const struct ct_kind *kind = &s->kinds[s->tokens[token].kind];

    return kind->sums || (kind->small && kind->reduces);
}

static bool collects(const struct ct_stream *s, int token)
{
    return s->kinds[s->tokens[token].kind].collective;
}

static void keep(const struct ct_stream *s, bool *once,
                 bool (*is_it)(const struct ct_stream *s, int token))
{
    bool any = false;
    int t;

    for (t = 0; t < s->ntokens; t++)
        any |= once[t] && is_it(s, t);
    for (t = 0; t < s->ntokens && any; t++)
        once[t] &= is_it(s, t);
}

/* The same period, from another of its tokens on. An evaluation may have it
 * more often than steps. */
static bool move(const struct ct_stream *s, const struct ct_anchor *anchor,
                 int token, struct ct_anchor *moved)
{
    *moved = (struct ct_anchor){.token = token};
    if (token == anchor->token) {
        *moved = *anchor;
        return true;
    }
    /* The period is known to hold, though sizes may differ by turns. */
    return ct_anchor_has(s, moved, anchor->distance) &&
           (ct_anchor_measure(s, moved) || moved->length);
}

static void begin_ways(const struct ct_stream *s,
                       const struct ct_anchor *anchor, const bool *once,
                       struct way *ways, int *way_of, int *n_p)
{
    int t;

    for (t = 0; t < s->ntokens; t++) {
        struct way *way = &ways[*n_p];
        const size_t room = (size_t)s->tokens[t].n;

        way_of[t] = CT_NONE;
        if (!once[t] || !move(s, anchor, t, &way->anchor))
            continue;
        way->token = t;
        way->n = way->to_sums = 0;
        way->calls = ct_alloc(room, sizeof(*way->calls));
        way->ns = ct_alloc(room, sizeof(*way->ns));
        way->idle = ct_alloc(room, sizeof(*way->idle));
        way->sums = ct_alloc(room, sizeof(*way->sums));
        way->gathers = ct_alloc(room, sizeof(*way->gathers));
        way_of[t] = (*n_p)++;
    }
}

static bool is_large_sum(const struct ct_kind *kind)
{
    return kind->sums && !kind->small;
}

static int count_sums(const struct ct_stream *s, int first, int last, int *seen,
                      int mark)
{
    int o, n = 0;

    for (o = first; o <= last; o++) {
        const int kind = s->tokens[s->token_at[o]].kind;

        n += is_large_sum(&s->kinds[kind]) && seen[kind] != mark;
        seen[kind] = mark;
    }
    return n;
}

static int count_gathers(const struct ct_stream *s, int first, int last)
{
    int o, n = 0;

    for (o = first; o <= last; o++)
        n += ct_kind_at(s, o)->gathers && !ct_kind_at(s, o)->small;
    return n;
}

/* Time between the ends and begins of the calls after first, until last. */
static int64_t idle_between(const struct ct_stream *s, int first, int last)
{
    int64_t end = ct_stream_end(s, first), idle = 0;
    int o;

    for (o = first + 1; o <= last; o++) {
        const int64_t begin = ct_stream_begin(s, o);

        if (begin > end)
            idle += begin - end;
        if (o < last && ct_stream_end(s, o) > end)
            end = ct_stream_end(s, o);
    }
    return idle;
}

static int collect_ways(const struct ct_stream *s,
                        const struct ct_anchor *anchor, struct way *ways)
{
    struct ct_places p = ct_places_of(s, anchor);
    bool *once = ct_alloc((size_t)s->ntokens, sizeof(*once));
    int *way_of = ct_alloc((size_t)s->ntokens, sizeof(*way_of));
    int *seen = ct_alloc((size_t)s->nkinds, sizeof(*seen));
    int o, last = p.at[0], n = 0;

    find_once(s, anchor, once);
    /* Not inside its pipeline, nor before it. */
    keep(s, once, collects);
    keep(s, once, sums);
    begin_ways(s, anchor, once, ways, way_of, &n);
    while (last < p.at[p.n - 1] && way_of[s->token_at[last]] == CT_NONE)
        last++;
    for (o = last + 1; n && o <= p.at[p.n - 1]; o++) {
        struct way *from = &ways[way_of[s->token_at[last]]];

        if (way_of[s->token_at[o]] == CT_NONE)
            continue;
        from->calls[from->n] = o - last;
        from->sums[from->n] = count_sums(s, last + 1, o, seen, o);
        from->to_sums += is_large_sum(ct_kind_at(s, o));
        from->gathers[from->n] = count_gathers(s, last + 1, o);
        from->idle[from->n] = idle_between(s, last, o);
        from->ns[from->n++] = ct_stream_begin(s, o) - ct_stream_end(s, last);
        last = o;
    }
    free(way_of);
    free(once);
    free(seen);
    return n;
}

static bool is_scalar(const struct ct_stream *s, const struct way *way)
{
    return s->kinds[s->tokens[way->token].kind].small;
}

static bool leads_to_sum(const struct way *way)
{
    return 2 * way->to_sums > way->n;
}

/* Whether a step rather ends with a than with b, both before a long way. That
 * is to the next forward pass, which parameters are gathered for after the
 * norm: where the way is a backward one, there are gradients on it, or at its
 * end. If both lead to gradients, one is from a gradient to the next. */
static bool ends_rather(const struct ct_stream *s, const struct way *a,
                        const struct way *b)
{
    const int64_t difference = a->median_calls - b->median_calls;

    if (!a->median_gathers != !b->median_gathers &&
        is_scalar(s, a->median_gathers ? a : b))
        return a->median_gathers > 0;
    if (a->median_sums != b->median_sums &&
        !(leads_to_sum(a) && leads_to_sum(b)))
        return a->median_sums < b->median_sums;
    if (is_scalar(s, a) != is_scalar(s, b))
        return is_scalar(s, a);
    if (llabs(difference) > 2 + b->median_calls / 5)
        return difference > 0;
    return a->median_ns > b->median_ns;
}

static void settle(struct way *way)
{
    const int64_t middle = way->n / 2;

    way->median_calls = way->n ? ct_nth(way->calls, way->n, middle) : 0;
    way->median_ns = way->n ? ct_nth(way->ns, way->n, middle) : 0;
    way->median_gathers = way->n ? ct_nth(way->gathers, way->n, middle) : 0;
    way->median_idle = way->n ? ct_nth(way->idle, way->n, middle) : 0;
    way->median_sums = way->n ? ct_nth(way->sums, way->n, middle) : 0;
    free(way->calls);
    free(way->ns);
    free(way->idle);
    free(way->sums);
    free(way->gathers);
}

static double share(int64_t part, int64_t all)
{
    return all > 0 ? (double)part / (double)all : 0;
}

static bool computes(const struct way *way)
{
    return share(way->median_idle, way->median_ns) >= COMPUTING;
}

/* In calls or in time: a pure data-parallel step is all once-per-step calls. Or
 * no other computes for as long: a forward pass may be short. */
static bool is_long(const struct way *way, const struct way *most)
{
    return (way->median_calls > FEW_CALLS &&
            LONG_PART * way->median_calls >= most->median_calls) ||
           LONG_PART * way->median_ns >= most->median_ns ||
           (computes(way) && way->median_idle == most->median_idle);
}

/* Calls that follow each other at once, or only after waits, are no pass. */
static bool is_dense(const struct way *way, const struct way *most)
{
    return share(way->median_idle, way->median_ns) < DENSE &&
           share(way->median_idle, most->median_idle) < DENSE;
}

static void add_most(struct way *most, const struct way *way)
{
    if (way->median_calls > most->median_calls)
        most->median_calls = way->median_calls;
    if (way->median_ns > most->median_ns)
        most->median_ns = way->median_ns;
    if (way->median_idle > most->median_idle)
        most->median_idle = way->median_idle;
}

/* Only the long ways are left; where one of them computes, as a forward pass
 * does, not those that do not. Returns their number. */
static int choose_ways(struct way *ways, int n)
{
    struct way most = {.n = 0};
    bool any = false;
    int i, k = 0, left = 0;

    for (i = 0; i < n; i++)
        add_most(&most, &ways[i]);
    for (i = 0; i < n; i++)
        if (is_long(&ways[i], &most)) {
            any |= computes(&ways[i]);
            ways[k++] = ways[i];
        }
    for (i = 0; i < k; i++)
        if (!any || !is_dense(&ways[i], &most))
            ways[left++] = ways[i];
    return left;
}

/* Moves the anchor to where steps end; whether it is a scalar, and nothing else
 * is called once. */
static bool move_to_end(const struct ct_stream *s, struct ct_anchor *anchor)
{
    struct way *ways = ct_alloc((size_t)s->ntokens, sizeof(*ways));
    int i, n = collect_ways(s, anchor, ways), best = CT_NONE;
    bool lone;

    for (i = 0; i < n; i++)
        settle(&ways[i]);
    lone = n == 1 && is_scalar(s, &ways[0]);
    n = choose_ways(ways, n);
    for (i = 0; i < n; i++)
        if (best == CT_NONE || ends_rather(s, &ways[i], &ways[best]))
            best = i;
    if (best != CT_NONE)
        *anchor = ways[best].anchor;
    free(ways);
    return lone;
}

/* Whether there is time for computing before the anchor's calls, and hardly any
 * after: it may be a loss that is summed before the gradients. */
static bool follows_computing(const struct ct_stream *s,
                              const struct ct_anchor *anchor)
{
    const struct ct_places p = ct_places_of(s, anchor);
    const int n = p.n - 2 < MANY_PLACES ? p.n - 2 : MANY_PLACES;
    int64_t before[MANY_PLACES], after[MANY_PLACES], middle;
    int i;

    for (i = 0; i < n; i++) {
        const int at = p.at[p.n - 2 - i];

        before[i] = ct_stream_begin(s, at) - ct_stream_end(s, at - 1);
        after[i] = ct_stream_begin(s, at + 1) - ct_stream_end(s, at);
    }
    if (n <= 0)
        return false;
    middle = ct_nth(before, n, n / 2);
    return middle >= COMPUTING_NS &&
           middle > LONG_PART * ct_nth(after, n, n / 2);
}

/* Whether calls of the kind at first come again until last, once other calls
 * have been in between. */
static bool comes_again(const struct ct_stream *s, int first, int last)
{
    const int kind = s->tokens[s->token_at[first]].kind;
    int o = first;

    while (o <= last && ct_tail_kind(s, o))
        o++;
    for (; o <= last; o++)
        if (s->tokens[s->token_at[o]].kind == kind)
            return true;
    return false;
}

static bool sends(const struct ct_stream *s, int at)
{
    const struct ct_process *p = s->process;

    return s->calls[at] >= 0 &&
           p->classes[p->ops[s->calls[at]].cls].base == CT_OP_SEND;
}

/* Its last gradient is sent to the stage before once others are summed. */
bool ct_tail_kind(const struct ct_stream *s, int at)
{
    const struct ct_kind *kind = ct_kind_at(s, at);

    return kind->gathers || (kind->small && kind->reduces) ||
           (kind->p2p && !kind->varied && sends(s, at));
}

/* Calls after place at, until last, that may belong to the step it is in: other
 * scalars, and parameters that are not gathered again in the next one. Where
 * computing comes first, they do not. */
static int count_tail(const struct ct_stream *s, int at, int last)
{
    int end = at + 1;

    while (end < last && ct_tail_kind(s, end) &&
           ct_stream_begin(s, end) - ct_stream_end(s, end - 1) < COMPUTING_NS &&
           !(ct_kind_at(s, end)->gathers && comes_again(s, end, last)))
        end++;
    return end - at - 1;
}

/* As many as after half of the places at least. */
static void add_tail(const struct ct_stream *s, struct ct_anchor *anchor)
{
    const struct ct_places p = ct_places_of(s, anchor);
    const int n = p.n - 1 < MANY_PLACES ? p.n - 1 : MANY_PLACES;
    int64_t tails[MANY_PLACES];
    int i;

    for (i = 0; i < n; i++) {
        const int at = p.at[p.n - 2 - i];

        tails[i] = count_tail(s, at, p.at[p.n - 1 - i]);
    }
    anchor->after = n > 0 ? (int)ct_nth(tails, n, n / 2) : 0;
}

bool ct_stream_anchor(const struct ct_stream *s, int steps,
                      struct ct_period *period)
{
    if (!ct_stream_period(s, steps, period))
        return false;
    if (move_to_end(s, &period->anchor) &&
        follows_computing(s, &period->anchor) &&
        period->confidence > CT_PLAUSIBLE) {
        period->confidence = CT_PLAUSIBLE;
        period->doubt = "the one scalar in them may begin or end a step";
    }
    if (!sums(s, period->anchor.token) && period->confidence > CT_PLAUSIBLE) {
        period->confidence = CT_PLAUSIBLE;
        period->doubt = "no sum comes once in each, which would end it";
    }
    add_tail(s, &period->anchor);
    if (!period->anchor.after)
        ct_anchor_begin(s, &period->anchor);
    return true;
}
