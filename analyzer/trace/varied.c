/*
 * Kinds of calls whose sizes follow no pattern: experts get as many tokens as
 * are routed to them, sequences are as long as they are. A pattern comes again,
 * so that few runs of sizes are new ones; without it nearly all are, or each
 * size is called at one time (there and back, forward and backward) and no
 * more.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/steps.h"

#define RUN 4
#define FEW_SIZES 3
#define FEW_CALLS 12
#define MANY_CALLS 4096 /* are enough to see it */
#define NEW_SHARE 0.6
#define LOCAL_SHARE 0.8 /* of the calls: their size is called at one time */
#define FEW_TIMES 8     /* a benchmark calls each more often */
#define ONE_TIME 3      /* 1 / ONE_TIME of the run at most */

struct sizes { /* of a kind */
    int n, runs, local;
    uint64_t last[RUN];
};

struct size { /* of calls of a kind, by their number among its calls */
    int kind, n, first, last;
};

struct looking {
    struct ct_stream *s;
    struct sizes *kinds;
    struct size *sizes;
    struct ct_intern runs, keys;
    int capacity;
};

static void add_call(struct looking *l, int kind, uint64_t count)
{
    const uint64_t key[2] = {(uint64_t)kind, count};
    const int known = l->keys.n, at = l->kinds[kind].n;
    const int i = ct_intern_add(&l->keys, key, sizeof(key));

    if (i == known) {
        l->sizes = ct_grow(l->sizes, &l->capacity, i, sizeof(*l->sizes));
        l->sizes[i] = (struct size){.kind = kind, .first = at};
    }
    l->sizes[i].n++;
    l->sizes[i].last = at;
}

static void add_size(struct sizes *sizes, struct ct_intern *runs, int kind,
                     uint64_t count)
{
    uint64_t key[RUN + 1] = {(uint64_t)kind};
    const int known = runs->n;

    memmove(sizes->last, sizes->last + 1, sizeof(sizes->last) - sizeof(count));
    sizes->last[RUN - 1] = count;
    if (++sizes->n < RUN)
        return;
    memcpy(key + 1, sizes->last, sizeof(sizes->last));
    sizes->runs += ct_intern_add(runs, key, sizeof(key)) == known;
}

static bool is_varied(const struct sizes *sizes, int distinct)
{
    if (sizes->n < FEW_CALLS)
        return 2 * distinct > sizes->n;
    return sizes->runs > NEW_SHARE * (sizes->n - RUN + 1) ||
           sizes->local > LOCAL_SHARE * sizes->n;
}

static void look(struct looking *l)
{
    const struct ct_process *p = l->s->process;
    int o, i;

    for (o = 0; o < p->nops; o++) {
        const int kind = l->s->kind_of[p->ops[o].cls];
        const uint64_t count = p->classes[p->ops[o].cls].count;

        if (l->s->kinds[kind].ntokens < FEW_SIZES ||
            l->kinds[kind].n >= MANY_CALLS)
            continue;
        add_call(l, kind, count);
        add_size(&l->kinds[kind], &l->runs, kind, count);
    }
    for (i = 0; i < l->keys.n; i++) {
        const struct size *size = &l->sizes[i];
        struct sizes *kind = &l->kinds[size->kind];

        if (size->n <= FEW_TIMES &&
            ONE_TIME * (size->last - size->first) < kind->n)
            kind->local += size->n;
    }
}

void ct_stream_find_varied(struct ct_stream *s)
{
    struct looking l = {.s = s,
                        .kinds = ct_alloc((size_t)s->nkinds, sizeof(*l.kinds))};
    int k;

    look(&l);
    for (k = 0; k < s->nkinds; k++)
        s->kinds[k].varied = s->kinds[k].ntokens >= FEW_SIZES &&
                             is_varied(&l.kinds[k], s->kinds[k].ntokens);
    ct_intern_release(&l.runs);
    ct_intern_release(&l.keys);
    free(l.kinds);
    free(l.sizes);
}
