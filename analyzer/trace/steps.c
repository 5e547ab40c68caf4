/*
 * Where training steps begin and end, per process, from the sequence of its
 * calls alone (research/model.md 2.5, the anchor method).
 *
 *   token   what a call is: (communicator, op, count, reduction, peer)
 *   anchor  a token that occurs once per step; a step is what follows an
 *           anchor up to and including the next
 *
 * Candidates are tokens that occur at least three times at a regular distance,
 * rarest first. The first that holds is taken:
 *   - most segments between its occurrences hold the same multiset of tokens,
 *   - a segment holds a collective and more than one token: a run of equal
 *     calls, or a ping-pong, is a benchmark, not a step,
 *   - segments cover most of the calls of their sort: a size of a sweep is as
 *     regular as a step, but the other sizes lie outside.
 * Of all tokens that occur once per step, the last of the step is the anchor:
 * the one before the longest way to the next of them.
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
#define REGULAR_SHARE 0.8 /* of distances, equal within TOLERANCE */
#define TOLERANCE 0.02    /* of the distance, at least one call */
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
        s->tokens[token].sort = ct_intern_add(&sorts, key, 2 * sizeof(*key));
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

static const int *positions_of(const struct ct_stream *s, int token)
{
    return s->positions + s->tokens[token].first;
}

static int64_t median(int64_t *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), by_int64);
    return values[n / 2];
}

/* Median distance between occurrences; 0: they are not regular. */
static int64_t regular_distance(const struct ct_stream *s, int token)
{
    const int *at = positions_of(s, token);
    int n = s->tokens[token].n - 1, i, near = 0;
    int64_t *distances = ct_alloc((size_t)n, sizeof(*distances)), middle;
    double slack;

    for (i = 0; i < n; i++)
        distances[i] = at[i + 1] - at[i];
    middle = median(distances, n);
    slack = fmax(1, TOLERANCE * (double)middle);
    for (i = 0; i < n; i++)
        near += fabs((double)(distances[i] - middle)) <= slack;
    free(distances);
    return near >= REGULAR_SHARE * n ? middle : 0;
}

static uint64_t segment_hash(const struct ct_stream *s, int first, int last)
{
    return s->hashes[last + 1] - s->hashes[first];
}

