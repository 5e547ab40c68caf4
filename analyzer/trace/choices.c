/*
 * Which op each of NCCL's choices is about. Nothing in them names the call, so
 * it follows from order: the nth of its communicator and kind (of sends and
 * recvs: and peer) that NCCL launched. Its bytes have to be the op's; from the
 * first that is not so on, nothing of that communicator is believed. NCCL
 * launches the ops of a group in an order of its own (by size): there the bytes
 * say which is which.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/intern.h"
#include "trace/load.h"

struct list { /* of items by key: of key k those from first[k] on */
    int *first, *items;
};

struct joining { /* of what one source says: the log, or the profiler */
    struct ct_loader *loader;
    struct ct_process *p;
    bool by_plugin;
    struct ct_intern keys;       /* communicator, operation, peer */
    int *class_key, *choice_key; /* per op class, choice class; CT_NONE */
    struct list ops, choices;
    struct ct_choice_stop *stops; /* per communicator; op INT_MAX: none */
    int *of_op;                   /* per op: index of its choice; CT_NONE */
};

struct key {
    int comm, base, peer;
};

static struct key key_of(int comm, enum ct_op base, int peer)
{
    return (struct key){comm, (int)base,
                        base != CT_OP_COUNT && ct_is_p2p(base) ? peer
                                                               : CT_NONE};
}

/* Its own, else that of all collectives. */
static int key_of_class(const struct joining *j,
                        const struct ct_op_class_row *c)
{
    const struct key own = key_of(c->comm, c->base, c->peer);
    const struct key any = key_of(c->comm, CT_OP_COUNT, CT_NONE);
    const int key = ct_intern_find(&j->keys, &own, sizeof(own));

    return key == CT_NONE && ct_is_collective(c->base)
               ? ct_intern_find(&j->keys, &any, sizeof(any))
               : key;
}

static void name_keys(struct joining *j)
{
    const struct ct_process *p = j->p;
    int i;

    for (i = 0; i < p->nchoice_classes; i++) {
        const struct ct_choice_class_row *c = &p->choice_classes[i];
        const struct key key = key_of(c->comm, c->base, c->peer);

        j->choice_key[i] = c->by_plugin == j->by_plugin
                               ? ct_intern_add(&j->keys, &key, sizeof(key))
                               : CT_NONE;
    }
    for (i = 0; i < p->nclasses; i++) {
        const struct ct_op_class_row *c = &p->classes[i];

        /* A rank alone copies, and asks for no algorithm. */
        j->class_key[i] =
            p->comms[c->comm].nranks > 1 ? key_of_class(j, c) : CT_NONE;
    }
}

static int key_of_op(const struct joining *j, int i)
{
    const struct ct_op_row *op = &j->p->ops[i];

    return op->flags & CT_FLAG_ZERO ? CT_NONE : j->class_key[op->cls];
}

static int key_of_choice(const struct joining *j, int i)
{
    return j->choice_key[j->loader->choices[i].cls];
}

/* Items 0..n by their keys, in their order. */
static void sort_by_key(const struct joining *j, struct list *list, int n,
                        int (*key)(const struct joining *, int))
{
    const int nkeys = j->keys.n;
    int i, k;

    list->first = ct_alloc((size_t)nkeys + 2, sizeof(int));
    list->items = ct_alloc((size_t)n + 1, sizeof(int));
    for (i = 0; i < n; i++)
        if ((k = key(j, i)) != CT_NONE)
            list->first[k + 2]++;
    for (k = 2; k <= nkeys; k++)
        list->first[k] += list->first[k - 1];
    for (i = 0; i < n; i++)
        if ((k = key(j, i)) != CT_NONE)
            list->items[list->first[k + 1]++] = i;
}

static const struct ct_op_class_row *class_of(const struct joining *j, int op)
{
    return &j->p->classes[j->p->ops[op].cls];
}

static const struct ct_choice_class_row *said_by(const struct joining *j,
                                                 int choice)
{
    return &j->p->choice_classes[j->loader->choices[choice].cls];
}

/* What NCCL calls the bytes of an op: S, or what one rank brings. */
static uint64_t bytes_of(const struct joining *j, int op, bool whole)
{
    const struct ct_op_class_row *class = class_of(j, op);

    return whole || ct_op_infos[class->kind].size != CT_ALL_SHARES
               ? class->bytes
               : class->bytes / (uint64_t)j->p->comms[class->comm].nranks;
}

