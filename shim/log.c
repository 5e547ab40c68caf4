#include "log.h"

#include "thread.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Atomic unsigned said; /* bit per enum log_kind */

void log_quiet(bool quiet)
{
    if (quiet)
        atomic_store_explicit(&said, ~0u, memory_order_relaxed);
}

void log_line(enum log_kind kind, const char *format, ...)
{
    unsigned bit = 1u << kind;
    if (atomic_fetch_or_explicit(&said, bit, memory_order_relaxed) & bit)
        return;
    char line[400] = "commtrace: ";
    size_t used = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, sizeof(line) - used - 1, format, args);
    va_end(args);
    used = strlen(line);
    line[used++] = '\n';
    int cancel = thread_hold_cancel();
    /* Where stderr cannot take it there is nobody left to tell. */
    ssize_t written = write(STDERR_FILENO, line, used);
    (void)written;
    thread_allow_cancel(cancel);
}
