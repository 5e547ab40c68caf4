/* Ops that were not recorded. */
#ifndef COMMTRACE_LOST_H
#define COMMTRACE_LOST_H

#include "trace/process.h"

/* Why most of those of a process were lost; "unknown": none says. */
const char *ct_lost_cause(const struct ct_process *process);

/* What to do about that. */
const char *ct_lost_remedy(const char *cause);

#endif
