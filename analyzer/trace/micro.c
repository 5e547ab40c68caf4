/*
 * Micro-batches of a step. Through a pipeline each sends as many messages as
 * the step has chunks and micro-batches; without one, the calls of a step are
 * those of a micro-batch, again and again, before and after what is called
 * once.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/select.h"
#include "trace/steps.h"

/* Of the calls that are like those of a micro-batch, in a row of them. */
#define REPEATED_SHARE 0.95
#define MOST_STRIDE 4
#define MANY_STEPS 32
#define EVEN 1.2       /* of the shortest, that the longest is at most */
#define MOST_TOKENS 64 /* to look for a period of */

static int first_of(const struct ct_anchor *anchor)
{
    return anchor->at + 1 - anchor->length;
}

static bool is_lone(const struct ct_stream *s, int at)
{
    const struct ct_op_row *op;

    if (!ct_kind_at(s, at)->p2p || s->calls[at] < 0)
        return false;
    op = &s->process->ops[s->calls[at]];
    return op->launch == CT_NONE || s->process->launches[op->launch].nops == 1;
}

/* A rank of a pipeline sends or receives alone, at the first or last of its
 * micro-batches at least; in a ring, it always does both. */
static int pipeline_comm(const struct ct_stream *s,
                         const struct ct_anchor *anchor)
{
    const struct ct_process *p = s->process;
    int o;

    for (o = first_of(anchor); o <= anchor->at; o++)
        if (is_lone(s, o))
            return p->classes[p->ops[s->calls[o]].cls].comm;
    return CT_NONE;
}

static int64_t median_distance(const struct ct_stream *s, const int *at, int n)
{
    int64_t *ns = ct_alloc((size_t)n, sizeof(*ns)), middle = CT_NO_TIME;
    int i;

    for (i = 0; i + 1 < n; i++)
        ns[i] = ct_stream_begin(s, at[i + 1]) - ct_stream_begin(s, at[i]);
    if (n > 1)
        middle = ct_nth(ns, n - 1, (n - 1) / 2);
    free(ns);
    return middle;
}

/* Of the n calls of that kind in the usual step. */
static int64_t kind_distance(const struct ct_stream *s,
                             const struct ct_anchor *anchor, int kind, int n)
{
    int *at = ct_alloc((size_t)n, sizeof(*at)), k = 0, o;
    int64_t ns;

    for (o = first_of(anchor); o <= anchor->at; o++)
        if (s->tokens[s->token_at[o]].kind == kind)
            at[k++] = o;
    ns = median_distance(s, at, k);
    free(at);
    return ns;
}

static struct ct_micro of_pipeline(const struct ct_stream *s,
                                   const struct ct_anchor *anchor, int comm)
{
    const struct ct_process *p = s->process;
    struct ct_micro micro = {.pipeline = true, .ns = CT_NO_TIME};
    int *calls = ct_segment_kinds(s, first_of(anchor), anchor->at), c;

    for (c = 0; c < p->nclasses; c++) {
        const int kind = s->kind_of[c];

        if (p->classes[c].comm != comm || !s->kinds[kind].p2p)
            continue;
        micro.n = ct_divisor(micro.n, calls[kind]);
        if (calls[kind] > 1 && micro.ns == CT_NO_TIME)
            micro.ns = kind_distance(s, anchor, kind, calls[kind]);
    }
    free(calls);
    return micro;
}

/* The longest row of calls that come again after length calls; *first_p: its
 * first. */
static int longest_row(const struct ct_stream *s,
                       const struct ct_anchor *anchor, int length, int *first_p)
{
    int o, run = 0, best = 0;

    for (o = first_of(anchor); o + length <= anchor->at; o++) {
        run = s->token_at[o] == s->token_at[o + length] ? run + 1 : 0;
        if (run > best) {
            best = run;
            *first_p = o - run + 1;
        }
    }
    return best;
}

/* Whether the row of n calls from first on, period calls again and again, is
 * all there is of such calls; a row of equal calls says nothing. */
static bool is_all(const struct ct_stream *s, const struct ct_anchor *anchor,
                   int first, int n, int period)
{
    bool *in = ct_alloc((size_t)s->ntokens, sizeof(*in));
    int o, alike = 0, kinds = 0;

    for (o = first; o < first + period; o++) {
        kinds += !in[s->token_at[o]];
        in[s->token_at[o]] = true;
    }
    for (o = first_of(anchor); o <= anchor->at; o++)
        alike += in[s->token_at[o]];
    free(in);
    return kinds > 1 && n >= REPEATED_SHARE * alike;
}

/* Time of the period calls from place first on, median over the steps that are
 * as the usual one. */
static int64_t usual_time(const struct ct_stream *s,
                          const struct ct_anchor *anchor, int first, int period)
{
    const struct ct_places p = ct_places_of(s, anchor);
    int64_t ns[MANY_STEPS];
    int i, n = 0;

    for (i = 0; i < p.n && n < MANY_STEPS; i++) {
        const int start = p.at[i] + 1 - anchor->length;
        const int at = first + p.at[i] - anchor->at;

        if (start >= 0 &&
            s->hashes[p.at[i] + 1] - s->hashes[start] == anchor->usual)
            ns[n++] =
                ct_stream_end(s, at + period - 1) - ct_stream_begin(s, at);
    }
    return n ? ct_nth(ns, n, n / 2) : 0;
}

/* Whether n periods from first on take about as long. A forward pass may be
 * the same calls as a backward one, but not the same time. */
