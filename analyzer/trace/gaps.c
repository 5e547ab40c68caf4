/*
 * Calls whose records are lost. Ordinals advance over them, so it is known how
 * many are missing between two calls of one lane; the records of other ranks
 * tell what they were, else all that is ever called there. Where they stood
 * among calls of other lanes is where such a call mostly stands: after the
 * same, before the same.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/stages.h"
#include "trace/steps.h"

#define LONG_GAP 1024 /* is an outage: nothing is known of it */
#define FAR 65536     /* calls to look over for the place of one */
#define MUCH 64       /* of all calls, to look over for those of all */

struct lost {
    int before; /* place in the sequence */
    int number; /* keeps those of one place in order */
    int token;
};

struct filling {
    struct ct_stream *s;
    const struct ct_job *job;
    int *lane_of;  /* per class */
    int *only;     /* per lane: its only token; CT_NONE: several */
    int *place_of; /* per op */
    int *after;    /* per token: what mostly stands before it */
    int *followed; /* per token: what mostly follows it */
    int *next;     /* per token: how far the next of its lane mostly is */
    struct lost *lost;
    int nlanes, nlost, capacity;
    int64_t looked; /* calls that were looked over */
    bool any;       /* is missing, of which nothing may be known */
    bool unnamed;   /* of one nothing is known */
};

static void name_lanes(struct filling *f)
{
    const struct ct_process *p = f->s->process;
    struct ct_intern lanes = {0};
    int c;

    f->lane_of = ct_alloc((size_t)p->nclasses, sizeof(*f->lane_of));
    f->only = ct_alloc((size_t)p->nclasses, sizeof(*f->only));
    for (c = 0; c < p->nclasses; c++) {
        const struct ct_op_class_row *class = &p->classes[c];
        const bool p2p = !ct_is_collective(class->kind);
        const int key[3] = {class->comm, p2p ? (int)class->base : -1,
                            p2p ? class->peer : -1};
        const int known = lanes.n;
        const int lane = ct_intern_add(&lanes, key, sizeof(key));

        f->lane_of[c] = lane;
        if (lane == known)
            f->only[lane] = f->s->token_of[c];
        else if (f->only[lane] != f->s->token_of[c])
            f->only[lane] = CT_NONE;
    }
    f->nlanes = lanes.n;
    ct_intern_release(&lanes);
}

/* The token of instance i as this rank calls it; CT_NONE: it never did. */
static int token_of(const struct filling *f, int comm, int i)
{
    const struct ct_instance *instance = &f->job->instances[i];
    const struct ct_usage *u = &f->job->usages[instance->usage];
    const struct ct_process *p = f->s->process;
    const bool sends = u->src == p->comms[comm].rank;
    const bool p2p = u->src != CT_NONE;
    const enum ct_op base = p2p && !sends ? CT_OP_RECV : u->base;
    const int peer = !p2p ? CT_NONE : sends ? u->dst : u->src;
    int small, kind = CT_NONE;

    for (small = 0; small < 2 && kind == CT_NONE; small++) {
        const int key[6] = {comm, (int)base, u->type, u->redop, peer, small};
        uint64_t token[2] = {0, u->count};

        kind = ct_intern_find(&f->s->kind_keys, key, sizeof(key));
        token[0] = (uint64_t)kind;
        if (kind != CT_NONE)
            kind = ct_intern_find(&f->s->token_keys, token,
                                  f->s->kinds[kind].varied ? sizeof(token[0])
                                                           : sizeof(token));
    }
    return kind;
}

/* What call number ordinal of the lane of op o was. */
static int token_at(const struct filling *f, int o, uint32_t ordinal, int *i)
{
    const struct ct_process *p = f->s->process;
    const struct ct_op_row *op = &p->ops[o];
    const struct ct_instance *instances = f->job->instances;
    int token = CT_NONE;

    while (*i < f->job->ninstances && op->instance != CT_NONE &&
           instances[*i].comm == instances[op->instance].comm &&
           instances[*i].ordinal < ordinal && *i < op->instance)
        ++*i;
    if (op->instance != CT_NONE && *i < op->instance &&
        instances[*i].comm == instances[op->instance].comm &&
        instances[*i].ordinal == ordinal)
        token = token_of(f, p->classes[op->cls].comm, *i);
    return token == CT_NONE ? f->only[f->lane_of[op->cls]] : token;
}

