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
#include "trace/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/intern.h"
#include "trace/parallel.h"
#include "trace/stages.h"

#define MIN_OCCURRENCES 3
#define REGULAR_SHARE                                                \
    0.6                  /* of distances, equal within TOLERANCE: an \
                            evaluation now and then lengthens some */
#define TOLERANCE 0.02   /* of the distance, at least one call */
#define COMMON_SHARE 0.6 /* of all calls: a token too common */
#define FEW_BYTES 64
#define EQUAL_SHARE 0.8   /* of segments with the usual tokens */
#define COVERED_SHARE 0.6 /* of the calls that are like those of a step */

static int by_int64(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

static int by_hash(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

static int token_at(const struct ct_stream *s, int op)
{
    return s->token_of[s->process->ops[op].cls];
}

/* Calls of one sort differ only in size, peer or reduction; but a handful of
 * bytes (norm, loss, barrier) is another sort than a message. */
static int sort_of(struct ct_intern *sorts, const struct ct_op_class_row *class)
{
    int key[3] = {class->comm, (int)class->base, class->bytes <= FEW_BYTES};

    return ct_intern_add(sorts, key, sizeof(key));
}

static void name_tokens(struct ct_stream *s)
{
    const struct ct_process *p = s->process;
    struct ct_intern tokens = {0}, sorts = {0};
    int c;

    s->token_of = ct_alloc((size_t)p->nclasses, sizeof(*s->token_of));
    s->tokens = ct_alloc((size_t)p->nclasses, sizeof(*s->tokens));
    for (c = 0; c < p->nclasses; c++) {
        const struct ct_op_class_row *class = &p->classes[c];
        uint64_t key[5] = {(uint64_t) class->comm, (uint64_t) class->base,
                           (uint64_t) class->redop, (uint64_t) class->peer,
                           class->count};
        int token = ct_intern_add(&tokens, key, sizeof(key));
        enum ct_op_class cls = ct_op_infos[class->kind].cls;

        s->token_of[c] = token;
        s->tokens[token].sort = sort_of(&sorts, class);
        s->tokens[token].collective = cls == CT_COLL || cls == CT_ROOTED;
        s->tokens[token].hash = ct_mix64((uint64_t)token + 1);
    }
    s->ntokens = tokens.n;
    s->nsorts = sorts.n;
    ct_intern_release(&tokens);
    ct_intern_release(&sorts);
}

/* Positions of each token (counting sort), and for any two positions the hash
 * of the multiset of tokens between them. */
static void index_positions(struct ct_stream *s)
{
    int n = s->process->nops, o, t;

    s->positions = ct_alloc((size_t)n, sizeof(*s->positions));
    s->hashes = ct_alloc((size_t)n + 1, sizeof(*s->hashes));
    for (o = 0; o < n; o++) {
        struct ct_token *token = &s->tokens[token_at(s, o)];

        token->n++;
        s->hashes[o + 1] = s->hashes[o] + token->hash;
    }
    for (t = 1; t < s->ntokens; t++)
        s->tokens[t].first = s->tokens[t - 1].first + s->tokens[t - 1].n;
    for (t = 0; t < s->ntokens; t++)
        s->tokens[t].n = 0;
    for (o = 0; o < n; o++) {
        struct ct_token *token = &s->tokens[token_at(s, o)];

        s->positions[token->first + token->n++] = o;
    }
}

void ct_stream_init(struct ct_stream *s, struct ct_process *process)
{
    *s = (struct ct_stream){.process = process};
    name_tokens(s);
    index_positions(s);
}

void ct_stream_release(struct ct_stream *s)
{
    free(s->token_of);
    free(s->tokens);
    free(s->positions);
    free(s->hashes);
}

/* Where an anchor stands: at[0] .. at[n - 1]. */
struct places {
    const int *at;
    int n;
};

static struct places places_of(const struct ct_stream *s,
                               const struct ct_anchor *anchor)
{
    const struct ct_token *token = &s->tokens[anchor->token];

    return (struct places){s->positions + token->first + anchor->skip,
                           token->n - anchor->skip};
}

static int64_t median(int64_t *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), by_int64);
    return values[n / 2];
}

static bool is_near(int64_t distance, int64_t usual)
{
    double slack = fmax(1, TOLERANCE * (double)usual);

    return fabs((double)(distance - usual)) <= slack;
}

/* The value that would stand at index k if values were sorted; reorders. */
static int64_t nth(int64_t *values, int n, int k)
{
    int low = 0, high = n - 1;

    while (low < high) {
        int64_t pivot = values[low + (high - low) / 2];
        int i = low, j = high;

        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i <= j) {
                int64_t swap = values[i];

                values[i++] = values[j];
                values[j--] = swap;
            }
        }
        if (k > j && k < i)
            break;
        if (k <= j)
            high = j;
        else
            low = i;
    }
    return values[k];
}

/* The distance that most are near to, if any: it is one of these quantiles. Of
 * as many, the shortest: what comes between steps makes longer ones. */
