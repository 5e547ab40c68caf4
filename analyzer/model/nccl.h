/*
 * NCCL's own prediction, from the table that it printed for each communicator:
 * T = latency + S / bandwidth, and what it does to both when it is called.
 */
#ifndef COMMTRACE_NCCL_H
#define COMMTRACE_NCCL_H

#include "trace/trace.h"

/* What else the time depends on. */
struct ct_nccl_comm {
    int nranks;
    bool network; /* between NVLink domains: what NCCL calls nodes */
    bool old;     /* NCCL before 2.18, or GPUs before Ampere */
};

/* Time in us that NCCL expects of S bytes by one row of its table. */
double ct_nccl_us(const struct ct_tuning_row *row,
                  const struct ct_nccl_comm *comm, uint64_t bytes);

/* Per usage of job the time that NCCL expects, in us: by the algorithms and
 * protocols that it chose where those are known, else by the best of its table,
 * which is how it chooses. NAN: no table, or not of that op. us holds
 * job->nusages. Returns 0, or -1 without memory. */
int ct_nccl_locate(const struct ct_trace *trace, const struct ct_job *job,
                   double *us);

#endif
