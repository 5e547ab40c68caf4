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
                          waits in PP ops and in what follows the last one */
    double idle_min, idle_max; /* over ranks */
    double theory_total;       /* (p-1)/(m+p-1), of total time */
    double theory_ideal;       /* (p-1)/m, of ideal time */
    int samples;               /* rank-steps */
};

void ct_pipeline_measure(const struct ct_trace *trace, const struct ct_job *job,
                         const struct ct_roles *roles,
                         struct ct_pipeline *pipeline);

#endif
