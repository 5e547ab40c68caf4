#include "roles/chains.h"

#define MOST_OPS 50000 /* looked at where there are no steps */

int ct_windows(const struct ct_process *process,
               struct ct_window windows[CT_WINDOWS])
{
    int n = 0;

    for (int i = 0; i < process->nsteps && n < CT_WINDOWS; i++) {
        const struct ct_step_row *step = &process->steps[i];

        if (step->kind == CT_STEP_STEADY && step->first_op >= 0 &&
            step->last_op < process->nops && step->first_op <= step->last_op)
            windows[n++] = (struct ct_window){step->first_op, step->last_op,
                                              step->start_ns, step->end_ns};
    }
    if (n == 0 && process->nops > 0) {
        const int last = process->nops < MOST_OPS ? process->nops : MOST_OPS;

        windows[n++] = (struct ct_window){0, last - 1, CT_NO_TIME, CT_NO_TIME};
    }
    return n;
}
