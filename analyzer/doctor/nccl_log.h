/* Whether a trace will hold what NCCL's log says. */
#ifndef COMMTRACE_DOCTOR_NCCL_LOG_H
#define COMMTRACE_DOCTOR_NCCL_LOG_H

struct facts;

/* option: COMMTRACE_NCCL_LOG as it will be in force; version: of NCCL, as
 * ncclGetVersion says it, -1: unknown. */
void nccl_log_check(const char *option, int version, struct facts *facts);

#endif
