/* An NCCL that is linked into a program: no hook sees it, but its profiler may
 * tell of its calls. */
#ifndef COMMTRACE_DOCTOR_INSIDE_H
#define COMMTRACE_DOCTOR_INSIDE_H

#include <stdbool.h>

struct inside {
    bool told;     /* by its profiler */
    bool unset;    /* if NCCL is told which plugin to load */
    char why[400]; /* what decides it, as the end of a sentence */
};

/* By the options and settings that are in force. speaks: it has a profiler, of
 * an interface that the recorder knows. */
struct inside inside_judge(bool speaks);

#endif
