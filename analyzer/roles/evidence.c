#include "roles/evidence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define ALIKE 1.01 /* sizes within 1 % are equal */

static bool same(double a, double b)
{
    return a <= b * ALIKE && b <= a * ALIKE;
}

static bool near_ratio(double a, double b, double ratio)
{
    return b > 0 && fabs(a / b / ratio - 1) < .12;
}

static const char *per(const struct ct_view *view)
{
    return view->job->nsteps > 0 ? "per step" : "in all";
}

static bool has_pipeline(const struct ct_view *view)
{
    return view->chains->npaths > 0 && view->chains->payload > 0;
}

static void start(struct ct_verdict *verdict, struct ct_weights prior)
{
    *verdict = (struct ct_verdict){.explained = 1};
    verdict->prior[CT_ROLE_UNKNOWN] = prior.none;
    verdict->prior[CT_ROLE_TP] = prior.tp;
    verdict->prior[CT_ROLE_PP] = prior.pp;
    verdict->prior[CT_ROLE_DP] = prior.dp;
    verdict->prior[CT_ROLE_CONTROL] = prior.control;
}

/* Calls that carry the b*s*h of the pipeline: its size, or (gather, scatter)
 * its size times the ranks, since sequence parallelism sends slices. */
static double payload_calls(const struct ct_view *view,
                            const struct ct_use *use, double *bytes_p)
{
    const double payload = (double)view->chains->payload;
    double calls = 0;

    *bytes_p = 0;
    for (int i = 0; i < use->nsizes; i++) {
        const double bytes = (double)use->sizes[i].bytes;
        const bool sliced = use->sizes[i].base == CT_OP_ALL_GATHER ||
                            use->sizes[i].base == CT_OP_REDUCE_SCATTER;

        if (!same(bytes, payload) &&
            !(sliced && same(bytes, payload * use->nranks)))
            continue;
        if (use->sizes[i].base == CT_OP_BROADCAST)
            continue;
        calls += use->sizes[i].calls;
        *bytes_p += bytes * use->sizes[i].calls;
    }
    return calls;
}

static void weigh_payload(const struct ct_view *view, const struct ct_use *use,
                          struct ct_verdict *verdict)
{
    double bytes;
    const double calls = payload_calls(view, use, &bytes);
    const double scatter_like = use->scatters + use->gathers;
    char size[32];

    if (!has_pipeline(view))
        return;
    ct_bytes_text((double)view->chains->payload, size, sizeof size);
    if (calls < 3.5 || calls < use->calls / 2) {
        ct_evidence_add(verdict, (struct ct_weights){.tp = -1.5, .dp = .5},
                        "its calls do not have the size that the pipeline "
                        "sends (%s)",
                        size);
    } else if (scatter_like > .5 && use->turns < .5) {
        ct_evidence_add(verdict, (struct ct_weights){.tp = 1, .dp = -1},
                        "its size is the pipeline's %s, but gathers and "
                        "scatters do not alternate",
                        size);
    } else {
        verdict->explained = fmax(.7, fmin(1, bytes / use->bytes));
        ct_evidence_add(verdict, (struct ct_weights){.tp = 4, .dp = -2},
                        "%.4g calls %s of b*s*h, the %s that the pipeline "
                        "sends%s",
                        calls, per(view), size,
                        scatter_like > .5 ? ", in slices" : "");
    }
}

static bool whole(double x)
{
    return x > .5 && fabs(x - round(x)) < .02 * x;
}

static void weigh_algebra(const struct ct_view *view, double calls,
                          struct ct_verdict *verdict)
{
    const double m = view->chains->micro_batches;

    if (view->job->nsteps == 0 || calls < 3.5)
        return;
    if (has_pipeline(view) && whole(m) && whole(calls / m / 4)) {
        ct_evidence_add(
            verdict, (struct ct_weights){.tp = 1},
            "%.0f all-reduces per step = 4 x %.0f layers x %.0f micro-batches",
            calls, round(calls / m / 4), round(m));
    } else if (!has_pipeline(view) && whole(calls / 4)) {
        ct_evidence_add(verdict, (struct ct_weights){.tp = .5},
                        "%.0f all-reduces per step, a multiple of 4 as a "
                        "layer's forward and backward take",
                        calls);
    }
}