static void add_lost(struct filling *f, int before, int token)
{
    f->lost = ct_grow(f->lost, &f->capacity, f->nlost, sizeof(*f->lost));
    f->lost[f->nlost] =
        (struct lost){.before = before, .number = f->nlost, .token = token};
    f->nlost++;
}

/* The place for token between calls first and last, which it is not, that fits
 * best; of several the one where it mostly comes after first. */
static int place_between(struct filling *f, int token, int first, int last)
{
    const int *tokens = f->s->token_at;
    const int usual = first + f->next[tokens[first]];
    int best = usual < last ? usual : last, score = 0, at;

    if (last - first > FAR)
        first = last - FAR;
    f->looked += last - first;
    for (at = first + 1; at <= last; at++) {
        const int fits = (tokens[at - 1] == f->after[token]) +
                         (at < f->s->n && tokens[at] == f->followed[token]);

        if (fits > score ||
            (fits && fits == score && abs(at - usual) < abs(best - usual))) {
            score = fits;
            best = at;
        }
    }
    return best;
}

static void fill(struct filling *f, int from, int to)
{
    const struct ct_process *p = f->s->process;
    const uint32_t first = p->ops[from].ordinal, last = p->ops[to].ordinal;
    int place = f->place_of[from], instance = p->ops[from].instance + 1;
    uint32_t ordinal;

    for (ordinal = first + 1; ordinal < last; ordinal++) {
        const int token = token_at(f, to, ordinal, &instance);

        if (token == CT_NONE) {
            f->unnamed = true;
            continue;
        }
        /* Others of this lane may share a place. */
        place = place_between(f, token, place - (ordinal > first + 1),
                              f->place_of[to]);
        add_lost(f, place, token);
    }
}

/* Some of an exchange are missing: it is there. */
static bool varied_p2p(const struct filling *f, int o)
{
    const struct ct_kind *kind =
        &f->s->kinds[f->s->kind_of[f->s->process->ops[o].cls]];

    return kind->varied && kind->p2p;
}

static bool is_gap(const struct filling *f, int from, int to)
{
    const struct ct_process *p = f->s->process;
    const uint32_t a = p->ops[from].ordinal, b = p->ops[to].ordinal;

    return b > a && b - a > 1 && b - a <= LONG_GAP && !varied_p2p(f, to);
}

/* More is lost than there is, or would be if ordinals were believed that are
 * far apart; or much of it has its place anywhere. */
static bool is_guesswork(const struct filling *f)
{
    const int64_t nops = f->s->process->nops;

    return f->nlost > nops + LONG_GAP || f->looked > MUCH * (nops + FAR);
}

struct majority { /* of values, if one has it */
    int value, votes;
};

static void vote(struct majority *m, int value)
{
    if (m->votes == 0)
        m->value = value;
    m->votes += m->value == value ? 1 : -1;
}

static int *values_of(struct majority *m, int n)
{
    int *values = ct_alloc((size_t)n, sizeof(*values)), i;

    for (i = 0; i < n; i++)
        values[i] = m[i].value;
    free(m);
    return values;
}

static void find_neighbours(struct filling *f)
{
    const struct ct_stream *s = f->s;
    const size_t n = (size_t)s->ntokens;
    struct majority *after = ct_alloc(n, sizeof(*after));
    struct majority *followed = ct_alloc(n, sizeof(*followed));
    int i;

    for (i = 1; i < s->n; i++) {
        vote(&after[s->token_at[i]], s->token_at[i - 1]);
        vote(&followed[s->token_at[i - 1]], s->token_at[i]);
    }
    f->after = values_of(after, s->ntokens);
    f->followed = values_of(followed, s->ntokens);
}

static void find_distances(struct filling *f)
{
    const struct ct_process *p = f->s->process;
    struct majority *next = ct_alloc((size_t)f->s->ntokens, sizeof(*next));
    int *last = ct_alloc((size_t)f->nlanes, sizeof(*last)), o;

    for (o = 0; o < f->nlanes; o++)
        last[o] = CT_NONE;
    for (o = 0; o < p->nops; o++) {
        int *before = &last[f->lane_of[p->ops[o].cls]];

        if (*before != CT_NONE)
            vote(&next[f->s->token_at[f->place_of[*before]]],
                 f->place_of[o] - f->place_of[*before]);
        *before = o;
    }
    f->next = values_of(next, f->s->ntokens);
    free(last);
}

