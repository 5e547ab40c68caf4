/*
 * What happens at a regular distance in the sequence of a process's calls
 * (research/model.md 2.5, the anchor method).
 *
 *   token   what a call is: (communicator, op, count, reduction, peer)
 *   anchor  a token that occurs once per period; a period is what follows an
 *           anchor up to and including the next
 *
 * Candidates are tokens that occur at least three times at a regular distance,
 * rarest first; set-up before and evaluations between do not disturb. One holds
 * if
 *   - most segments between its occurrences end with the same multiset of
 *     calls,
 *   - a segment holds a collective and more than one token: a run of equal
 *     calls, or a ping-pong, is a benchmark, not a step,
 *   - segments cover most of the calls of their sort: a size of a sweep is as
 *     regular as a step, but the other sizes lie outside,
 *   - no more is called between than in them, that is no part of them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/select.h"
#include "trace/steps.h"

#define MIN_OCCURRENCES 3
/* Of distances, equal within TOLERANCE: an evaluation after every second step
 * lengthens half of them, a checkpoint after every third some more. */
#define REGULAR_SHARE 0.25

#define OFTEN 0.3 /* of the segments, that hold the same */

#define TOLERANCE 0.02    /* of the distance, at least one call */
#define COMMON_SHARE 0.6  /* of all calls: a token too common */
#define COVERED_SHARE 0.6 /* of the calls that are like those of a step */
#define QUARTERS 4
#define MOST_LEVELS 16
#define NEARLY_ALL 0.95
#define MOST_OTHERS 8 /* tokens of one period to compare */

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

/* The shortest distance, and those that a quarter, half and three quarters are
 * not longer than. */
static void usual_distances(struct ct_places p, int64_t usual[QUARTERS])
{
    int n = p.n - 1, q, i;
    int64_t *distances = ct_alloc((size_t)n, sizeof(*distances));

    for (i = 0; i < n; i++)
        distances[i] = p.at[i + 1] - p.at[i];
    for (q = 0; q < QUARTERS; q++)
        usual[q] = ct_nth(distances, n, (int64_t)n * q / QUARTERS);
    free(distances);
}

/* Most distances are like this one, once those before the first that is are
 * skipped: a token of the steps may also occur during set-up. */
bool ct_anchor_has(const struct ct_stream *s, struct ct_anchor *anchor,
                   int64_t distance)
{
    struct ct_places p;
    int i, near = 0;

    anchor->distance = distance;
    anchor->skip = 0;
    p = ct_places_of(s, anchor);
    while (p.n > 1 && !is_near(p.at[1] - p.at[0], distance)) {
        anchor->skip++;
        p = ct_places_of(s, anchor);
    }
    for (i = 0; i < p.n - 1; i++)
        near += is_near(p.at[i + 1] - p.at[i], distance);
    return p.n >= MIN_OCCURRENCES && near >= REGULAR_SHARE * (p.n - 1);
}

/* The shortest distance that will do: what comes between steps makes longer
 * ones. Set-up is early, so that later ones tell. */
bool ct_anchor_regular(const struct ct_stream *s, struct ct_anchor *anchor)
{
    struct ct_places later = ct_places_of(s, anchor);
    int64_t usual[QUARTERS];
    int q;

    later.at += later.n / 2 - 1;
    later.n -= later.n / 2 - 1;
    usual_distances(later, usual);
    for (q = 0; q < QUARTERS; q++)
        if (ct_anchor_has(s, anchor, usual[q]))
            return true;
    return false;
}

static uint64_t between(const uint64_t *hashes, int first, int last)
{
    return hashes[last + 1] - hashes[first];
}

struct segment {
    uint64_t hash;
    int length;
    int n; /* that hold the same */
};

static int by_hash(const void *left, const void *right)
{
    const struct segment *a = left, *b = right;

    return (a->hash > b->hash) - (a->hash < b->hash);
}

static int at_most(int n, int most)
{
    return n < most ? n : most;
}

/* The rarer counts only where neither is frequent. */
static bool is_better(const struct segment *a, const struct segment *b,
                      int often)
{
    if (at_most(a->n, often) != at_most(b->n, often))
        return a->n > b->n;
    return a->length != b->length ? a->length < b->length : a->n > b->n;
}

/* The multiset that most segments hold that are as long as usual. A checkpoint
 * after every other step makes it hardly longer: of those that come often the
 * shortest is without it. */
