/*
 * One screen that holds the job against the textbook: tensor-parallel volume,
 * bandwidth that each role needs, pipeline idle.
 */
#include "report/sections.h"

#include <math.h>
#include <stdio.h>

#include "report/units.h"

struct volume {
    const char *formula; /* NULL: no tensor parallelism was found */
    int nranks, layers, micro_batches;
    uint64_t message_bytes;
    double observed_bytes, formula_bytes, ratio;
    const char *missing; /* why there is no observed figure */
};

static const struct out_column volume_columns[] = {
    OUT_COL(struct volume, formula, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct volume, nranks, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct volume, layers, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct volume, micro_batches, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct volume, message_bytes, "", OUT_SIZE, 0, OUT_BOTH),
    OUT_COL(struct volume, observed_bytes, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct volume, formula_bytes, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct volume, ratio, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct volume, missing, "", OUT_TEXT, 0, OUT_BOTH),
};

static const struct out_table volume_table =
    OUT_TABLE(struct volume, volume_columns);

/* What the requirement table asks of each role, in GB/s. */
struct need {
    enum ct_role_id role;
    double low, high;
    const char *what;
};

static const struct need needs[] = {
    {CT_ROLE_TP, 400, 900, "TP, ring all-reduce inside a node"},
    {CT_ROLE_PP, 50, 100, "PP, point to point between nodes"},
    {CT_ROLE_DP, 100, 200, "DP, as ZeRO-3's all-gather + reduce-scatter"},
};

struct bandwidth {
    const char *role, *op, *link;
    int nranks;
    uint64_t bytes;
    double busbw_GBps, latency_percent;
    double need_low_GBps, need_high_GBps;
    const char *verdict;
};

static const struct out_column bandwidth_columns[] = {
    OUT_COL(struct bandwidth, role, "role", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct bandwidth, op, "op", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct bandwidth, link, "link", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct bandwidth, nranks, "ranks", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct bandwidth, bytes, "size", OUT_SIZE, 0, OUT_BOTH),
    OUT_COL(struct bandwidth, latency_percent, "alpha %", OUT_REAL, 2,
            OUT_BOTH),
    OUT_COL(struct bandwidth, busbw_GBps, "busbw", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct bandwidth, need_low_GBps, "needs", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct bandwidth, need_high_GBps, "to", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct bandwidth, verdict, "verdict", OUT_TEXT, 0, OUT_BOTH),
};

static const struct out_table bandwidth_table =
    OUT_TABLE(struct bandwidth, bandwidth_columns);

struct idle {
    int stages, micro_batches;
    double measured, measured_min, measured_max;
    double theory_total, theory_ideal;
    int samples;
};

static const struct out_column idle_columns[] = {
    OUT_COL(struct idle, stages, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct idle, micro_batches, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct idle, measured, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct idle, measured_min, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct idle, measured_max, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct idle, theory_total, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct idle, theory_ideal, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct idle, samples, "", OUT_INT, 0, OUT_BOTH),
};

static const struct out_table idle_table = OUT_TABLE(struct idle, idle_columns);

/* Bytes a rank puts on its links for all of TP's large messages; scalars of
 * the loss are not in the formula, nor do they weigh. */
static double tp_wire_bytes(const struct families *families, int nranks)
{
    double bytes = 0;

    for (int i = 0; i < families->n; i++) {
        const struct family *f = &families->rows[i];

        if (f->given && f->given->role == CT_ROLE_TP && f->nranks == nranks)
            bytes += f->wire_bytes * f->ngroups;
    }
    return bytes;
}

static int tp_groups(const struct families *families, int nranks, enum ct_op op)
{
    int n = 0;

    for (int i = 0; i < families->n; i++) {
        const struct family *f = &families->rows[i];

        if (f->given && f->given->role == CT_ROLE_TP && f->nranks == nranks &&
            f->base == op)
            n += f->ngroups;
    }
    return n;
}

static void measure_volume(struct volume *v, const struct view *view,
                           const struct families *families)
{
    const struct family *tp = families_find(families, CT_ROLE_TP, CT_OP_COUNT);
    bool sequence = tp && (tp->base == CT_OP_ALL_GATHER ||
                           tp->base == CT_OP_REDUCE_SCATTER);
    double share;

    v->observed_bytes = v->formula_bytes = v->ratio = NAN;
    v->message_bytes = OUT_NO_SIZE;
    v->nranks = v->layers = v->micro_batches = CT_NONE;
    if (!tp) {
        v->missing = "no tensor-parallel traffic was found";
        return;
    }
    share = (double)(tp->nranks - 1) / tp->nranks;
    v->formula =
        sequence ? "10(p-1)/p * b*s*h*size" : "4 * 2(p-1)/p * b*s*h*size";
    v->nranks = tp->nranks;
    v->message_bytes = tp->main_bytes;
    v->formula_bytes = (sequence ? 10 : 8) * share * (double)tp->main_bytes;
    if (!view->job->nsteps)
        v->missing = "no step was found";
    else if (!view->roles->layers_per_stage || !view->roles->micro_batches)
        v->missing = "the trace does not tell layers from micro-batches";
    if (v->missing)
        return;
    v->layers = view->roles->layers_per_stage;
    v->micro_batches = view->roles->micro_batches;
    v->observed_bytes = tp_wire_bytes(families, tp->nranks) /
                        tp_groups(families, tp->nranks, tp->base) / v->layers /
                        v->micro_batches;
    v->ratio = v->observed_bytes / v->formula_bytes;
}

static const char *size_or_none(char buffer[UNITS_SIZE], double bytes)
{
    return isnan(bytes) ? "n/a" : units_size(buffer, (uint64_t)(bytes + .5));
}

