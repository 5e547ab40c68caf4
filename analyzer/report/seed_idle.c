/* Measured idle time of the pipeline beside both textbook figures. */
#include "report/seed.h"

#include <math.h>

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

void seed_idle(struct out *out, const struct view *view,
               const struct families *families)
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
    if (!isnan(idle.measured) &&
        families_find(families, CT_ROLE_DP, CT_OP_COUNT))
        out_fact(out, "",
                 "total time includes DP, which the textbook leaves "
                 "out");
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
