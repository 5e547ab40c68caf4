/*
 * How long the stages of a pipeline stood idle, beside what theory says.
 */
#ifndef COMMTRACE_PIPELINE_H
#define COMMTRACE_PIPELINE_H

#include "roles/roles.h"

struct ct_pipeline {
    int stages;        /* p; 0: no pipeline */
    int micro_batches; /* m */
    double idle;       /* measured share of total step time, mean over ranks:
                          waits in PP ops, and in what is not TP before the
                          first or after the last of them (a step may begin
                          with the end of the one before); a wait is what a
                          call took beyond its transfer. NAN: not measured */
    double idle_min, idle_max; /* over ranks; NAN */
    double idle_passes; /* as idle, but of step time without what DP and control
                           transferred: forward and backward passes, which is
                           what theory speaks of; NAN */
    double theory_total; /* (p-1)/(m+p-1), of total time; NAN: m is not
                            known */
    double theory_ideal; /* (p-1)/m, of ideal time; NAN */
    int samples;         /* rank-steps; 0: nothing was measured */
};

/* Fills *pipeline for the job's pipeline as roles found it; stages is 0 where
 * there is none. Measured on steady steps whose pipeline ops were timed on the
 * GPU. Theory: Narayanan et al. 2021 (ideal), Huang et al. 2019 (total). */
void ct_pipeline_measure(const struct ct_trace *trace, const struct ct_job *job,
                         const struct ct_roles *roles,
                         struct ct_pipeline *pipeline);

#endif