static struct segment usual_segment(const struct ct_stream *s,
                                    struct ct_places p, int64_t distance,
                                    int *n_p)
{
    struct segment *segments = ct_alloc((size_t)p.n, sizeof(*segments));
    struct segment best = {.n = 0};
    int i, n = 0, often;

    for (i = 0; i + 1 < p.n; i++)
        if (is_near(p.at[i + 1] - p.at[i], distance))
            segments[n++] =
                (struct segment){between(s->hashes, p.at[i] + 1, p.at[i + 1]),
                                 p.at[i + 1] - p.at[i], 1};
    qsort(segments, (size_t)n, sizeof(*segments), by_hash);
    /* Lost records shorten a segment, too. */
    often = s->lossy ? n : (int)ceil(OFTEN * n);
    for (i = 0; i < n; i++) {
        struct segment *segment = &segments[i];

        if (i && segment->hash == segment[-1].hash)
            segment->n += segment[-1].n;
        if (is_better(segment, &best, often))
            best = *segment;
    }
    free(segments);
    *n_p = n;
    return best;
}

/* Whether the segment after place at, up to last, is a usual one but for calls
 * before it; these may come after what ends the step before. */
static bool holds_usual(const struct ct_stream *s, const uint64_t *hashes,
                        uint64_t usual, int length, int at, int last)
{
    int tail;

    for (tail = 0; tail < length; tail++) {
        const int start = last + 1 + tail - length;

        if (start <= at + tail)
            return false;
        if (between(hashes, at + 1, at + tail) + between(hashes, start, last) ==
            usual)
            return true;
        if (!ct_tail_kind(s, at + tail + 1))
            return false;
    }
    return false;
}

static int count_usual(const struct ct_stream *s,
                       const struct ct_anchor *anchor)
{
    const struct ct_places p = ct_places_of(s, anchor);
    int i, n = 0;

    for (i = 0; i + 1 < p.n; i++)
        n += holds_usual(s, s->hashes, anchor->usual, anchor->length, p.at[i],
                         p.at[i + 1]);
    return n;
}

bool ct_anchor_measure(const struct ct_stream *s, struct ct_anchor *anchor)
{
    const struct ct_places p = ct_places_of(s, anchor);
    int i = 0, n, alike, left;
    const struct segment usual = usual_segment(s, p, anchor->distance, &n);

    if (!usual.n)
        return false;
    /* One of the middle: the first may be slow. */
    for (left = usual.n / 2;; i++)
        if (between(s->hashes, p.at[i] + 1, p.at[i + 1]) == usual.hash &&
            left-- == 0)
            break;
    anchor->at = p.at[i + 1];
    anchor->length = usual.length;
    anchor->usual = usual.hash;
    anchor->usual_kinds = between(s->kind_hashes, p.at[i] + 1, p.at[i + 1]);
    alike = count_usual(s, anchor);
    return alike > 1 && 2 * alike >= n;
}

/* Segments that end with a usual step, its messages of whatever size: an
 * evaluation may stand before it, the last micro-batch be smaller. */
static int usual_ends(const struct ct_stream *s, const struct ct_anchor *anchor)
{
    struct ct_places p = ct_places_of(s, anchor);
    int *usual =
        ct_segment_kinds(s, anchor->at + 1 - anchor->length, anchor->at);
    int i, n = 0;

    for (i = 0; i + 1 < p.n; i++) {
        const int last = p.at[i + 1], start = last + 1 - anchor->length;

        n += holds_usual(s, s->kind_hashes, anchor->usual_kinds, anchor->length,
                         p.at[i], last) ||
             ct_segment_alike(s, anchor, usual, start, last) ||
             ct_segment_alike(s, anchor, usual, p.at[i] + 1, last);
    }
    free(usual);
    return n;
}

/* Marks the sorts of calls in the usual segment; whether it can be a step at
 * all. */
static bool look_into(const struct ct_stream *s, const struct ct_anchor *anchor,
                      bool *sorts)
{
    bool collective = false, varied = false;
    int o;

    for (o = anchor->at + 1 - anchor->length; o <= anchor->at; o++) {
        collective |= ct_kind_at(s, o)->collective;
        varied |= s->token_at[o] != anchor->token;
        sorts[s->tokens[s->token_at[o]].sort] = true;
    }
    return collective && varied;
}

/* Share of the calls of the marked sorts that lies between the first step of
 * this anchor and the last; *inside_p: share of these that is in steps. */
static double covered(const struct ct_stream *s, const struct ct_anchor *anchor,
                      const bool *sorts, double *inside_p)
{
    struct ct_places p = ct_places_of(s, anchor);
    int first = p.at[0] + 1 - anchor->length, last = p.at[p.n - 1];
    int o, alike = 0, inside = 0;

    /* There may be many that lie in a small part of a benchmark. */
    if (last + 1 - first <
        COVERED_SHARE * s->sort_calls[s->tokens[anchor->token].sort])
        return 0;
    for (o = 0; o < s->n; o++)
        if (sorts[s->tokens[s->token_at[o]].sort]) {
            alike++;
            inside += o >= first && o <= last;
        }
    *inside_p = inside ? (double)p.n * anchor->length / inside : 0;
    return alike ? (double)inside / alike : 0;
}

