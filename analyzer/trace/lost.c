#include "trace/lost.h"

#include <string.h>

const char *ct_lost_cause(const struct ct_process *process)
{
    const char *cause = "unknown";
    int64_t most = 0;
    int i;

    for (i = 0; i < process->nlosses; i++) {
        const struct ct_loss_row *loss = &process->losses[i];

        if (strcmp(loss->what, "op") != 0 || loss->n <= most)
            continue;
        most = loss->n;
        cause = loss->cause;
    }
    return cause;
}

const char *ct_lost_remedy(const char *cause)
{
    if (!strcmp(cause, "size_limit"))
        return "raise COMMTRACE_MAX_MB";
    if (!strcmp(cause, "ring_full"))
        return "raise COMMTRACE_RING_SLOTS";
    if (!strcmp(cause, "write_error"))
        return "see that COMMTRACE_DIR has room";
    return "see table loss for when and where";
}