static void stop(struct joining *j, int comm, int op, uint64_t said, bool lost)
{
    if (op < j->stops[comm].op)
        j->stops[comm] = (struct ct_choice_stop){comm, op, said, lost};
}

struct sized {
    uint64_t bytes;
    int item;
};

static int by_bytes(const void *left, const void *right)
{
    const struct sized *a = left, *b = right;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return a->item - b->item;
}

/* Gives each choice an op of its size; false: one finds none. */
static bool fit(struct joining *j, struct sized *ops, int nops,
                const struct sized *choices, int nchoices, bool whole)
{
    int o, c = 0;

    for (o = 0; o < nops; o++)
        ops[o].bytes = bytes_of(j, ops[o].item, whole);
    qsort(ops, (size_t)nops, sizeof(*ops), by_bytes);
    for (o = 0; o < nops && c < nchoices; o++)
        if (ops[o].bytes == choices[c].bytes)
            j->of_op[ops[o].item] = choices[c++].item;
    for (o = 0; o < nops && c < nchoices; o++)
        j->of_op[ops[o].item] = CT_NONE;
    return c == nchoices;
}

static bool fit_group(struct joining *j, const int *ops, int nops,
                      const int *choices, int nchoices)
{
    struct sized *sides =
        ct_alloc((size_t)nops + (size_t)nchoices, sizeof(*sides));
    bool fits;
    int i;

    for (i = 0; i < nops; i++)
        sides[i].item = ops[i];
    for (i = 0; i < nchoices; i++)
        sides[nops + i] =
            (struct sized){said_by(j, choices[i])->bytes, choices[i]};
    qsort(sides + nops, (size_t)nchoices, sizeof(*sides), by_bytes);
    fits = fit(j, sides, nops, sides + nops, nchoices, false) ||
           fit(j, sides, nops, sides + nops, nchoices, true);
    free(sides);
    return fits;
}

static bool is_said_of(const struct joining *j, int op, int choice)
{
    const uint64_t said = said_by(j, choice)->bytes;

    return said == bytes_of(j, op, false) || said == bytes_of(j, op, true);
}

static bool fit_one(struct joining *j, int op, int choice)
{
    if (!is_said_of(j, op, choice))
        return false;
    j->of_op[op] = choice;
    return true;
}

/* Launched together, so that their order is NCCL's. */
static bool together(const struct ct_process *p, int a, int b)
{
    const struct ct_op_row *x = &p->ops[a], *y = &p->ops[b];

    return x->flags & y->flags & CT_FLAG_GROUPED && x->launch == y->launch &&
           p->classes[x->cls].graph == p->classes[y->cls].graph;
}

/* Records are missing before it: who knows of what. */
static bool follows_gap(const struct joining *j, const int *ops, int at)
{
    const struct ct_op_row *op = &j->p->ops[ops[at]];

    if (!j->p->lost || !ct_is_p2p(class_of(j, ops[at])->base))
        return false;
    return op->ordinal > (at ? j->p->ops[ops[at - 1]].ordinal + 1 : 0);
}

/* The window of ops, launched together, that the nth belongs to. */
struct window {
    int begin, end;
};

/* Moves on to that of n, which is not before it. */
static void move(struct joining *j, struct window *w, const int *ops, int nops,
                 int n)
{
    for (; w->end <= n; w->end++) {
        if (w->end && !together(j->p, ops[w->end - 1], ops[w->end]))
            w->begin = w->end;
        if (follows_gap(j, ops, w->end))
            stop(j, class_of(j, ops[w->end])->comm, ops[w->end], 0, true);
    }
    while (w->end < nops && together(j->p, ops[w->end - 1], ops[w->end]))
        w->end++;
}

static bool fits(struct joining *j, const struct window *w, const int *ops,
                 const int *choices, int nchoices)
{
    if (w->end - w->begin == 1 && nchoices == 1)
        return fit_one(j, ops[w->begin], *choices);
    return fit_group(j, ops + w->begin, w->end - w->begin, choices, nchoices);
}

/* The log counts what it says; the recorder knows the profiler's calls, which
 * come in NCCL's order all the same. */
static bool is_in(const struct joining *j, const struct window *w, int choice)
{
    const uint32_t n = j->loader->choices[choice].n;

    return n >= (uint32_t)w->begin && n < (uint32_t)w->end;
}