static bool is_even(const struct ct_stream *s, const struct ct_anchor *anchor,
                    int first, int n, int period)
{
    int64_t least = INT64_MAX, most = 0;
    int i;

    for (i = 0; i < n; i++) {
        const int64_t ns = usual_time(s, anchor, first + i * period, period);

        least = ns < least ? ns : least;
        most = ns > most ? ns : most;
    }
    return (double)most <= EVEN * (double)least;
}

/* Whether the k periods that make one of n / k from first on take times of
 * their own, each time the same, as forward and backward passes do. Else it is
 * by chance that single ones are not even. */
static bool differ(const struct ct_stream *s, const struct ct_anchor *anchor,
                   int first, int n, int period, int k)
{
    int64_t least = INT64_MAX, most = 0;
    int i, phase;

    for (phase = 0; phase < k; phase++) {
        int64_t ns = 0;

        for (i = phase; i + k - phase <= n; i += k)
            ns += usual_time(s, anchor, first + i * period, period);
        least = ns < least ? ns : least;
        most = ns > most ? ns : most;
    }
    return (double)most > EVEN * (double)least;
}

struct inside { /* of the period of a row */
    bool *tokens, *comms;
};

static int comm_at(const struct ct_stream *s, int at)
{
    const struct ct_process *p = s->process;

    return s->calls[at] < 0 ? CT_NONE
                            : p->classes[p->ops[s->calls[at]].cls].comm;
}

static struct inside inside_of(const struct ct_stream *s, int first, int period)
{
    struct inside in = {
        ct_alloc((size_t)s->ntokens, sizeof(*in.tokens)),
        ct_alloc((size_t)s->process->ncomms, sizeof(*in.comms))};
    int o;

    for (o = first; o < first + period; o++) {
        in.tokens[s->token_at[o]] = true;
        if (comm_at(s, o) != CT_NONE)
            in.comms[comm_at(s, o)] = true;
    }
    return in;
}

/* Calls beside those of the period that a micro-batch may have too: on the same
 * communicators, about as often as there are periods. Then these are but a
 * part of it: its forward pass, say. */
static bool lacks(const struct ct_stream *s, const struct ct_anchor *anchor,
                  const struct inside *in, int periods)
{
    int *others = ct_alloc((size_t)s->ntokens, sizeof(*others)), o;
    bool lacks = false;

    for (o = first_of(anchor); o <= anchor->at; o++) {
        const int token = s->token_at[o], comm = comm_at(s, o);

        if (comm == CT_NONE || !in->comms[comm] || in->tokens[token] ||
            ct_kind_at(s, o)->small)
            continue;
        lacks |= 2 * ++others[token] >= periods;
    }
    free(others);
    return lacks;
}

/* Calls of the step that are also in the period from first on, by how many
 * there are in it; the last micro-batch may have others among them. 0: none
 * fits, or they are but a part. */
static int count_periods(const struct ct_stream *s,
                         const struct ct_anchor *anchor, int first, int period)
{
    struct inside in = inside_of(s, first, period);
    int o, n = 0;

    for (o = first_of(anchor); o <= anchor->at; o++)
        n += in.tokens[s->token_at[o]];
    if (n % period || lacks(s, anchor, &in, n / period))
        n = 0;
    free(in.tokens);
    free(in.comms);
    return n / period;
}

/* The calls of a row of rows are layers, it may be; then so many of them are a
 * micro-batch that all take as long. */
static struct ct_micro of_row(const struct ct_stream *s,
                              const struct ct_anchor *anchor, int first, int n,
                              int period)
{
    struct ct_micro micro = {.n = CT_NONE, .ns = CT_NO_TIME};
    const int whole = n / period, all = count_periods(s, anchor, first, period);
    int k, i;

    for (k = 1; all && 2 * k <= whole; k++) {
        int *at;

        if (all % k || !is_even(s, anchor, first, whole / k, k * period))
            continue;
        if (k > 1 && !differ(s, anchor, first, whole, period, k))
            break;
        at = ct_alloc((size_t)(whole / k), sizeof(*at));
        for (i = 0; i < whole / k; i++)
            at[i] = first + i * k * period;
        micro.n = all / k;
        micro.ns = median_distance(s, at, whole / k);
        free(at);
        break;
    }
    return micro;
}

/* The shortest period: lengths to try are distances of one token. */
static struct ct_micro of_repeats(const struct ct_stream *s,
                                  const struct ct_anchor *anchor)
{
    struct ct_micro micro = {.n = CT_NONE, .ns = CT_NO_TIME};
    int best = anchor->length, looked = 0, t;

    for (t = 0; t < s->ntokens && looked < MOST_TOKENS; t++) {
        const struct ct_token *token = &s->tokens[t];
        const int *at = s->positions + token->first;
        int low = 0, n, stride;

        while (low < token->n && at[low] < first_of(anchor))
            low++;
        for (n = 0; low + n < token->n && at[low + n] <= anchor->at;)
            n++;
        looked += n > 1;
        for (stride = 1; stride <= MOST_STRIDE && stride < n; stride++) {
            const int period = at[low + stride] - at[low];
            int first = 0, row;

            if (period < 2 || period >= best)
                continue;
            row = longest_row(s, anchor, period, &first);
            if (row < period || !is_all(s, anchor, first, row + period, period))
                continue;
            best = period;
            micro = of_row(s, anchor, first, row + period, period);
        }
    }
    return micro;
}

struct ct_micro ct_stream_micro(const struct ct_stream *s,
                                const struct ct_anchor *anchor)
{
    const int comm = pipeline_comm(s, anchor);

    return comm == CT_NONE ? of_repeats(s, anchor)
                           : of_pipeline(s, anchor, comm);
}