/* Many calls of one size, or few. */
static void weigh_calls(const struct ct_view *view, const struct ct_use *use,
                        struct ct_verdict *verdict)
{
    const double top = use->sizes[0].calls;
    const bool one = top >= .7 * use->calls;
    const double scale = view->job->nsteps > 0 ? 1 : .5;
    char size[32];

    if (use->reduces < .5)
        return;
    ct_bytes_text((double)use->sizes[0].bytes, size, sizeof size);
    if (use->calls < 3.5) {
        ct_evidence_add(verdict, (struct ct_weights){.tp = -1.5, .dp = 1},
                        "only %.3g calls %s", use->calls, per(view));
        return;
    }
    if (one && top > 15.5)
        ct_evidence_add(
            verdict, (struct ct_weights){.tp = 2.5 * scale, .dp = -2 * scale},
            "%.4g all-reduces of one size (%s) %s", top, size, per(view));
    else if (one && top > 7.5)
        ct_evidence_add(
            verdict, (struct ct_weights){.tp = 1.5 * scale, .dp = -.5 * scale},
            "%.4g all-reduces of one size (%s) %s", top, size, per(view));
    else if (one)
        ct_evidence_add(verdict, (struct ct_weights){.tp = .5},
                        "%.4g all-reduces of one size (%s) %s", top, size,
                        per(view));
    if (one)
        weigh_algebra(view, top, verdict);
}

static void weigh_sizes(const struct ct_view *view, const struct ct_use *use,
                        struct ct_verdict *verdict)
{
    const double most = use->sizes[0].calls;
    const double least = use->sizes[use->nsizes - 1].calls;

    if (view->job->nsteps == 0 || use->reduces < .5 || use->nsizes < 2 ||
        most > 1.5 * least)
        return;
    if (most <= 1.5)
        ct_evidence_add(
            verdict,
            (struct ct_weights){.tp = -2, .dp = use->nsizes > 2 ? 3 : 2.5},
            "%d different sizes, each once per step, as gradient buckets",
            use->nsizes);
    else
        ct_evidence_add(verdict, (struct ct_weights){.tp = -1, .dp = 1},
                        "%d different sizes, each as often as the others",
                        use->nsizes);
}

static void weigh_place(const struct ct_view *view, const struct ct_use *use,
                        struct ct_verdict *verdict)
{
    const double m = view->chains->micro_batches;
    const double inside = use->p2p_inside;

    if (view->job->nsteps == 0 || isnan(inside) || !has_pipeline(view))
        return;
    if (m < 1.5) { /* too few messages to tell places apart */
        if (inside <= .02)
            ct_evidence_add(verdict, (struct ct_weights){.dp = 1},
                            "no send/recv falls between its calls");
    } else if (inside <= .02) {
        ct_evidence_add(verdict, (struct ct_weights){.tp = -3, .dp = 3},
                        "its calls come in one piece, with no send/recv "
                        "between them");
    } else if (inside < .3) {
        ct_evidence_add(verdict, (struct ct_weights){.tp = -1.5, .dp = 1.5},
                        "only %.0f %% of a step's send/recv fall between its "
                        "calls",
                        100 * inside);
    } else {
        ct_evidence_add(verdict, (struct ct_weights){.tp = 2, .dp = -2},
                        "its calls are spread over the step: %.0f %% of the "
                        "send/recv fall between them",
                        100 * inside);
    }
}

/* Without a pipeline: layers call at even pauses, gradients at the end. */
static void weigh_pauses(const struct ct_view *view, const struct ct_use *use,
                         struct ct_verdict *verdict)
{
    if (has_pipeline(view) || isnan(use->gap_ratio) || use->reduces < .5 ||
        use->calls < 7.5 || use->sizes[0].calls < .7 * use->calls)
        return;
    if (use->gap_ratio <= 2.2)
        ct_evidence_add(verdict, (struct ct_weights){.tp = 1},
                        "pauses between its calls are alike, as between "
                        "layers (longest %.1f x the median)",
                        use->gap_ratio);
    else if (use->calls < 15.5 && use->gap_ratio > 3)
        ct_evidence_add(verdict, (struct ct_weights){.tp = -1, .dp = .5},
                        "one pause is %.1f x the median one, as forward is "
                        "before gradients",
                        use->gap_ratio);
}

