/*
 * Steps of one process from the anchor where they end. What stands before a
 * usual step and after the one before it is no part of either: evaluations make
 * some calls of a step, checkpoints others.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/stages.h"
#include "trace/steps.h"

#define NEAR 32 /* calls */

struct cut {
    struct ct_stream *s;
    const struct ct_anchor *anchor;
    enum ct_step_kind kind;
    int *usual; /* calls of each kind in the usual step */
    int capacity, nbetween, between_capacity;
    uint64_t *between; /* kinds of evaluations and checkpoints so far */
};

static bool is_usual(const struct cut *c, int first, int last)
{
    return c->s->kind_hashes[last + 1] - c->s->kind_hashes[first] ==
           c->anchor->usual_kinds;
}

static bool any_lost(const struct cut *c, int first, int last)
{
    int at;

    for (at = first < 0 ? 0 : first; at <= last && at < c->s->n; at++)
        if (c->s->calls[at] == CT_LOST_CALL)
            return true;
    return false;
}

/* No record is lost at its edges, and none that is not known of. */
static bool is_sure(const struct cut *c, int first, int last)
{
    return !c->s->lossy || (is_usual(c, first, last) &&
                            !any_lost(c, first - NEAR, first + NEAR) &&
                            !any_lost(c, last - NEAR, last + NEAR));
}

static void add_row(struct cut *c, int first, int last, enum ct_step_kind kind)
{
    struct ct_process *p = c->s->process;

    p->steps = ct_grow(p->steps, &c->capacity, p->nsteps, sizeof(*p->steps));
    p->steps[p->nsteps++] =
        (struct ct_step_row){.first_op = first,
                             .last_op = last,
                             .kind = kind,
                             .number = CT_NONE,
                             .sure = is_sure(c, first, last)};
}

static bool is_message(const struct cut *c, int kind)
{
    return !c->s->kinds[kind].small;
}

static bool is_alike(const struct cut *c, int first, int last)
{
    return ct_segment_alike(c->s, c->anchor, c->usual, first, last);
}

/* Something of a step, but not all of it. */
static bool is_part(const struct cut *c, int at)
{
    const int kind = c->s->tokens[c->s->token_at[at]].kind;

    return c->usual[kind] && is_message(c, kind);
}

static bool are_parts(const struct cut *c, int first, int last)
{
    while (first <= last && is_part(c, first))
        first++;
    return first > last;
}

static void add_between(struct cut *c, int first, int last,
                        enum ct_step_kind kind)
{
    const uint64_t hash =
        c->s->kind_hashes[last + 1] - c->s->kind_hashes[first];

    add_row(c, first, last, kind);
    c->between = ct_grow(c->between, &c->between_capacity, c->nbetween,
                         sizeof(*c->between));
    c->between[c->nbetween++] = hash;
}

/* Whether all messages of a step are there: it is one that lacks its end. */
static bool is_whole(struct cut *c, int first, int last)
{
    int *calls = ct_segment_kinds(c->s, first, last), k;
    bool whole = true;

    for (k = 0; k < c->s->nkinds; k++)
        whole &= !is_message(c, k) || calls[k] >= c->usual[k];
    free(calls);
    return whole;
}

/* Losses are floats. */
static bool is_loss(const struct cut *c, int at)
{
    const struct ct_kind *kind = ct_kind_at(c->s, at);

    return kind->small && kind->sums && kind->floats;
}

/* The calls from first on that are of an evaluation, or of none. */
static int end_of_run(const struct cut *c, int first, int last, bool *evaluates)
{
    int at = first;

    while (at <= last && is_loss(c, at))
        at++;
    *evaluates = at > last || is_part(c, at) || at > first;
    while (at <= last && *evaluates == (is_part(c, at) || is_loss(c, at)))
        at++;
    return at - 1;
}

/* Calls between steps: evaluations and checkpoints by turns. */
static void cut_between(struct cut *c, int first, int last)
{
    bool evaluates;
    int end;

    if (first > last)
        return;
    if (is_whole(c, first, last)) {
        add_row(c, first, last, CT_STEP_OTHER);
        return;
    }
    for (; first <= last; first = end + 1) {
        end = end_of_run(c, first, last, &evaluates);
        add_between(c, first, end,
                    evaluates ? CT_STEP_EVALUATION : CT_STEP_CHECKPOINT);
    }
}

/* Of the calls of a usual step, how many are there. */
static int count_alike(struct cut *c, int first, int last)
{
    int *calls = ct_segment_kinds(c->s, first, last), k, n = 0;

    for (k = 0; k < c->s->nkinds; k++)
        n += calls[k] < c->usual[k] ? calls[k] : c->usual[k];
    free(calls);
    return n;
}

/* Before all that is usual, only what has half of the calls of a step may be
 * one, that warms up. What a step never calls is set-up before it. */
static void cut_first(struct cut *c, int first, int last)
{
    const int length = c->anchor->length;

    if (last + 1 - first > 2 * length)
        first = last + 1 - length;
    while (first <= last && !c->usual[c->s->tokens[c->s->token_at[first]].kind])
        first++;
    if (2 * count_alike(c, first, last) >= length)
        add_row(c, first, last, CT_STEP_WARM_UP);
}

/* Before the first usual step: what ends like one, though its sizes are others,
 * is one as well; there may be thousands. */
static void cut_warm_up(struct cut *c, int first, int last)
{
    const int length = c->anchor->length;
    int start = last + 1;

    while (start - length >= first && is_usual(c, start - length, start - 1))
        start -= length;
    cut_first(c, first, start - 1);
    for (; start <= last; start += length)
        add_row(c, start, start + length - 1, c->kind);
}