static void find_places(struct filling *f)
{
    const struct ct_stream *s = f->s;
    int i, o = 0;

    f->place_of = ct_alloc((size_t)s->process->nops, sizeof(*f->place_of));
    for (i = 0; i < s->n; i++) {
        const int end = i + 1 < s->n ? s->calls[i + 1] : s->process->nops;

        for (o = s->calls[i]; o < end; o++)
            f->place_of[o] = i;
    }
}

/* Both are of one lane. */
static bool same_lane(const struct ct_job *job, const struct ct_instance *a,
                      const struct ct_instance *b)
{
    const struct ct_usage *ua = ct_usage_of(job, a), *ub = ct_usage_of(job, b);

    return a->comm == b->comm && ua->src == ub->src && ua->dst == ub->dst;
}

static void prepare(struct filling *f)
{
    if (!f->place_of) {
        find_places(f);
        find_neighbours(f);
        find_distances(f);
    }
}

/* Calls of a lane that other ranks know of, after its last one here. */
static void fill_end(struct filling *f, int from)
{
    const struct ct_process *p = f->s->process;
    const struct ct_op_row *op = &p->ops[from];
    const struct ct_instance *instances = f->job->instances;
    int i;

    if (op->instance == CT_NONE || varied_p2p(f, from))
        return;
    for (i = op->instance + 1;
         i < f->job->ninstances && i <= op->instance + LONG_GAP &&
         same_lane(f->job, &instances[i], &instances[i - 1]);
         i++) {
        const int token = token_of(f, p->classes[op->cls].comm, i);

        prepare(f);
        if (token != CT_NONE)
            add_lost(f, place_between(f, token, f->place_of[from], f->s->n),
                     token);
    }
}

static void find_lost(struct filling *f)
{
    const struct ct_process *p = f->s->process;
    int *last = ct_alloc((size_t)f->nlanes, sizeof(*last)), o;

    for (o = 0; o < f->nlanes; o++)
        last[o] = CT_NONE;
    for (o = 0; o < p->nops; o++) {
        int *before = &last[f->lane_of[p->ops[o].cls]];

        if (*before != CT_NONE && is_gap(f, *before, o)) {
            f->any = true;
            prepare(f);
            if (!is_guesswork(f))
                fill(f, *before, o);
        }
        *before = o;
    }
    /* One that was killed, or still runs, may not have called them. */
    for (o = 0; o < f->nlanes && p->end_ns != CT_NO_TIME; o++)
        if (last[o] != CT_NONE && !is_guesswork(f))
            fill_end(f, last[o]);
    free(last);
}

static int by_place(const void *left, const void *right)
{
    const struct lost *a = left, *b = right;

    if (a->before != b->before)
        return a->before < b->before ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static void insert(struct filling *f)
{
    struct ct_stream *s = f->s;
    const size_t room = (size_t)s->n + (size_t)f->nlost;
    int *calls = ct_alloc(room, sizeof(*calls));
    int *tokens = ct_alloc(room, sizeof(*tokens));
    int i, k = 0, n = 0;

    qsort(f->lost, (size_t)f->nlost, sizeof(*f->lost), by_place);
    for (i = 0; i <= s->n; i++) {
        for (; k < f->nlost && f->lost[k].before == i; k++) {
            calls[n] = CT_LOST_CALL;
            tokens[n++] = f->lost[k].token;
        }
        if (i == s->n)
            break;
        calls[n] = s->calls[i];
        tokens[n++] = s->token_at[i];
    }
    free(s->calls);
    free(s->token_at);
    s->calls = calls;
    s->token_at = tokens;
    s->n = n;
}

void ct_stream_fill_gaps(struct ct_stream *s, const struct ct_job *job)
{
    struct filling f = {.s = s, .job = job};

    if (s->token_with) /* ordinals count captures, not runs */
        return;
    name_lanes(&f);
    find_lost(&f);
    s->lossy = f.any || f.nlost > 0 || s->process->lost > 0;
    s->unnamed = f.unnamed;
    if (f.nlost && !is_guesswork(&f))
        insert(&f);
    free(f.lane_of);
    free(f.only);
    free(f.place_of);
    free(f.after);
    free(f.followed);
    free(f.next);
    free(f.lost);
}
