#include "doctor/trace_dir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void choose(char *dir, size_t size, const char *launcher)
{
    static const char *const ids[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"};
    const char *step = getenv("SLURM_STEP_ID");
    char host[256] = "";

    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const char *id = getenv(ids[i]);

        if (!id || !*id)
            continue;
        snprintf(dir, size, "commtrace-%s%s%s", id,
                 i == 0 && step && *step ? "." : "",
                 i == 0 && step ? step : "");
        return;
    }
    gethostname(host, sizeof host - 1);
    snprintf(dir, size, "commtrace-%s-%s", host, launcher);
}

int trace_dir_name(char *dir, size_t size, const char *wanted,
                   const char *launcher)
{
    char chosen[PATH_MAX / 2], cwd[PATH_MAX / 2];

    if (!wanted || !*wanted) {
        choose(chosen, sizeof chosen, launcher);
        wanted = chosen;
    }
    *cwd = 0;
    if (*wanted != '/' && !getcwd(cwd, sizeof cwd))
        return -1;
    if ((size_t)snprintf(dir, size, "%s%s%s", cwd, *cwd ? "/" : "", wanted) >=
        size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return 0;
}