static void join_key(struct joining *j, const int *ops, int nops,
                     const int *choices, int nchoices)
{
    const struct ct_choice_row *rows = j->loader->choices;
    struct window w = {0, 0};
    int c, next;

    for (c = 0; c < nchoices; c = next) {
        const struct ct_choice_class_row *said = said_by(j, choices[c]);
        const uint32_t n = rows[choices[c]].n;
        int at = j->p->nops;

        next = c + 1;
        if (n < (uint32_t)w.end)
            continue; /* said twice */
        if (n < (uint32_t)nops) {
            move(j, &w, ops, nops, (int)n);
            at = ops[w.begin];
        }
        while (
            next < nchoices && n < (uint32_t)nops &&
            next - c < w.end - w.begin && is_in(j, &w, choices[next]) &&
            (j->by_plugin || rows[choices[next]].n > rows[choices[next - 1]].n))
            next++;
        if (n >= (uint32_t)nops || !fits(j, &w, ops, choices + c, next - c)) {
            stop(j, said->comm, at, said->bytes, false);
            return;
        }
    }
}

/* Collectives of a communicator count together, so a gap may be of any. */
static void stop_at_gaps(struct joining *j)
{
    const struct ct_process *p = j->p;
    uint32_t *next;
    int i;

    if (!p->lost)
        return;
    next = ct_alloc((size_t)p->ncomms, sizeof(*next));
    for (i = 0; i < p->nops; i++) {
        const int comm = class_of(j, i)->comm;

        if (!ct_is_collective(class_of(j, i)->kind))
            continue;
        if (p->ops[i].ordinal > next[comm])
            stop(j, comm, i, 0, true);
        if (p->ops[i].ordinal >= next[comm])
            next[comm] = p->ops[i].ordinal + 1;
    }
    free(next);
}

/* Replays count nowhere: their n is that of the op which was captured. */
static bool is_replay(const struct joining *j, int choice)
{
    return j->loader->choices[choice].launch != CT_NONE;
}

static int op_of_replay(const struct joining *j, int choice)
{
    const struct ct_choice_row *row = &j->loader->choices[choice];
    const int key = j->choice_key[row->cls];
    const int *ops = j->ops.items + j->ops.first[key];
    const int nops = j->ops.first[key + 1] - j->ops.first[key];

    if (row->n >= (uint32_t)nops || class_of(j, ops[row->n])->graph == CT_NONE)
        return CT_NONE;
    return ops[row->n];
}

static void add_kernel(struct joining *j, int op,
                       const struct ct_choice_row *row)
{
    struct ct_process *p = j->p;

    if (row->gpu_ns == CT_NO_TIME)
        return;
    p->kernels = ct_grow(p->kernels, &j->loader->kernel_capacity, p->nkernels,
                         sizeof(*p->kernels));
    p->kernels[p->nkernels++] = (struct ct_kernel_row){
        .op = op,
        .launch = row->launch,
        .start_ns = row->start_ns,
        .gpu_ns = row->gpu_ns,
    };
}

static bool differs(const char *a, const char *b)
{
    return a && b && strcmp(a, b) != 0;
}

/* The profiler's word replaces that of the log, which says the same. */
static void set_choice(struct ct_process *p, int op, int class)
{
    const struct ct_choice_class_row *now = &p->choice_classes[class];

    if (p->op_choices[op] != CT_NONE) {
        const struct ct_choice_class_row *old =
            &p->choice_classes[p->op_choices[op]];

        p->disagreed += differs(old->algorithm, now->algorithm) ||
                        differs(old->protocol, now->protocol);
    }
    p->op_choices[op] = class;
}

/* The first run says it, where the profiler said nothing of the op by itself.
 */
static void set_replayed(struct ct_process *p, int op, int class)
{
    const int now = p->op_choices[op];

    if (now == CT_NONE || !p->choice_classes[now].by_plugin)
        set_choice(p, op, class);
}

static bool is_believed(const struct joining *j, int op)
{
    return op < j->stops[class_of(j, op)->comm].op;
}

