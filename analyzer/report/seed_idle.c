/* Measured idle time of the pipeline beside both textbook figures. */
#include "report/seed.h"

#include <math.h>

struct idle {
    int stages, micro_batches;
    double measured, measured_min, measured_max; /* of step time */
    double passes;       /* without what DP and control transferred */
    double passes_ideal; /* the same, of the time that was not idle */
    double theory_total, theory_ideal;
    int samples;
};

static const struct out_column idle_columns[] = {
    OUT_COL(struct idle, stages, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct idle, micro_batches, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct idle, measured, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct idle, measured_min, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct idle, measured_max, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct idle, passes, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct idle, passes_ideal, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct idle, theory_total, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct idle, theory_ideal, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct idle, samples, "", OUT_INT, 0, OUT_BOTH),
};

static const struct out_table idle_table = OUT_TABLE(struct idle, idle_columns);

static void fill_idle(struct idle *idle, const struct ct_pipeline *p)
{
    bool measured = p->stages && p->samples;
    bool known = p->stages && p->micro_batches;

    idle->stages = p->stages;
    idle->micro_batches = p->micro_batches;
    idle->measured = measured ? p->idle : NAN;
    idle->measured_min = measured ? p->idle_min : NAN;
    idle->measured_max = measured ? p->idle_max : NAN;
    idle->passes = measured ? p->idle_passes : NAN;
    idle->passes_ideal = idle->passes / (1 - idle->passes);
    idle->theory_total = known ? p->theory_total : NAN;
    idle->theory_ideal = known ? p->theory_ideal : NAN;
    idle->samples = p->samples;
}

static void say_measured(struct out *out, const struct idle *idle)
{
    if (isnan(idle->measured)) {
        out_fact(out, "pipeline idle", "n/a: no step was timed");
        return;
    }
    out_fact(out, "pipeline idle", "%.1f %% of step time (ranks: %.1f to %.1f)",
             idle->measured * 100, idle->measured_min * 100,
             idle->measured_max * 100);
    if (!isnan(idle->passes))
        out_fact(out, "",
                 "measured, without DP and control: %.1f %% of total time, "
                 "%.1f %% of ideal time",
                 idle->passes * 100, idle->passes_ideal * 100);
}

static void say_theory(struct out *out, const struct idle *idle)
{
    if (isnan(idle->theory_total)) {
        out_fact(out, "", "textbook n/a: micro-batches are not known");
        return;
    }
    out_fact(out, "",
             "textbook, p = %d, m = %d: (p-1)/(m+p-1) = %.1f %% of total time, "
             "(p-1)/m = %.1f %% of ideal time; \"m >= 4p keeps it under 20 "
             "%%\" holds for the first; here m = %sp",
             idle->stages, idle->micro_batches, idle->theory_total * 100,
             idle->theory_ideal * 100,
             CT_NUM((double)idle->micro_batches / idle->stages, 3));
}

void seed_idle(struct out *out, const struct view *view)
{
    struct idle idle;

    fill_idle(&idle, &view->pipeline);
    out_record(out, "pipeline", &idle_table, &idle);
    if (!idle.stages) {
        out_fact(out, "pipeline idle", "n/a: no pipeline was found");
        return;
    }
    say_measured(out, &idle);
    say_theory(out, &idle);
}
