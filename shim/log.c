#include "log.h"

#include "thread.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static _Atomic unsigned said; /* bit per enum log_kind */

static struct {
    bool known;
    dev_t dev;
    ino_t ino;
} spoken_to;

void log_begin(void)
{
    struct stat st = {0};
    fstat(STDERR_FILENO, &st); /* closed: nobody is there */
    spoken_to.dev = st.st_dev;
    spoken_to.ino = st.st_ino;
    spoken_to.known = true;
}

static bool is_still_there(void)
{
    struct stat st;
    return !spoken_to.known ||
           (fstat(STDERR_FILENO, &st) == 0 && st.st_dev == spoken_to.dev &&
            st.st_ino == spoken_to.ino);
}

void log_quiet(bool quiet)
{
    if (quiet)
        atomic_store_explicit(&said, ~0u, memory_order_relaxed);
}

void log_line(enum log_kind kind, const char *format, ...)
{
    unsigned bit = 1u << kind;
    if (atomic_fetch_or_explicit(&said, bit, memory_order_relaxed) & bit ||
        !is_still_there())
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