static void weigh_reduction(const struct ct_use *use,
                            struct ct_verdict *verdict)
{
    if (use->averages >= .5)
        ct_evidence_add(verdict, (struct ct_weights){.tp = -2, .dp = 2},
                        "it divides by the number of ranks, as gradients "
                        "want");
}

static void weigh_init(const struct ct_use *use, struct ct_verdict *verdict)
{
    char size[32];

    if (!(use->init_bytes > 4096) || use->init_bytes < use->bytes / 8)
        return;
    ct_bytes_text(use->init_bytes, size, sizeof size);
    ct_evidence_add(verdict, (struct ct_weights){.dp = 1.5},
                    "%s are broadcast over it before the first step, as "
                    "parameters are",
                    size);
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

/* Gathers and scatters: sharded data parallelism or sequence parallelism. */
static void weigh_shards(const struct ct_use *use, struct ct_verdict *verdict)
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
    if (scatters > 0 && scatters <= 2.5 && gathers <= 2.5)
        ct_evidence_add(verdict, (struct ct_weights){.tp = -2, .dp = 1.5},
                        "%.3g scatters and %.3g gathers per step, as a "
                        "sharded optimizer",
                        scatters, gathers);
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

/* Replicas of shards: an all-reduce of what a scatter elsewhere left over. */
static void weigh_replicas(const struct ct_view *view,
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

static void weigh_broadcasts(const struct ct_use *use,
                             struct ct_verdict *verdict)
{
    if (use->broadcasts < .5)
        return;
    if (use->nranks == 2 && use->calls > 3.5)
        ct_evidence_add(verdict,
                        (struct ct_weights){.tp = -1, .pp = 2.5, .dp = -1},
                        "%.4g broadcasts between two ranks, as a pipeline "
                        "without send/recv",
                        use->calls);
    else
        ct_evidence_add(verdict, (struct ct_weights){.tp = -1, .dp = -1},
                        "it mostly broadcasts");
}

static int rank_of(const struct ct_view *view, const struct ct_comm *comm,
                   int i)
{
    const int process = comm->members[i].process;

    return process == CT_NONE ? CT_NONE : view->trace->processes[process].rank;
}

/* A weak hint only: layouts usually, not always, put tensor ranks side by
 * side. */
static void weigh_stride(const struct ct_view *view, const struct ct_use *use,
                         struct ct_verdict *verdict)
{
    const struct ct_comm *comm = &view->job->comms[use->comm];
    int stride = 0;

    if (comm->nranks >= view->job->world_size)
        return;
    for (int i = 1; i < comm->nranks; i++) {
        const int a = rank_of(view, comm, i - 1), b = rank_of(view, comm, i);

        if (a == CT_NONE || b == CT_NONE || (stride && b - a != stride))
            return;
        stride = b - a;
    }
    if (stride == 1)
        ct_evidence_add(verdict, (struct ct_weights){.tp = .3},
                        "its ranks follow each other");
    else if (stride > 1)
        ct_evidence_add(verdict, (struct ct_weights){.dp = .3},
                        "its ranks are %d apart", stride);
}

void ct_evidence_large(const struct ct_view *view,
                       const struct ct_family *family,
                       struct ct_verdict *verdict)
{
    const struct ct_use *use = &family->mean;
    char size[32];

    start(verdict, (struct ct_weights){.none = .5, .pp = -3, .control = -3});
    weigh_payload(view, use, verdict);
    weigh_calls(view, use, verdict);
    weigh_sizes(view, use, verdict);
    weigh_place(view, use, verdict);
    weigh_pauses(view, use, verdict);
    weigh_reduction(use, verdict);
    weigh_init(use, verdict);
    weigh_shards(use, verdict);
    weigh_replicas(view, family, verdict);
    weigh_broadcasts(use, verdict);
    weigh_stride(view, use, verdict);
    if (use->one_pipeline)
        ct_evidence_add(verdict, (struct ct_weights){.tp = -6, .dp = -6},
                        "it joins stages of one pipeline");
    ct_bytes_text(use->bytes, size, sizeof size);
    if (use->bytes <= 4096 && use->calls < 4.5)
        ct_evidence_add(verdict,
                        (struct ct_weights){.tp = -1, .dp = -1, .control = 4},
                        "%s %s in all", size, per(view));
}

void ct_evidence_small(const struct ct_view *view, const struct ct_use *use,
                       struct ct_verdict *verdict)
{
    start(verdict, (struct ct_weights){.pp = -1});
    ct_evidence_add(verdict,
                    (struct ct_weights){.control = use->calls > 64 ? 2.5 : 4},
                    "%.4g calls %s of at most %d elements", use->calls,
                    per(view), CT_SMALL_COUNT);
}

void ct_evidence_exchange(const struct ct_view *view, const struct ct_use *use,
                          struct ct_verdict *verdict)
{
    start(verdict,
          (struct ct_weights){.tp = -3, .pp = -3, .dp = -3, .control = -3});
    ct_evidence_add(verdict, (struct ct_weights){.none = 2},
                    "%.4g exchanges %s of every rank with every other",
                    use->calls, per(view));
}

/* The chain that most ranks of a communicator are in; NULL: none. */
static const struct ct_chain *chain_of(const struct ct_view *view,
                                       const struct ct_use *use)
{
    const struct ct_comm *comm = &view->job->comms[use->comm];

    for (int i = 0; i < comm->nranks; i++) {
        const int process = comm->members[i].process;

        if (process != CT_NONE && view->chains->chain[process] != CT_NONE)
            return &view->chains->chains[view->chains->chain[process]];
    }
    return NULL;
}

static void weigh_chain(const struct ct_chain *chain,
                        struct ct_verdict *verdict)
{
    switch (chain->shape) {
    case CT_CHAIN_PATH:
        ct_evidence_add(
            verdict, (struct ct_weights){.pp = chain->both_ways ? 2.5 : 1.5},
            "send/recv joins %d ranks to a row of stages, %s", chain->nranks,
            chain->both_ways ? "there and back" : "one way");
        break;
    case CT_CHAIN_CYCLE:
        ct_evidence_add(
            verdict, (struct ct_weights){.pp = chain->both_ways ? 1 : -1},
            "send/recv runs round a ring of %d ranks, %s", chain->nranks,
            chain->both_ways ? "both ways" : "one way");
        break;
    case CT_CHAIN_TOGETHER:
        ct_evidence_add(verdict, (struct ct_weights){.pp = -.5},
                        "two ranks that only ever send and receive at once");
        break;
    case CT_CHAIN_OTHER:
        ct_evidence_add(verdict, (struct ct_weights){.pp = .5},
                        "send/recv joins %d ranks, but not to a row",
                        chain->nranks);
        break;
    }
}

void ct_evidence_p2p(const struct ct_view *view, const struct ct_use *use,
                     struct ct_verdict *verdict)
{
    const struct ct_chain *chain = chain_of(view, use);
    char size[32];

    start(verdict, (struct ct_weights){.tp = -4, .dp = -4, .control = -3});
    if (!chain)
        return;
    weigh_chain(chain, verdict);
    ct_bytes_text((double)view->chains->payload, size, sizeof size);
    if (chain->shape == CT_CHAIN_PATH && view->chains->micro_batches > 0)
        ct_evidence_add(verdict, (struct ct_weights){.pp = 1},
                        "%.3g messages of %s per step, boundary and "
                        "direction",
                        view->chains->micro_batches, size);
    else if (chain->shape == CT_CHAIN_PATH && view->chains->payload > 0)
        ct_evidence_add(verdict, (struct ct_weights){.pp = 1},
                        "its messages are %s", size);
    if (use->nranks > chain->nranks)
        ct_evidence_add(verdict, (struct ct_weights){.pp = -.3},
                        "the communicator holds %d ranks, more than a "
                        "pipeline",
                        use->nranks);
}
