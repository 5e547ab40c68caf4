/* Tensor-parallel volume beside 4 * 2(p-1)/p * b*s*h*size. */
#include "report/seed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/units.h"

struct volume {
    const char *formula; /* NULL: no tensor parallelism was found */
    int nranks, layers, micro_batches;
    int layer_micro_batches; /* their product, by the number of calls */
    uint64_t message_bytes;
    double observed_bytes, formula_bytes, ratio;
    const char *missing; /* why there is no observed figure */
};

static const struct out_column volume_columns[] = {
    OUT_COL(struct volume, formula, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct volume, nranks, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct volume, layers, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct volume, micro_batches, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct volume, layer_micro_batches, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct volume, message_bytes, "", OUT_SIZE, 0, OUT_BOTH),
    OUT_COL(struct volume, observed_bytes, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct volume, formula_bytes, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct volume, ratio, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct volume, missing, "", OUT_TEXT, 0, OUT_BOTH),
};

static const struct out_table volume_table =
    OUT_TABLE(struct volume, volume_columns);

/* Families that do the same as main on other ranks or with another op: not the
 * scalars of the loss, which are not in the formula. */
static bool is_alike(const struct family *f, const struct family *main_family)
{
    return f->given && f->given->role == CT_ROLE_TP &&
           f->nranks == main_family->nranks &&
           strcmp(f->given->use, main_family->given->use) == 0;
}

struct traffic { /* of a rank, per step */
    double wire_bytes, calls;
};

static struct traffic sum_traffic(const struct families *families,
                                  const struct family *main_family)
{
    struct traffic sum = {0, 0};
    int groups = 0;

    for (int i = 0; i < families->n; i++) {
        const struct family *f = &families->rows[i];

        if (!is_alike(f, main_family))
            continue;
        sum.wire_bytes += f->wire_bytes * f->ngroups;
        sum.calls += f->calls * f->ngroups;
        if (f->base == main_family->base)
            groups += f->ngroups;
    }
    sum.wire_bytes /= groups;
    sum.calls /= groups;
    return sum;
}

static bool is_sequence_parallel(const struct family *tp)
{
    return tp->base == CT_OP_ALL_GATHER || tp->base == CT_OP_REDUCE_SCATTER;
}

/* Layers times micro-batches: as roles have them, else by the calls alone. */
static void count_layers(struct volume *v, const struct view *view,
                         double calls_per_layer, double calls)
{
    double product = calls / calls_per_layer;

    if (view->roles->layers_per_stage > 0 && view->roles->micro_batches > 0) {
        v->layers = view->roles->layers_per_stage;
        v->micro_batches = view->roles->micro_batches;
        v->layer_micro_batches = v->layers * v->micro_batches;
    } else if (product > .5 && fabs(product - round(product)) < .02) {
        v->layer_micro_batches = (int)round(product);
    } else {
        v->missing = "the number of calls does not tell layers";
    }
}

static void observe_volume(struct volume *v, const struct view *view,
                           const struct families *families,
                           const struct family *tp)
{
    struct traffic traffic = sum_traffic(families, tp);

    if (!view->job->nsteps)
        v->missing = "no step was found";
    else
        count_layers(v, view, is_sequence_parallel(tp) ? 10 : 4, traffic.calls);
    if (v->missing)
        return;
    v->observed_bytes = traffic.wire_bytes / v->layer_micro_batches;
    v->ratio = v->observed_bytes / v->formula_bytes;
}

static void measure_volume(struct volume *v, const struct view *view,
                           const struct families *families)
{
    const struct family *tp = families_find(families, CT_ROLE_TP, CT_OP_COUNT);
    double share;

    v->observed_bytes = v->formula_bytes = v->ratio = NAN;
    v->message_bytes = OUT_NO_SIZE;
    v->nranks = v->layers = v->micro_batches = CT_NONE;
    v->layer_micro_batches = CT_NONE;
    if (!tp) {
        v->missing = "no tensor-parallel traffic was found";
        return;
    }
    share = (double)(tp->nranks - 1) / tp->nranks;
    v->formula = is_sequence_parallel(tp) ? "10(p-1)/p * b*s*h*size"
                                          : "4 * 2(p-1)/p * b*s*h*size";
    v->nranks = tp->nranks;
    v->message_bytes = tp->main_bytes;
    v->formula_bytes =
        (is_sequence_parallel(tp) ? 10 : 8) * share * (double)tp->main_bytes;
    observe_volume(v, view, families, tp);
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
             "per GPU, layer and micro-batch, both passes; p = %d, "
             "message b*s*h*size = %s",
             v->nranks, units_size(message, v->message_bytes));
    out_fact(out, "", "textbook %s = %s", v->formula,
             size_or_none(formula, v->formula_bytes));
    if (v->missing)
        out_fact(out, "", "observed n/a: %s", v->missing);
    else if (v->layers > 0)
        out_fact(out, "",
                 "observed %s over %d layer%s (by the number of calls) and "
                 "%d micro-batch%s: %.2f of the textbook",
                 size_or_none(observed, v->observed_bytes), v->layers,
                 ct_plural(v->layers), v->micro_batches,
                 v->micro_batches == 1 ? "" : "es", v->ratio);
    else
        out_fact(out, "",
                 "observed %s: %.2f of the textbook; layers x micro-batches = "
                 "%d by the number of calls, no pipeline tells them apart",
                 size_or_none(observed, v->observed_bytes), v->ratio,
                 v->layer_micro_batches);
}

void seed_volume(struct out *out, const struct view *view,
                 const struct families *families)
{
    struct volume volume = {0};

    measure_volume(&volume, view, families);
    out_record(out, "tp_volume", &volume_table, &volume);
    say_volume(out, &volume);
}