/* The calls first..last, places in the sequence, end as a step does. */
static void cut_segment(struct cut *c, int first, int last)
{
    const bool begun = c->s->process->nsteps > 0;
    int start = last + 1 - c->anchor->length;

    if (begun && c->s->lossy && are_parts(c, first, start - 1) &&
        is_alike(c, first, last))
        start = first;
    else if (start < first || !is_usual(c, start, last))
        start = ct_segment_start(c->s, c->anchor, c->usual, first, last);
    if (start < first ||
        !(is_usual(c, start, last) || is_alike(c, start, last))) {
        if (begun)
            add_row(c, first, last, CT_STEP_OTHER);
        else
            cut_warm_up(c, first, last);
        return;
    }
    if (begun)
        cut_between(c, first, start - 1);
    else
        cut_warm_up(c, first, start - 1);
    add_row(c, start, last, c->kind);
}

/* After the last step: only what was seen between steps too. */
static void cut_rest(struct cut *c, int first)
{
    const uint64_t hash = c->s->kind_hashes[c->s->n] - c->s->kind_hashes[first];
    const struct ct_process *p = c->s->process;
    int i, k = 0;

    for (i = 0; i < p->nsteps && first < c->s->n; i++) {
        if (p->steps[i].kind != CT_STEP_EVALUATION &&
            p->steps[i].kind != CT_STEP_CHECKPOINT)
            continue;
        if (c->between[k++] == hash) {
            add_row(c, first, c->s->n - 1, p->steps[i].kind);
            return;
        }
    }
}

static uint64_t sizes_of(const struct cut *c, const struct ct_step_row *row)
{
    return c->s->hashes[row->last_op + 1] - c->s->hashes[row->first_op];
}

/* Per row of the process: the last one with messages of the same sizes. Rows
 * are still of places. */
static int *last_alike(const struct cut *c)
{
    const struct ct_process *p = c->s->process;
    const size_t n = (size_t)p->nsteps;
    int *ids = ct_alloc(n, sizeof(*ids)), *last = ct_alloc(n, sizeof(*last)), i;
    struct ct_intern keys = {0};

    for (i = 0; i < p->nsteps; i++) {
        const uint64_t sizes = sizes_of(c, &p->steps[i]);

        ids[i] = ct_intern_add(&keys, &sizes, sizeof(sizes));
        last[ids[i]] = i;
    }
    for (i = 0; i < p->nsteps; i++)
        ids[i] = last[ids[i]];
    ct_intern_release(&keys);
    free(last);
    return ids;
}

/* The first steps, if their messages have sizes that do not come again (DDP
 * makes its buckets anew). */
static void find_warm_ups(const struct cut *c)
{
    const struct ct_process *p = c->s->process;
    int *last = last_alike(c), i;

    for (i = 0; i < p->nsteps && last[i] == i; i++) {
        struct ct_step_row *row = &p->steps[i];

        if (sizes_of(c, row) == c->anchor->usual || c->s->lossy)
            break;
        if (row->kind == c->kind)
            row->kind = CT_STEP_WARM_UP;
    }
    free(last);
}

/* One clock for all steps of a process: the GPU's if it timed most anchors.
 * What a live or dead process had not finished on the GPU by the end are then
 * no steps. Returns the number of anchors to use. */
static int choose_clock(struct ct_stream *s, const int *at, int n)
{
    int i, timed = 0;

    for (i = 0; i < n; i++)
        timed += ct_stream_timed(s, at[i]);
    s->on_gpu = 2 * timed > n;
    while (s->on_gpu && n && !ct_stream_timed(s, at[n - 1]))
        n--;
    return n;
}

static void time_rows(const struct ct_stream *s)
{
    struct ct_process *p = s->process;
    int i;

    for (i = 0; i < p->nsteps; i++) {
        struct ct_step_row *step = &p->steps[i];

        step->start_ns = i && step[-1].last_op + 1 == step->first_op
                             ? step[-1].end_ns
                             : ct_stream_begin(s, step->first_op);
        step->end_ns = ct_stream_end(s, step->last_op);
        step->first_ns = ct_stream_enter(s, step->first_op);
        step->last_ns = ct_stream_enter(s, step->last_op);
    }
}

/* From places in the sequence to ops. */
static void find_ops(const struct ct_stream *s)
{
    struct ct_process *p = s->process;
    int i;

    for (i = 0; i < p->nsteps; i++) {
        p->steps[i].first_op = ct_stream_op(s, p->steps[i].first_op);
        p->steps[i].last_op = ct_stream_op(s, p->steps[i].last_op + 1) - 1;
    }
}

/* Where the step of the anchor at place at ends. */
static int end_of(const struct cut *c, int at)
{
    const int most = at + c->anchor->after;

    while (at < most && at + 1 < c->s->n && ct_tail_kind(c->s, at + 1))
        at++;
    return at;
}

void ct_stream_cut(struct ct_stream *s, const struct ct_anchor *anchor,
                   enum ct_step_kind kind)
{
    const struct ct_token *token = &s->tokens[anchor->token];
    const int *at = s->positions + token->first;
    struct cut c = {.s = s,
                    .anchor = anchor,
                    .kind = kind,
                    .usual = ct_segment_kinds(
                        s, anchor->at + 1 - anchor->length, anchor->at)};
    const int n = choose_clock(s, at, token->n);
    int k, first = 0;

    for (k = 0; k < n; k++) {
        const int last = end_of(&c, at[k]);

        cut_segment(&c, first, last);
        first = last + 1;
    }
    if (n == token->n)
        cut_rest(&c, first);
    find_warm_ups(&c);
    time_rows(s);
    find_ops(s);
    free(c.usual);
    free(c.between);
}
