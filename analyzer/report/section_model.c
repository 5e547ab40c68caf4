#include "report/sections.h"
#include "report/units.h"
#include "trace/links.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct prediction_line {
    const char *link, *op;
    int nranks;
    uint64_t bytes;
    int64_t calls, samples;
    double observed_us, fit_us, reference_us, prior_us, nccl_us;
    double ratio;   /* observed over the best prediction that there is */
    const char *by; /* which that is */
    double algbw_GBps, busbw_GBps;
};

static const struct out_column prediction_columns[] = {
    OUT_COL(struct prediction_line, link, "link", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct prediction_line, op, "op", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct prediction_line, nranks, "ranks", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct prediction_line, bytes, "size", OUT_SIZE, 0, OUT_BOTH),
    OUT_COL(struct prediction_line, calls, "calls", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct prediction_line, samples, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct prediction_line, observed_us, "observed", OUT_REAL, 3,
            OUT_BOTH),
    OUT_COL(struct prediction_line, fit_us, "fit", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct prediction_line, reference_us, "ref.", OUT_REAL, 3,
            OUT_OPTIONAL),
    OUT_COL(struct prediction_line, prior_us, "prior", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct prediction_line, nccl_us, "NCCL's own", OUT_REAL, 3,
            OUT_OPTIONAL),
    OUT_COL(struct prediction_line, ratio, "ratio", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct prediction_line, by, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct prediction_line, algbw_GBps, "algbw", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct prediction_line, busbw_GBps, "busbw", OUT_REAL, 3, OUT_BOTH),
};

static const struct out_table prediction_table =
    OUT_TABLE(struct prediction_line, prediction_columns);

struct fit_line {
    const char *link, *op;
    int nranks, sizes;
    int64_t samples;
    double alpha_us, alpha_error_percent;
    double algbw_GBps, algbw_error_percent;
    double residual_percent;
    const char *quality, *why;
};

static const struct out_column fit_columns[] = {
    OUT_COL(struct fit_line, link, "link", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct fit_line, op, "op", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct fit_line, nranks, "ranks", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct fit_line, sizes, "sizes", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct fit_line, samples, "samples", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct fit_line, alpha_us, "alpha us", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct fit_line, alpha_error_percent, "+-%", OUT_REAL, 2, OUT_BOTH),
    OUT_COL(struct fit_line, algbw_GBps, "GB/s", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct fit_line, algbw_error_percent, "+-%", OUT_REAL, 2, OUT_BOTH),
    OUT_COL(struct fit_line, residual_percent, "", OUT_REAL, 2, OUT_DATA),
    OUT_COL(struct fit_line, quality, "quality", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct fit_line, why, "", OUT_TEXT, 0, OUT_DATA),
};

static const struct out_table fit_table =
    OUT_TABLE(struct fit_line, fit_columns);

static const char *quality_name(enum ct_fit_quality quality)
{
    switch (quality) {
    case CT_FIT_FULL:
        return "full";
    case CT_FIT_BW_ONLY:
        return "bandwidth only";
    case CT_FIT_LAT_ONLY:
        return "latency only";
    case CT_FIT_PRIOR:
        break;
    }
    return "prior";
}

/* What the reference measured on that very kind of link, where it did. */
static double reference_us(const struct ct_model *reference,
                           const struct ct_prediction *p)
{
    for (int i = 0; reference && i < reference->nfits; i++) {
        const struct ct_fit *f = &reference->fits[i];

        if (f->link == p->link && f->base == p->base && f->nranks == p->nranks)
            return ct_fit_us(f, (double)p->bytes, NULL);
    }
    return NAN;
}

static void fill_prediction(struct prediction_line *line,
                            const struct ct_model *reference,
                            const struct ct_prediction *p)
{
    double best;

    line->link = ct_link_names[p->link];
    line->op = view_op_name(p->base);
    line->nranks = p->nranks;
    line->bytes = p->bytes;
    line->calls = p->calls;
    line->samples = p->samples;
    line->observed_us = p->observed_us;
    line->fit_us = p->fit_us;
    line->reference_us = reference_us(reference, p);
    line->prior_us = p->prior_us;
    line->nccl_us = p->nccl_us;
    best = p->prior_us;
    line->by = isnan(best) ? NULL : "prior";
    if (!isnan(p->nccl_us)) {
        best = p->nccl_us;
        line->by = "nccl";
    }
    if (!isnan(line->reference_us)) {
        best = line->reference_us;
        line->by = "reference";
    }
    if (!isnan(p->fit_us)) {
        best = p->fit_us;
        line->by = "fit";
    }
    line->ratio = p->observed_us / best;
    line->algbw_GBps = p->algbw_GBps;
    line->busbw_GBps = p->busbw_GBps;
}

