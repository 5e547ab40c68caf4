/*
 * Where training steps begin and end, per process, from the sequence of its
 * calls alone (research/model.md 2.5, the anchor method).
 *
 *   token   what a call is: (communicator, op, count, reduction, peer)
 *   anchor  a token that occurs once per step; a step is what follows an
 *           anchor up to and including the next
 *
 * Candidates are tokens that occur at least three times at a regular distance,
 * rarest first; set-up before and evaluations between do not disturb. The first
 * that holds is taken:
 *   - most segments between its occurrences end with the same multiset of
 *     tokens,
 *   - a segment holds a collective and more than one token: a run of equal
 *     calls, or a ping-pong, is a benchmark, not a step,
 *   - segments cover most of the calls of their sort: a size of a sweep is as
 *     regular as a step, but the other sizes lie outside.
 * Of all tokens that occur once per step, the last of the step is the anchor:
 * a collective, the one before the longest way to the next of them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/select.h"
#include "trace/steps.h"

#define MIN_OCCURRENCES 3
/* Of distances, equal within TOLERANCE: an evaluation after every second step
 * lengthens half of them. */
#define REGULAR_SHARE 0.5

#define TOLERANCE 0.02    /* of the distance, at least one call */
#define COMMON_SHARE 0.6  /* of all calls: a token too common */
#define COVERED_SHARE 0.6 /* of the calls that are like those of a step */