static void say_volume(struct out *out, const struct volume *v)
{
    char message[UNITS_SIZE], formula[UNITS_SIZE], observed[UNITS_SIZE];

    if (!v->formula) {
        out_fact(out, "TP volume", "n/a: %s", v->missing);
        return;
    }
    out_fact(out, "TP volume",
             "per GPU, layer and micro-batch, forward and backward; p = %d, "
             "b*s*h*size = %s, the message",
             v->nranks, units_size(message, v->message_bytes));
    out_fact(out, "", "textbook %s = %s", v->formula,
             size_or_none(formula, v->formula_bytes));
    if (v->missing)
        out_fact(out, "", "observed n/a: %s", v->missing);
    else
        out_fact(out, "",
                 "observed %s over %d layer%s (by the number of calls) and "
                 "%d micro-batch%s: %.3g of the textbook",
                 size_or_none(observed, v->observed_bytes), v->layers,
                 v->layers == 1 ? "" : "s", v->micro_batches,
                 v->micro_batches == 1 ? "" : "es", v->ratio);
}

/* The part of the time that is latency, where the fit tells. */
static double latency_percent(const struct view *view, const struct family *f)
{
    int nranks = f->base == CT_OP_SEND ? 2 : f->nranks;

    for (int i = 0; i < view->model->nfits; i++) {
        const struct ct_fit *fit = &view->model->fits[i];

        if (fit->quality == CT_FIT_FULL && fit->link == f->link_id &&
            fit->base == f->base && fit->nranks == nranks)
            return fmin(100, fit->alpha_us / f->top_us * 100);
    }
    return NAN;
}

static const char *judge(const struct family *f, double busbw,
                         const struct need *need)
{
    if (isnan(busbw))
        return "n/a: no transfer was timed apart";
    if (busbw >= need->low)
        return f->top_shared ? "pass, by shares of groups" : "pass";
    return f->top_shared ? "below, by shares of groups" : "below";
}

static void put_bandwidth(struct out *out, const struct view *view,
                          const struct family *f, const struct need *need)
{
    struct bandwidth line = {
        .role = ct_role_names[need->role],
        .op = f->op,
        .link = f->link,
        .nranks = f->nranks,
        .bytes = isnan(f->top_us) ? f->main_bytes : f->top_bytes,
        .busbw_GBps = (double)f->top_bytes / (f->top_us * 1e3) *
                      ct_wire_factor(f->base, f->nranks),
        .latency_percent = latency_percent(view, f),
        .need_low_GBps = need->low,
        .need_high_GBps = need->high};

    line.verdict = judge(f, line.busbw_GBps, need);
    out_row(out, &line);
}

static void section_bandwidth(struct out *out, const struct view *view,
                              const struct families *families)
{
    out_table(out, "bandwidth", &bandwidth_table);
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        for (int k = 0; k < families->n; k++) {
            const struct family *f = &families->rows[k];

            if (f->given && f->given->role == needs[i].role && f->top_bytes)
                put_bandwidth(out, view, f, &needs[i]);
        }
    out_table_end(out);
    out_fact(out, "needs",
             "%.0f-%.0f %s; %.0f-%.0f %s; %.0f-%.0f %s. 900 counts both "
             "directions of NVLink 4: 450 each way, about 370 usable by a ring",
             needs[0].low, needs[0].high, needs[0].what, needs[1].low,
             needs[1].high, needs[1].what, needs[2].low, needs[2].high,
             needs[2].what);
}

static void section_idle(struct out *out, const struct view *view)
{
    const struct ct_pipeline *p = &view->pipeline;
    struct idle idle = {p->stages,       p->micro_batches, p->idle,
                        p->idle_min,     p->idle_max,      p->theory_total,
                        p->theory_ideal, p->samples};

    if (!p->stages || !p->samples)
        idle.measured = idle.measured_min = idle.measured_max = NAN;
    if (!p->stages || !p->micro_batches)
        idle.theory_total = idle.theory_ideal = NAN;
    out_object(out, "pipeline");
    out_fields(out, &idle_table, &idle);
    out_object_end(out);
    if (!p->stages) {
        out_fact(out, "pipeline idle", "n/a: no pipeline was found");
        return;
    }
    if (isnan(idle.measured))
        out_fact(out, "pipeline idle", "n/a: no step was timed");
    else
        out_fact(out, "pipeline idle",
                 "measured %.1f %% of total time (ranks: %.1f to %.1f), which "
                 "is %.1f %% of ideal time",
                 p->idle * 100, p->idle_min * 100, p->idle_max * 100,
                 p->idle / (1 - p->idle) * 100);
    if (isnan(idle.theory_total))
        out_fact(out, "", "textbook n/a: micro-batches are not known");
    else
        out_fact(out, "",
                 "textbook, p = %d, m = %d: (p-1)/(m+p-1) = %.1f %% of total "
                 "time; (p-1)/m = %.1f %% of ideal time. \"m >= 4p keeps it "
                 "under 20 %%\" holds for the first; here m = %.3gp",
                 p->stages, p->micro_batches, p->theory_total * 100,
                 p->theory_ideal * 100, (double)p->micro_batches / p->stages);
}

void section_seed(struct out *out, const struct view *view,
                  const struct families *families)
{
    struct volume volume = {0};

    measure_volume(&volume, view, families);
    out_title(out, "TEXTBOOK AND THIS JOB",
              "busbw in GB/s, of the largest "
              "message; alpha %: latency's part");
    out_object(out, "seed");
    out_object(out, "tp_volume");
    out_fields(out, &volume_table, &volume);
    out_object_end(out);
    say_volume(out, &volume);
    section_idle(out, view);
    section_bandwidth(out, view, families);
    out_object_end(out);
}