/* Returns how many choices found their op. */
static int64_t place(struct joining *j)
{
    const struct ct_choice_row *rows = j->loader->choices;
    int64_t placed = 0;
    int i, op;

    for (i = 0; i < j->p->nops; i++)
        if (j->of_op[i] != CT_NONE && is_believed(j, i)) {
            set_choice(j->p, i, rows[j->of_op[i]].cls);
            add_kernel(j, i, &rows[j->of_op[i]]);
            placed++;
        }
    for (i = 0; i < j->loader->nchoices; i++) {
        if (j->choice_key[rows[i].cls] == CT_NONE || !is_replay(j, i))
            continue;
        op = op_of_replay(j, i);
        if (op == CT_NONE || !is_believed(j, op) || !is_said_of(j, op, i))
            continue;
        set_replayed(j->p, op, rows[i].cls);
        add_kernel(j, op, &rows[i]);
        placed++;
    }
    return placed;
}

static void keep_stops(struct joining *j, int *capacity_p)
{
    struct ct_process *p = j->p;
    int i, c;

    for (c = 0; c < p->ncomms; c++) {
        if (j->stops[c].op == INT_MAX)
            continue;
        for (i = 0; i < p->nchoice_stops; i++)
            if (p->choice_stops[i].comm == c)
                break;
        if (i < p->nchoice_stops && p->choice_stops[i].op <= j->stops[c].op)
            continue;
        p->choice_stops =
            ct_grow(p->choice_stops, capacity_p, i, sizeof(*p->choice_stops));
        p->choice_stops[i] = j->stops[c];
        p->nchoice_stops += i == p->nchoice_stops;
    }
}

static int key_of_first(const struct joining *j, int i)
{
    return is_replay(j, i) ? CT_NONE : key_of_choice(j, i);
}

static void join_keys(struct joining *j)
{
    int k;

    sort_by_key(j, &j->ops, j->p->nops, key_of_op);
    sort_by_key(j, &j->choices, j->loader->nchoices, key_of_first);
    for (k = 0; k < j->keys.n; k++)
        join_key(j, j->ops.items + j->ops.first[k],
                 j->ops.first[k + 1] - j->ops.first[k],
                 j->choices.items + j->choices.first[k],
                 j->choices.first[k + 1] - j->choices.first[k]);
    stop_at_gaps(j);
}

static int64_t join_source(struct ct_loader *loader, bool by_plugin,
                           int *stop_capacity_p)
{
    struct ct_process *p = loader->process;
    struct joining j = {
        .loader = loader,
        .p = p,
        .by_plugin = by_plugin,
        .class_key = ct_alloc((size_t)p->nclasses, sizeof(int)),
        .choice_key = ct_alloc((size_t)p->nchoice_classes, sizeof(int)),
        .stops = ct_alloc((size_t)p->ncomms, sizeof(struct ct_choice_stop)),
        .of_op = ct_alloc((size_t)p->nops, sizeof(int)),
    };
    int64_t placed = 0;
    int i;

    for (i = 0; i < p->ncomms; i++)
        j.stops[i].op = INT_MAX;
    memset(j.of_op, 0xff, (size_t)p->nops * sizeof(int)); /* CT_NONE */
    name_keys(&j);
    if (j.keys.n) {
        join_keys(&j);
        placed = place(&j);
        keep_stops(&j, stop_capacity_p);
    }
    ct_intern_release(&j.keys);
    free(j.class_key);
    free(j.choice_key);
    free(j.ops.first);
    free(j.ops.items);
    free(j.choices.first);
    free(j.choices.items);
    free(j.stops);
    free(j.of_op);
    return placed;
}

static int by_op(const void *left, const void *right)
{
    const struct ct_kernel_row *a = left, *b = right;

    if (a->op != b->op)
        return a->op < b->op ? -1 : 1;
    return (a->launch > b->launch) - (a->launch < b->launch);
}

void ct_load_join_choices(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    int capacity = 0;

    if (!loader->nchoices)
        return;
    p->op_choices = ct_alloc((size_t)p->nops, sizeof(int));
    memset(p->op_choices, 0xff, (size_t)p->nops * sizeof(int)); /* CT_NONE */
    p->unplaced += loader->nchoices - join_source(loader, false, &capacity) -
                   join_source(loader, true, &capacity);
    if (p->nkernels)
        qsort(p->kernels, (size_t)p->nkernels, sizeof(*p->kernels), by_op);
    free(loader->choices);
    loader->choices = NULL;
    loader->nchoices = 0;
}
