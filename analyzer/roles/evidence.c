#include "roles/evidence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define ALIKE 1.01 /* sizes within 1 % are equal */

static bool same(double a, double b)
{
    return a <= b * ALIKE && b <= a * ALIKE;
}

static bool has_pipeline(const struct ct_view *view)
{
    return view->chains->npaths > 0 && view->chains->payload > 0;
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
                        "%s call%s %s of b*s*h, the %s that the pipeline "
                        "sends%s",
                        CT_NUM(calls, 4), ct_plural(calls), ct_view_per(view),
                        size, scatter_like > .5 ? ", in slices" : "");
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
                        "only %s call%s %s", CT_NUM(use->calls, 3),
                        ct_plural(use->calls), ct_view_per(view));
        return;
    }
    if (one && top > 15.5)
        ct_evidence_add(
            verdict, (struct ct_weights){.tp = 2.5 * scale, .dp = -2 * scale},
            "%s all-reduces of one size (%s) %s", CT_NUM(top, 4), size,
            ct_view_per(view));
    else if (one && top > 7.5)
        ct_evidence_add(
            verdict, (struct ct_weights){.tp = 1.5 * scale, .dp = -.5 * scale},
            "%s all-reduces of one size (%s) %s", CT_NUM(top, 4), size,
            ct_view_per(view));
    else if (one)
        ct_evidence_add(verdict, (struct ct_weights){.tp = .5},
                        "%s all-reduces of one size (%s) %s", CT_NUM(top, 4),
                        size, ct_view_per(view));
    if (one)
        weigh_algebra(view, top, verdict);
}

static void weigh_sizes(const struct ct_view *view, const struct ct_use *use,
                        struct ct_verdict *verdict)
{
    const double most = use->sizes[0].calls;
    const double least = use->sizes[use->nsizes - 1].calls;

    if (view->job->nsteps == 0 || use->reduces < .5 || use->nsizes < 2)
        return;
    if (most > 1.5 * least) {
        if (use->calls < 15.5 && !whole(most / 4) && whole(least) &&
            use->sizes[0].bytes > use->sizes[use->nsizes - 1].bytes)
            ct_evidence_add(verdict, (struct ct_weights){.tp = -1, .dp = 1.5},
                            "%s call%s per step of one size and smaller "
                            "ones, as buckets and their rest",
                            CT_NUM(most, 3), ct_plural(most));
        return;
    }
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
        /* Sharded parameters are gathered all over the step, too. */
        const bool shards = use->gathers + use->scatters > .5;

        ct_evidence_add(verdict,
                        shards ? (struct ct_weights){.tp = 1}
                               : (struct ct_weights){.tp = 2, .dp = -2},
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

    ct_verdict_start(verdict,
                     (struct ct_weights){.none = .5, .pp = -3, .control = -3});
    weigh_payload(view, use, verdict);
    weigh_calls(view, use, verdict);
    weigh_sizes(view, use, verdict);
    weigh_place(view, use, verdict);
    weigh_pauses(view, use, verdict);
    weigh_reduction(use, verdict);
    weigh_init(use, verdict);
    ct_weigh_shards(use, verdict);
    ct_weigh_replicas(view, family, verdict);
    ct_weigh_broadcasts(use, verdict);
    weigh_stride(view, use, verdict);
    if (use->one_pipeline)
        ct_evidence_add(verdict, (struct ct_weights){.tp = -6, .dp = -6},
                        "it joins stages of one pipeline");
    ct_bytes_text(use->bytes, size, sizeof size);
    if (use->bytes <= 4096 && use->calls < 4.5)
        ct_evidence_add(verdict,
                        (struct ct_weights){.tp = -1, .dp = -1, .control = 4},
                        "%s %s in all", size, ct_view_per(view));
}
