/* Whose profiler plugin NCCL will load. */
#ifndef COMMTRACE_DOCTOR_NCCL_PROFILER_H
#define COMMTRACE_DOCTOR_NCCL_PROFILER_H

struct facts;

/* option: COMMTRACE_PROFILER as it will be in force; version: of NCCL, as
 * ncclGetVersion says it, -1: unknown. */
void nccl_profiler_check(const char *option, int version, struct facts *facts);

#endif