/* Whether more is outside of the steps, of messages of other sorts, than in
 * them: what is between steps are forward passes and checkpoints. */
static bool leaves_most(const struct ct_stream *s,
                        const struct ct_anchor *anchor, const bool *sorts)
{
    const struct ct_places p = ct_places_of(s, anchor);
    int o, outside = 0;

    for (o = p.at[0] + 1; o < p.at[p.n - 1]; o++) {
        const struct ct_kind *kind = ct_kind_at(s, o);

        outside += !sorts[s->tokens[s->token_at[o]].sort] &&
                   (kind->p2p || (kind->sums && !kind->small));
    }
    return outside / (p.n - 1) > anchor->length;
}

/* Whether a regular token can be the anchor; sorts is for its use. */
static bool holds(const struct ct_stream *s, struct ct_level *level,
                  bool *sorts)
{
    if (!ct_anchor_measure(s, &level->anchor))
        return false;
    level->equal = (double)usual_ends(s, &level->anchor) / (level->n - 1);
    if (level->equal < CT_EQUAL_SHARE)
        return false;
    memset(sorts, 0, (size_t)s->nsorts * sizeof(*sorts));
    return look_into(s, &level->anchor, sorts) &&
           covered(s, &level->anchor, sorts, &level->inside) >= COVERED_SHARE &&
           !leaves_most(s, &level->anchor, sorts);
}

static int rarest_first(const void *left, const void *right)
{
    const struct ct_level *a = left, *b = right;

    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    return a->anchor.token < b->anchor.token ? -1 : 1;
}

/* Tokens that occur at a regular distance. More than every second call is no
 * end of a step. */
static struct ct_level *find_candidates(const struct ct_stream *s, int *n_p)
{
    struct ct_level *found = ct_alloc((size_t)s->ntokens, sizeof(*found));
    int t;

    *n_p = 0;
    for (t = 0; t < s->ntokens; t++) {
        struct ct_level *c = &found[*n_p];

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

static bool is_wanted(int n, int steps)
{
    return !steps || (n >= steps && n <= steps + steps / 4 + 2);
}

/* Whether another token of the same period is there. */
static bool is_known(const struct ct_levels *levels, const struct ct_level *c)
{
    const struct ct_level *last;

    if (!levels->n)
        return false;
    last = &levels->levels[levels->n - 1];
    return c->n <= last->n + 1 &&
           is_near(c->anchor.distance, last->anchor.distance);
}

static void describe(const struct ct_stream *s, struct ct_level *level)
{
    const struct ct_anchor *anchor = &level->anchor;
    bool *seen = ct_alloc((size_t)s->ntokens, sizeof(*seen));
    int o;

    level->calls = ct_alloc((size_t)s->nkinds, sizeof(*level->calls));
    for (o = anchor->at + 1 - anchor->length; o <= anchor->at; o++) {
        const struct ct_kind *kind = ct_kind_at(s, o);

        level->calls[kind - s->kinds]++;
        level->sizes += kind->sums && !kind->small && !seen[s->token_at[o]];
        level->scatters |= kind->scatters;
        seen[s->token_at[o]] = true;
    }
    free(seen);
}

/* Of two tokens of one period the better one: its segments are more alike, or
 * as much, and more. */
static bool is_better_level(const struct ct_level *a, const struct ct_level *b)
{
    return a->equal > b->equal || (a->n > b->n && a->equal >= b->equal);
}

static void add_level(const struct ct_stream *s, struct ct_level *c,
                      bool *sorts, struct ct_levels *levels)
{
    struct ct_level *last = &levels->levels[levels->n - 1];
    const bool known = is_known(levels, c);

    if (known && ((last->equal > NEARLY_ALL && c->n <= last->n) ||
                  ++last->others > MOST_OTHERS))
        return;
    if (!holds(s, c, sorts) || (known && !is_better_level(c, last)))
        return;
    if (known) {
        c->others = last->others;
        free(last->calls);
        *last = *c;
    } else {
        last = &levels->levels[levels->n++];
        *last = *c;
    }
    describe(s, last);
}

void ct_levels_find(const struct ct_stream *s, int steps,
                    struct ct_levels *levels)
{
    bool *sorts = ct_alloc((size_t)s->nsorts, sizeof(*sorts));
    struct ct_level *candidates;
    int i, n;

    *levels = (struct ct_levels){
        .levels = ct_alloc(MOST_LEVELS, sizeof(*levels->levels))};
    candidates = find_candidates(s, &n);
    for (i = 0; i < n && levels->n < MOST_LEVELS; i++)
        if (is_wanted(candidates[i].n, steps))
            add_level(s, &candidates[i], sorts, levels);
    free(candidates);
    free(sorts);
}

void ct_levels_release(struct ct_levels *levels)
{
    int i;

    for (i = 0; i < levels->n; i++)
        free(levels->levels[i].calls);
    free(levels->levels);
}