static int by_hash(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

struct ct_places ct_places_of(const struct ct_stream *s,
                              const struct ct_anchor *anchor)
{
    const struct ct_token *token = &s->tokens[anchor->token];

    return (struct ct_places){s->positions + token->first + anchor->skip,
                              token->n - anchor->skip};
}

static bool is_near(int64_t distance, int64_t usual)
{
    double slack = fmax(1, TOLERANCE * (double)usual);

    return fabs((double)(distance - usual)) <= slack;
}

/* The distance that most are near to, if any: it is one of these quantiles. Of
 * as many, the shortest: what comes between steps makes longer ones. */
static int64_t usual_distance(struct ct_places p)
{
    int n = p.n - 1, best = 0, q, i;
    int64_t *distances = ct_alloc((size_t)n, sizeof(*distances)), usual = 0;

    for (i = 0; i < n; i++)
        distances[i] = p.at[i + 1] - p.at[i];
    for (q = 1; q <= 3; q++) {
        int64_t distance = ct_nth(distances, n, (int64_t)n * q / 4);
        int near = 0;

        for (i = 0; i < n; i++)
            near += is_near(distances[i], distance);
        if (near > best) {
            best = near;
            usual = distance;
        }
    }
    free(distances);
    return usual;
}

/* Most distances are alike, once those before the first that is are skipped:
 * a token of the steps may also occur during set-up. */
bool ct_anchor_regular(const struct ct_stream *s, struct ct_anchor *anchor)
{
    struct ct_places p = ct_places_of(s, anchor), later = p;
    int i, near = 0;

    later.at += p.n / 2 - 1;
    later.n -= p.n / 2 - 1;
    anchor->distance = usual_distance(later);
    while (p.n > 1 && !is_near(p.at[1] - p.at[0], anchor->distance)) {
        anchor->skip++;
        p = ct_places_of(s, anchor);
    }
    for (i = 0; i < p.n - 1; i++)
        near += is_near(p.at[i + 1] - p.at[i], anchor->distance);
    return p.n >= MIN_OCCURRENCES && near >= REGULAR_SHARE * (p.n - 1);
}

static uint64_t segment_hash(const struct ct_stream *s, int first, int last)
{
    return s->hashes[last + 1] - s->hashes[first];
}

/* The multiset that most segments between places hold, and how many do. */
static int usual_segment(const struct ct_stream *s, struct ct_places p,
                         uint64_t *hash_p)
{
    int n = p.n - 1, i, run = 0, best = 0;
    uint64_t *hashes = ct_alloc((size_t)n, sizeof(*hashes));

    for (i = 0; i < n; i++)
        hashes[i] = segment_hash(s, p.at[i] + 1, p.at[i + 1]);
    qsort(hashes, (size_t)n, sizeof(*hashes), by_hash);
    for (i = 0; i < n; i++) {
        run = i && hashes[i] == hashes[i - 1] ? run + 1 : 1;
        if (run > best) {
            best = run;
            *hash_p = hashes[i];
        }
    }
    free(hashes);
    return best;
}

/* Index in places of the first segment that is the usual one. */
static int usual_at(const struct ct_stream *s, struct ct_places p,
                    uint64_t usual)
{
    int i = 0;

    while (segment_hash(s, p.at[i] + 1, p.at[i + 1]) != usual)
        i++;
    return i;
}

void ct_anchor_measure(const struct ct_stream *s, struct ct_anchor *anchor,
                       int *equal_p)
{
    struct ct_places p = ct_places_of(s, anchor);
    int i;

    *equal_p = usual_segment(s, p, &anchor->usual);
    i = usual_at(s, p, anchor->usual);
    anchor->length = p.at[i + 1] - p.at[i];
}

/* Segments that end with a usual step: an evaluation may stand before it. */
static int usual_ends(const struct ct_stream *s, const struct ct_anchor *anchor)
{
    struct ct_places p = ct_places_of(s, anchor);
    int i, n = 0;

    for (i = 0; i + 1 < p.n; i++) {
        int first = p.at[i + 1] + 1 - anchor->length;

        n += first > p.at[i] &&
             segment_hash(s, first, p.at[i + 1]) == anchor->usual;
    }
    return n;
}

/* Marks the sorts of calls in the usual segment; whether it can be a step at
 * all. */
static bool look_into(const struct ct_stream *s, const struct ct_anchor *anchor,
                      bool *sorts)
{
    struct ct_places p = ct_places_of(s, anchor);
    bool collective = false, varied = false;
    int i = usual_at(s, p, anchor->usual), o;

    for (o = p.at[i] + 1; o <= p.at[i + 1]; o++) {
        const struct ct_token *t = &s->tokens[ct_token_at(s, o)];

        collective |= t->collective;
        varied |= ct_token_at(s, o) != anchor->token;
        sorts[t->sort] = true;
    }
    return collective && varied;
}

/* Share of the calls of the marked sorts that lies in steps of this anchor. */
static double covered(const struct ct_stream *s, const struct ct_anchor *anchor,
                      const bool *sorts)
{
    struct ct_places p = ct_places_of(s, anchor);
    int first = p.at[0] + 1 - anchor->length, last = p.at[p.n - 1];
    int o, alike = 0, inside = 0;

    for (o = 0; o < s->n; o++)
        if (sorts[s->tokens[ct_token_at(s, o)].sort]) {
            alike++;
            inside += o >= first && o <= last;
        }
    return alike ? (double)inside / alike : 0;
}

/* Whether a regular token can be the anchor; sorts gets the sorts of a step.
 */
static bool holds(const struct ct_stream *s, struct ct_anchor *anchor,
                  bool *sorts)
{
    int equal, n = ct_places_of(s, anchor).n - 1;

    ct_anchor_measure(s, anchor, &equal);
    if (2 * equal < n || usual_ends(s, anchor) < CT_EQUAL_SHARE * n)
        return false;
    memset(sorts, 0, (size_t)s->nsorts * sizeof(*sorts));
    return look_into(s, anchor, sorts) &&
           covered(s, anchor, sorts) >= COVERED_SHARE;
}

struct candidate {
    int n; /* occurrences in steps */
    struct ct_anchor anchor;
};

static int rarest_first(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;

    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    return a->anchor.token < b->anchor.token ? -1 : 1;
}

/* Tokens that occur at a regular distance. More than every second call is no
 * end of a step. */
static struct candidate *find_candidates(const struct ct_stream *s, int *n_p)
{
    struct candidate *found = ct_alloc((size_t)s->ntokens, sizeof(*found));
    int t;

    *n_p = 0;
    for (t = 0; t < s->ntokens; t++) {
        struct candidate *c = &found[*n_p];

        if (s->tokens[t].n < MIN_OCCURRENCES ||
            s->tokens[t].n > COMMON_SHARE * s->n)
            continue;
        c->anchor = (struct ct_anchor){.token = t};
        if (!ct_anchor_regular(s, &c->anchor) || c->anchor.distance == 1)
            continue;
        c->n = ct_places_of(s, &c->anchor).n;
        ++*n_p;
    }
    qsort(found, (size_t)*n_p, sizeof(*found), rarest_first);
    return found;
}

static bool has_all(const bool *sorts, const bool *wanted, int n)
{
    int i;

    for (i = 0; i < n; i++)
        if (wanted[i] && !sorts[i])
            return false;
    return true;
}

static bool is_wanted(int n, int steps)
{
    return !steps || (n >= steps && n <= steps + steps / 4 + 2);
}

/* The rarest token that holds; if steps is not 0, one that gives about that
 * many steps.
 * What happens every few steps (an evaluation, a checkpoint) is as regular as
 * a step, and rarer. The step inside is known by holding the same sorts of
 * calls, at least twice as often; a micro-batch lacks some. */
bool ct_stream_period(const struct ct_stream *s, int steps,
                      struct ct_anchor *anchor)
{
    bool *sorts = ct_alloc((size_t)s->nsorts, sizeof(*sorts));
    bool *wanted = ct_alloc((size_t)s->nsorts, sizeof(*wanted));
    struct candidate *candidates;
    int i, n, fewest = 0;

    candidates = find_candidates(s, &n);
    for (i = 0; i < n; i++) {
        struct candidate *c = &candidates[i];

        if (!is_wanted(c->n, steps) || c->n < fewest ||
            !holds(s, &c->anchor, sorts) || !has_all(sorts, wanted, s->nsorts))
            continue;
        *anchor = c->anchor;
        memcpy(wanted, sorts, (size_t)s->nsorts * sizeof(*sorts));
        fewest = 2 * c->n - 1;
    }
    free(candidates);
    free(sorts);
    free(wanted);
    return fewest > 0;
}
