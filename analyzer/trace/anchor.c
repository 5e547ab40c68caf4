/*
 * Of all tokens that occur once per step, the one that ends it: a collective,
 * the one before the longest way to the next of them.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/select.h"
#include "trace/steps.h"

/* Way from each occurrence of a once-per-step token to the next of any. */
struct way {
    int token, n;
    int64_t *calls, *ns;
    int64_t median_calls, median_ns;
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
            t = ct_token_at(s, o);
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

static void begin_ways(const struct ct_stream *s, const bool *once,
                       struct way *ways, int *way_of, int *n_p)
{
    int t;

    for (t = 0; t < s->ntokens; t++) {
        way_of[t] = CT_NONE;
        if (!once[t])
            continue;
        ways[*n_p] = (struct way){
            .token = t,
            .calls = ct_alloc((size_t)s->tokens[t].n, sizeof(int64_t)),
            .ns = ct_alloc((size_t)s->tokens[t].n, sizeof(int64_t))};
        way_of[t] = (*n_p)++;
    }
}

static int collect_ways(const struct ct_stream *s,
                        const struct ct_anchor *anchor, struct way *ways)
{
    struct ct_places p = ct_places_of(s, anchor);
    bool *once = ct_alloc((size_t)s->ntokens, sizeof(*once));
    int *way_of = ct_alloc((size_t)s->ntokens, sizeof(*way_of));
    int o, last = p.at[0], n = 0;

    find_once(s, anchor, once);
    begin_ways(s, once, ways, way_of, &n);
    for (o = p.at[0] + 1; o <= p.at[p.n - 1]; o++) {
        struct way *from = &ways[way_of[ct_token_at(s, last)]];

        if (way_of[ct_token_at(s, o)] == CT_NONE)
            continue;
        from->calls[from->n] = o - last;
        from->ns[from->n++] = ct_stream_begin(s, o) - ct_stream_end(s, last);
        last = o;
    }
    free(way_of);
    free(once);
    return n;
}

/* Whether a step rather ends with a than with b. A step ends with a collective
 * (norm, parameters), not inside its pipeline. Then more calls on the way
 * count; where they are about as many (a pure data-parallel step is all
 * once-per-step calls), the longer pause. */
static bool ends_rather(const struct ct_stream *s, const struct way *a,
                        const struct way *b)
{
    int64_t difference = a->median_calls - b->median_calls;

    if (s->tokens[a->token].collective != s->tokens[b->token].collective)
        return s->tokens[a->token].collective;
    if (llabs(difference) > 2 + b->median_calls / 5)
        return difference > 0;
    return a->median_ns > b->median_ns;
}

static void move_to_end(const struct ct_stream *s, struct ct_anchor *anchor)
{
    struct way *ways = ct_alloc((size_t)s->ntokens, sizeof(*ways));
    int i, n = collect_ways(s, anchor, ways), best = 0;

    for (i = 0; i < n; i++) {
        struct way *way = &ways[i];

        way->median_calls = way->n ? ct_nth(way->calls, way->n, way->n / 2) : 0;
        way->median_ns = way->n ? ct_nth(way->ns, way->n, way->n / 2) : 0;
        if (ends_rather(s, way, &ways[best]))
            best = i;
        free(way->calls);
        free(way->ns);
    }
    /* The period is known to hold, and steps cut elsewhere are made of the
     * same calls. */
    if (ways[best].token != anchor->token) {
        struct ct_anchor moved = {.token = ways[best].token};
        int equal;

        if (ct_anchor_regular(s, &moved)) {
            ct_anchor_measure(s, &moved, &equal);
            *anchor = moved;
        }
    }
    free(ways);
}

bool ct_stream_anchor(const struct ct_stream *s, int steps,
                      struct ct_anchor *anchor)
{
    if (!ct_stream_period(s, steps, anchor))
        return false;
    move_to_end(s, anchor);
    return true;
}
