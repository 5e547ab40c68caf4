/*
 * Evidence from what is not an all-reduce: sharded parameters, their replicas,
 * broadcasts.
 */
#include <math.h>

#include "roles/evidence.h"

#define ALIKE 1.01 /* sizes within 1 % are equal */

static bool same(double a, double b)
{
    return a <= b * ALIKE && b <= a * ALIKE;
}

static bool near_ratio(double a, double b, double ratio)
{
    return b > 0 && fabs(a / b / ratio - 1) < .12;
}

static const struct ct_use_size *top_of(const struct ct_use *use,
                                        enum ct_op base)
{
    for (int i = 0; i < use->nsizes; i++)
        if (use->sizes[i].base == base)
            return &use->sizes[i];
    return NULL;
}

static int sizes_of(const struct ct_use *use, enum ct_op base)
{
    int n = 0;

    for (int i = 0; i < use->nsizes; i++)
        n += use->sizes[i].base == base;
    return n;
}

static bool is_gathered(const struct ct_use *use, uint64_t bytes)
{
    for (int i = 0; i < use->nsizes; i++)
        if (use->sizes[i].base == CT_OP_ALL_GATHER &&
            same((double)use->sizes[i].bytes, (double)bytes))
            return true;
    return false;
}

/* Parameters are gathered whenever a micro-batch needs them, but their
 * gradients are scattered once a step, unit by unit: each size that is
 * scattered is gathered, too, and rare. */
static bool scatters_gradients(const struct ct_use *use)
{
    int scattered = 0;

    for (int i = 0; i < use->nsizes; i++) {
        const struct ct_use_size *size = &use->sizes[i];

        if (size->base != CT_OP_REDUCE_SCATTER)
            continue;
        scattered++;
        if (!is_gathered(use, size->bytes))
            return false;
    }
    return scattered >= 2;
}

void ct_weigh_shards(const struct ct_use *use, struct ct_verdict *verdict)
{
    const struct ct_use_size *gather = top_of(use, CT_OP_ALL_GATHER);
    const struct ct_use_size *scatter = top_of(use, CT_OP_REDUCE_SCATTER);
    const double gathers = use->gathers * use->calls;
    const double scatters = use->scatters * use->calls;

    if (use->gathers + use->scatters < .5)
        return;
    if (sizes_of(use, CT_OP_ALL_GATHER) >= 2 &&
        sizes_of(use, CT_OP_REDUCE_SCATTER) >= 2)
        ct_evidence_add(verdict, (struct ct_weights){.tp = -1.5, .dp = 2},
                        "it gathers and scatters %d different sizes, as "
                        "parameters are",
                        sizes_of(use, CT_OP_ALL_GATHER));
    if (scatters_gradients(use) && gathers >= scatters)
        ct_evidence_add(verdict, (struct ct_weights){.tp = -1, .dp = 2},
                        "what it scatters (%s call%s) it gathers, too "
                        "(%s), size by size, as shards of parameters",
                        CT_NUM(scatters, 3), ct_plural(scatters),
                        CT_NUM(gathers, 3));
    if (scatters > 0 && scatters <= 2.5 && gathers <= 2.5)
        ct_evidence_add(verdict, (struct ct_weights){.tp = -2, .dp = 1.5},
                        "%s scatter%s and %s gather%s per step, as a "
                        "sharded optimizer",
                        CT_NUM(scatters, 3), ct_plural(scatters),
                        CT_NUM(gathers, 3), ct_plural(gathers));
    if (!gather || !scatter)
        return;
    if (near_ratio(gathers, scatters, 2))
        ct_evidence_add(verdict, (struct ct_weights){.tp = -.5, .dp = 1},
                        "two gathers for each scatter, as sharded parameters "
                        "take");
    if (near_ratio(gathers, scatters, 1.5) && use->nsizes <= 3)
        ct_evidence_add(verdict, (struct ct_weights){.tp = 2, .dp = -1},
                        "6 gathers for 4 scatters of one size, as sequence "
                        "parallelism takes");
    if (same((double)scatter->bytes, 2 * (double)gather->bytes))
        ct_evidence_add(verdict, (struct ct_weights){.tp = -1, .dp = 1.5},
                        "it scatters twice the bytes that it gathers, as "
                        "gradients of double width");
}

void ct_weigh_replicas(const struct ct_view *view,
                       const struct ct_family *family,
                       struct ct_verdict *verdict)
{
    const struct ct_use_size *reduce = top_of(&family->mean, CT_OP_ALL_REDUCE);

    for (int i = 0; reduce && i < view->families->n; i++) {
        const struct ct_family *other = &view->families->families[i];
        const struct ct_use_size *scatter =
            top_of(&other->mean, CT_OP_REDUCE_SCATTER);

        if (other == family || !scatter ||
            !same((double)scatter->bytes,
                  (double)reduce->bytes * other->mean.nranks) ||
            !near_ratio(reduce->calls, scatter->calls, 1) ||
            !ct_families_cross(view->job, view->uses, family, other))
            continue;
        ct_evidence_add(verdict, (struct ct_weights){.tp = -3, .dp = 4},
                        "each of its all-reduces has the size of a shard that "
                        "another group scatters");
        return;
    }
}

void ct_weigh_broadcasts(const struct ct_use *use, struct ct_verdict *verdict)
{
    if (use->broadcasts < .5)
        return;
    if (use->nranks == 2 && use->calls > 3.5)
        ct_evidence_add(verdict,
                        (struct ct_weights){.tp = -1, .pp = 2.5, .dp = -1},
                        "%s broadcasts between two ranks, as a pipeline "
                        "without send/recv",
                        CT_NUM(use->calls, 4));
    else
        ct_evidence_add(verdict, (struct ct_weights){.tp = -1, .dp = -1},
                        "it mostly broadcasts");
}
