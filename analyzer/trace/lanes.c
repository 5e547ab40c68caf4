/* Ordinals of each lane -> instances, numbered lane by lane. */
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/match.h"

/* A lane with more than this many unused ordinals per used one (most ranks or
 * most of the run missing) is searched instead of indexed. */
#define MAX_SPARSENESS 4

void ct_lanes_lay_out(struct ct_matching *m)
{
    int l;

    for (l = 0; l < m->nlanes; l++) {
        struct ct_lane *lane = &m->lanes[l];
        int64_t span = lane->n ? (int64_t)lane->high - lane->low + 1 : 0;

        lane->slots = CT_NONE;
        if (span <= MAX_SPARSENESS * lane->n + 64) {
            lane->slots = m->nslots;
            m->nslots += span;
        } else {
            lane->sparse = ct_alloc((size_t)lane->n, sizeof(*lane->sparse));
        }
    }
    m->slots = ct_alloc((size_t)m->nslots, sizeof(*m->slots));
}

void ct_lanes_mark(struct ct_matching *m, int i)
{
    const struct ct_process *p = ct_process_at(m, i);
    int o;

    for (o = 0; o < p->nops; o++) {
        const struct ct_op_row *op = &p->ops[o];
        struct ct_lane *lane = &m->lanes[m->infos[i][op->cls].lane];

        if (lane->sparse)
            lane->sparse[lane->nsparse++] = op->ordinal;
        else
            m->slots[lane->slots + (op->ordinal - lane->low)] = 1;
    }
}

static int by_ordinal(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

    return (a > b) - (a < b);
}

static void sort_sparse(struct ct_lane *lane)
{
    int i, n = 0;

    qsort(lane->sparse, (size_t)lane->nsparse, sizeof(*lane->sparse),
          by_ordinal);
    for (i = 0; i < lane->nsparse; i++)
        if (n == 0 || lane->sparse[i] != lane->sparse[n - 1])
            lane->sparse[n++] = lane->sparse[i];
    lane->nsparse = n;
}

static void begin_instance(struct ct_matching *m, const struct ct_lane *lane,
                           int i, uint32_t ordinal)
{
    m->job->instances[i] = (struct ct_instance){.comm = lane->comm,
                                                .ordinal = ordinal,
                                                .transfer_ns = INT64_MAX,
                                                .usage = CT_NONE};
    m->signature_of[i] = CT_NONE;
}

static void number_lane(struct ct_matching *m, struct ct_lane *lane, int *n_p)
{
    int64_t span = (int64_t)lane->high - lane->low + 1, k;

    lane->first = *n_p;
    for (k = 0; lane->n && !lane->sparse && k < span; k++) {
        int32_t *slot = &m->slots[lane->slots + k];

        *slot = *slot ? (*n_p)++ : CT_NONE;
        if (*slot != CT_NONE)
            begin_instance(m, lane, *slot, lane->low + (uint32_t)k);
    }
    for (k = 0; lane->sparse && k < lane->nsparse; k++)
        begin_instance(m, lane, (*n_p)++, lane->sparse[k]);
    lane->count = *n_p - lane->first;
    if (lane->kind == CT_LANE_P2P) {
        lane->pair = m->npairs;
        m->npairs += lane->count;
    }
}

void ct_lanes_number(struct ct_matching *m)
{
    int64_t total = 0, k;
    int l, n = 0;

    for (k = 0; k < m->nslots; k++)
        total += m->slots[k];
    for (l = 0; l < m->nlanes; l++)
        if (m->lanes[l].sparse) {
            sort_sparse(&m->lanes[l]);
            total += m->lanes[l].nsparse;
        }
    m->job->instances = ct_arena_alloc(m->trace->arena, (size_t)total,
                                       sizeof(*m->job->instances));
    m->signature_of = ct_alloc((size_t)total, sizeof(*m->signature_of));
    for (l = 0; l < m->nlanes; l++)
        number_lane(m, &m->lanes[l], &n);
    m->job->ninstances = n;
    m->pairs = ct_alloc((size_t)m->npairs, sizeof(*m->pairs));
    memset(m->pairs, 0xff, (size_t)m->npairs * sizeof(*m->pairs));
}

int ct_lane_instance(const struct ct_matching *m, const struct ct_lane *lane,
                     uint32_t ordinal)
{
    const uint32_t *found;

    if (!lane->sparse)
        return m->slots[lane->slots + (ordinal - lane->low)];
    found = bsearch(&ordinal, lane->sparse, (size_t)lane->nsparse,
                    sizeof(ordinal), by_ordinal);
    return lane->first + (int)(found - lane->sparse);
}
