/* Reading the ops of a part of a job. */
#ifndef COMMTRACE_PART_H
#define COMMTRACE_PART_H

#include "trace/trace.h"

/* Of trace, of whose files only the communicators were read: reads the rest,
 * of the ops those that part needs. Sets whole[process] where all ops of a
 * process are there. False: this is not enough to answer as if all were there,
 * or a file cannot be read. */
bool ct_part_load(struct ct_trace *trace, const struct ct_part *part,
                  bool *whole);

#endif