static double time_of(const struct ct_prediction *p)
{
    return isnan(p->observed_us) ? 0 : p->observed_us * (double)p->calls;
}

/* The least total time among the `most` dearest predictions. */
static double threshold(const struct ct_model *model, int most)
{
    double low = 0, high = 0;

    for (int i = 0; i < model->npredictions; i++)
        high = fmax(high, time_of(&model->predictions[i]));
    high = high * 2 + 1;
    for (int round = 0; round < 100; round++) {
        double middle = (low + high) / 2;
        int n = 0;

        for (int i = 0; i < model->npredictions; i++)
            n += time_of(&model->predictions[i]) >= middle;
        if (n > most)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Its two ends may have no common clock, and its time counts for no fit. */
static bool is_estimate(const struct ct_prediction *p)
{
    const bool between_nodes =
        ct_link_is_network(p->link) || p->link == CT_LINK_MNNVL;

    return between_nodes && ct_is_p2p(p->base) && isnan(p->fit_us) &&
           !isnan(p->observed_us);
}

static bool has_estimates(const struct ct_job *job)
{
    for (int i = 0; i < job->ninstances; i++)
        if (job->instances[i].estimated)
            return true;
    return false;
}

static void say_apart(struct out *out, const struct ct_prediction *p, int n)
{
    char size[UNITS_SIZE], more[40] = "";

    units_size(size, p->bytes);
    if (n > 1)
        snprintf(more, sizeof more, ", and of %d other lines,", n - 1);
    out_say(out, 2,
            "%s of %s on %d ranks%s: ranks always came so far apart that the "
            "transfer may take longer than what is shown",
            view_op_name(p->base), size, p->nranks, more);
}

void section_predictions(struct out *out, const struct view *view, int most)
{
    const struct ct_model *model = view->model;
    bool all = most == SECTION_ALL || model->npredictions <= most;
    double least = all ? -1 : threshold(model, most);
    const struct ct_prediction *apart = NULL;
    bool guesses = false;
    int shown = 0, napart = 0;

    out_title(out, "OBSERVED BESIDE PREDICTED",
              "us, medians; ratio: to fit, else reference, NCCL's own, prior; "
              "GB/s");
    out_table(out, "predictions", &prediction_table);
    for (int i = 0; i < model->npredictions; i++) {
        struct prediction_line line;

        if (time_of(&model->predictions[i]) < least)
            continue;
        fill_prediction(&line, view->reference, &model->predictions[i]);
        out_row(out, &line);
        guesses = guesses || is_estimate(&model->predictions[i]);
        if (model->predictions[i].apart && !napart++)
            apart = &model->predictions[i];
        shown++;
    }
    out_table_end(out);
    if (view->job->missing)
        out_say(out, 2,
                "ranks are missing: what their groups show is an upper "
                "bound, and their link that between the ranks that were seen");
    if (guesses && has_estimates(view->job))
        out_say(out, 2,
                "send/recv between nodes: estimates, for the common time of "
                "their hosts may be off by more than so short a transfer "
                "allows (see DATA); waits may be among them");
    if (apart)
        say_apart(out, apart, napart);
    if (shown < model->npredictions)
        out_say(out, 2,
                "%d of %d lines, those with most time; all: commtrace "
                "model",
                shown, model->npredictions);
}

static void fill_fit(struct fit_line *line, const struct ct_fit *f)
{
    *line = (struct fit_line){.link = ct_link_names[f->link],
                              .op = view_op_name(f->base),
                              .nranks = f->nranks,
                              .sizes = f->sizes,
                              .samples = f->samples,
                              .alpha_us = f->alpha_us,
                              .alpha_error_percent = f->alpha_se * 100,
                              .algbw_GBps = f->algbw_GBps,
                              .algbw_error_percent = f->algbw_se * 100,
                              .residual_percent = f->residual * 100,
                              .quality = quality_name(f->quality),
                              .why = f->why};
}

/* Reasons why there is less than a full fit, each once. */
static void say_why(struct out *out, const struct ct_model *model)
{
    for (int i = 0; i < model->nfits; i++) {
        const struct ct_fit *f = &model->fits[i];
        bool said = f->quality == CT_FIT_FULL || !f->why;

        for (int k = 0; k < i && !said; k++)
            said = model->fits[k].quality == f->quality && model->fits[k].why &&
                   !strcmp(model->fits[k].why, f->why);
        if (!said)
            out_fact(out, quality_name(f->quality), "%s", f->why);
    }
}

void section_fits(struct out *out, const struct view *view)
{
    out_title(out, "FITS",
              "T = alpha + S / bandwidth, as far as the message "
              "sizes tell them apart");
    out_table(out, "fits", &fit_table);
    for (int i = 0; i < view->model->nfits; i++) {
        struct fit_line line;

        fill_fit(&line, &view->model->fits[i]);
        out_row(out, &line);
    }
    out_table_end(out);
    say_why(out, view->model);
}
