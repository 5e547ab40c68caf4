/* One line on stderr per kind of trouble and process; nothing ever goes to
 * stdout. */
#ifndef SHIM_LOG_H
#define SHIM_LOG_H

#include <stdbool.h>

enum log_kind {
    LOG_OPTION, /* a COMMTRACE_ variable is not understood */
    LOG_RING,   /* no shared memory for the ring */
    LOG_TRACE,  /* the trace cannot be written */
    LOG_SIZE,   /* the size limit is reached */
    LOG_THREAD, /* no writer thread */
    LOG_GPU,    /* GPU times are off */
    LOG_COPIES  /* more copies of NCCL than are told apart */
};

/* What is stderr now; a file that gets its number later is not spoken to. */
void log_begin(void);
void log_quiet(bool quiet);
void log_line(enum log_kind kind, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