static int64_t usual_distance(struct places p)
{
    int n = p.n - 1, best = 0, q, i;
    int64_t *distances = ct_alloc((size_t)n, sizeof(*distances)), usual = 0;

    for (i = 0; i < n; i++)
        distances[i] = p.at[i + 1] - p.at[i];
    for (q = 1; q <= 3; q++) {
        int64_t distance = nth(distances, n, (int)((int64_t)n * q / 4));
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
static bool is_regular(const struct ct_stream *s, struct ct_anchor *anchor)
{
    struct places p = places_of(s, anchor), later = p;
    int i, near = 0;

    later.at += p.n / 2 - 1;
    later.n -= p.n / 2 - 1;
    anchor->distance = usual_distance(later);
    while (p.n > 1 && !is_near(p.at[1] - p.at[0], anchor->distance)) {
        anchor->skip++;
        p = places_of(s, anchor);
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
static int usual_segment(const struct ct_stream *s, struct places p,
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
static int usual_at(const struct ct_stream *s, struct places p, uint64_t usual)
{
    int i = 0;

    while (segment_hash(s, p.at[i] + 1, p.at[i + 1]) != usual)
        i++;
    return i;
}

static void measure_usual(const struct ct_stream *s, struct ct_anchor *anchor,
                          int *equal_p)
{
    struct places p = places_of(s, anchor);
    int i;

    *equal_p = usual_segment(s, p, &anchor->usual);
    i = usual_at(s, p, anchor->usual);
    anchor->length = p.at[i + 1] - p.at[i];
}

/* Segments that end with a usual step: an evaluation may stand before it. */
static int usual_ends(const struct ct_stream *s, const struct ct_anchor *anchor)
{
    struct places p = places_of(s, anchor);
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
    struct places p = places_of(s, anchor);
    bool collective = false, varied = false;
    int i = usual_at(s, p, anchor->usual), o;

    for (o = p.at[i] + 1; o <= p.at[i + 1]; o++) {
        const struct ct_token *t = &s->tokens[token_at(s, o)];

        collective |= t->collective;
        varied |= token_at(s, o) != anchor->token;
        sorts[t->sort] = true;
    }
    return collective && varied;
}

/* Share of the calls of the marked sorts that lies in steps of this anchor. */
static double covered(const struct ct_stream *s, const struct ct_anchor *anchor,
                      const bool *sorts)
{
    struct places p = places_of(s, anchor);
    int first = p.at[0] + 1 - anchor->length, last = p.at[p.n - 1];
    int o, alike = 0, inside = 0;

    for (o = 0; o < s->process->nops; o++)
        if (sorts[s->tokens[token_at(s, o)].sort]) {
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
    int equal, n = places_of(s, anchor).n - 1;

    measure_usual(s, anchor, &equal);
    if (2 * equal < n || usual_ends(s, anchor) < EQUAL_SHARE * n)
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
            s->tokens[t].n > COMMON_SHARE * s->process->nops)
            continue;
        c->anchor = (struct ct_anchor){.token = t};
        if (!is_regular(s, &c->anchor) || c->anchor.distance == 1)
            continue;
        c->n = places_of(s, &c->anchor).n;
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
static bool find_period(const struct ct_stream *s, int steps,
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

int64_t ct_stream_begin(const struct ct_stream *s, int op)
{
    const struct ct_op_row *row = &s->process->ops[op];

    return s->on_gpu && row->start_ns != CT_NO_TIME ? row->start_ns
                                                    : row->enter_ns;
}

int64_t ct_stream_end(const struct ct_stream *s, int op)
{
    const struct ct_op_row *row = &s->process->ops[op];

    if (s->on_gpu && row->start_ns != CT_NO_TIME && row->gpu_ns != CT_NO_TIME)
        return row->start_ns + row->gpu_ns;
    return row->enter_ns + (row->host_ns == CT_NO_TIME ? 0 : row->host_ns);
}

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
    struct places p = places_of(s, anchor);
    int *steps = ct_alloc((size_t)s->ntokens, sizeof(*steps));
    int *seen = ct_alloc((size_t)s->ntokens, sizeof(*seen));
    int *last = ct_alloc((size_t)s->ntokens, sizeof(*last));
    int i, o, t;

    for (i = 1; i < p.n; i++)
        for (o = p.at[i - 1] + 1; o <= p.at[i]; o++) {
            t = token_at(s, o);
            if (last[t] != i) {
                last[t] = i;
                seen[t] = 0;
            }
            steps[t] += ++seen[t] == 1 ? 1 : seen[t] == 2 ? -1 : 0;
        }
    for (t = 0; t < s->ntokens; t++)
        once[t] = steps[t] >= EQUAL_SHARE * (p.n - 1);
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
    struct places p = places_of(s, anchor);
    bool *once = ct_alloc((size_t)s->ntokens, sizeof(*once));
    int *way_of = ct_alloc((size_t)s->ntokens, sizeof(*way_of));
    int o, last = p.at[0], n = 0;

    find_once(s, anchor, once);
    begin_ways(s, once, ways, way_of, &n);
    for (o = p.at[0] + 1; o <= p.at[p.n - 1]; o++) {
        struct way *from = &ways[way_of[token_at(s, last)]];

        if (way_of[token_at(s, o)] == CT_NONE)
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

        way->median_calls = way->n ? median(way->calls, way->n) : 0;
        way->median_ns = way->n ? median(way->ns, way->n) : 0;
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

        if (is_regular(s, &moved)) {
            measure_usual(s, &moved, &equal);
            *anchor = moved;
        }
    }
    free(ways);
}

bool ct_stream_anchor(const struct ct_stream *s, int steps,
                      struct ct_anchor *anchor)
{
    if (!find_period(s, steps, anchor))
        return false;
    move_to_end(s, anchor);
    return true;
}
