/* Tensor-parallel volume beside 4 * 2(p-1)/p * b*s*h*size. */
#include "report/seed.h"

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
             "per GPU, layer and micro-batch, both passes; p = %d, "
             "message b*s*h*size = %s",
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

void seed_volume(struct out *out, const struct view *view,
                 const struct families *families)
{
    struct volume volume = {0};

    measure_volume(&volume, view, families);
    out_object(out, "tp_volume");
    out_fields(out, &volume_table, &volume);
    out_object_end(out);
    say_volume(out, &volume);
}