/* The multiset that most segments between occurrences hold, and how many do. */
static int usual_segment(const struct ct_stream *s, int token, uint64_t *hash_p)
{
    const int *at = positions_of(s, token);
    int n = s->tokens[token].n - 1, i, run = 0, best = 0;
    uint64_t *hashes = ct_alloc((size_t)n, sizeof(*hashes));

    for (i = 0; i < n; i++)
        hashes[i] = segment_hash(s, at[i] + 1, at[i + 1]);
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

/* Length of the usual segment and whether it can be a step at all; marks the
 * sorts of its calls. */
static int look_into(const struct ct_stream *s, int token, uint64_t usual,
                     bool *sorts)
{
    const int *at = positions_of(s, token);
    bool collective = false, varied = false;
    int i = 0, o;

    while (segment_hash(s, at[i] + 1, at[i + 1]) != usual)
        i++;
    for (o = at[i] + 1; o <= at[i + 1]; o++) {
        const struct ct_token *t = &s->tokens[token_at(s, o)];

        collective |= t->collective;
        varied |= token_at(s, o) != token;
        sorts[t->sort] = true;
    }
    return collective && varied ? at[i + 1] - at[i] : 0;
}

/* Share of the calls of the marked sorts that lies in steps of this anchor. */
static double covered(const struct ct_stream *s, int token, int length,
                      const bool *sorts)
{
    const int *at = positions_of(s, token);
    int last = at[s->tokens[token].n - 1], o, alike = 0, inside = 0;
    int first = at[0] + 1 > length ? at[0] + 1 - length : 0;

    for (o = 0; o < s->process->nops; o++)
        if (sorts[s->tokens[token_at(s, o)].sort]) {
            alike++;
            inside += o >= first && o <= last;
        }
    return alike ? (double)inside / alike : 0;
}

static bool holds(const struct ct_stream *s, int token,
                  struct ct_anchor *anchor)
{
    int n = s->tokens[token].n - 1;
    bool *sorts, ok;
    int64_t distance = regular_distance(s, token);

    if (!distance || distance == 1)
        return false;
    anchor->token = token;
    anchor->distance = distance;
    if (usual_segment(s, token, &anchor->usual) < EQUAL_SHARE * n)
        return false;
    sorts = ct_alloc((size_t)s->nsorts, sizeof(*sorts));
    anchor->length = look_into(s, token, anchor->usual, sorts);
    ok = anchor->length &&
         covered(s, token, anchor->length, sorts) >= COVERED_SHARE;
    free(sorts);
    return ok;
}

struct ranked_token {
    int n, token;
};

static int rarest_first(const void *left, const void *right)
{
    const struct ranked_token *a = left, *b = right;

    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    return a->token < b->token ? -1 : 1;
}

/* The rarest token that holds and, if steps is not 0, gives about that many
 * steps. */
static bool find_period(const struct ct_stream *s, int steps,
                        struct ct_anchor *anchor)
{
    struct ranked_token *order = ct_alloc((size_t)s->ntokens, sizeof(*order));
    int t, n = 0;
    bool found = false;

    for (t = 0; t < s->ntokens; t++)
        if (s->tokens[t].n >= MIN_OCCURRENCES)
            order[n++] = (struct ranked_token){s->tokens[t].n, t};
    qsort(order, (size_t)n, sizeof(*order), rarest_first);
    for (t = 0; t < n && !found; t++) {
        if (steps && (order[t].n < steps || order[t].n > steps + steps / 4 + 2))
            continue;
        found = holds(s, order[t].token, anchor);
    }
    free(order);
    return found;
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

static bool is_once_per_step(const struct ct_stream *s, int token,
                             const struct ct_anchor *anchor)
{
    int n = s->tokens[token].n, usual = s->tokens[anchor->token].n;
    int64_t distance;

    if (token == anchor->token)
        return true;
    if (n < usual || n > usual + usual / 4 + 2)
        return false;
    distance = regular_distance(s, token);
    return distance && fabs((double)(distance - anchor->distance)) <=
                           fmax(1, TOLERANCE * (double)anchor->distance);
}

static int collect_ways(const struct ct_stream *s,
                        const struct ct_anchor *anchor, struct way *ways)
{
    int *way_of = ct_alloc((size_t)s->ntokens, sizeof(*way_of));
    int t, o, last = CT_NONE, n = 0;

    for (t = 0; t < s->ntokens; t++) {
        way_of[t] = CT_NONE;
        if (s->tokens[t].n < MIN_OCCURRENCES || !is_once_per_step(s, t, anchor))
            continue;
        ways[n] = (struct way){.token = t};
        ways[n].calls =
            ct_alloc((size_t)s->tokens[t].n, sizeof(*ways[n].calls));
        ways[n].ns = ct_alloc((size_t)s->tokens[t].n, sizeof(*ways[n].ns));
        way_of[t] = n++;
    }
    for (o = 0; o < s->process->nops; o++) {
        int way = way_of[token_at(s, o)];

        if (way == CT_NONE)
            continue;
        if (last != CT_NONE) {
            struct way *from = &ways[way_of[token_at(s, last)]];

            from->calls[from->n] = o - last;
            from->ns[from->n++] =
                ct_stream_begin(s, o) - ct_stream_end(s, last);
        }
        last = o;
    }
    free(way_of);
    return n;
}

/* More calls on the way count first; where they are about as many (a pure
 * data-parallel step is all once-per-step calls), the longer pause. */
static bool longer(const struct way *a, const struct way *b)
{
    int64_t difference = a->median_calls - b->median_calls;

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
        if (longer(way, &ways[best]))
            best = i;
        free(way->calls);
        free(way->ns);
    }
    if (n) {
        struct ct_anchor moved = *anchor;

        if (holds(s, ways[best].token, &moved))
            *anchor = moved;
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
