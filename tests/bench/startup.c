/* What the preloaded library adds to the start of a program that never calls
 * NCCL. Starts with and without it alternate. */
#include "bench.h"

#include <math.h>
#include <spawn.h>
#include <sys/wait.h>

enum { ROUNDS = 200 };

static double start(char **env)
{
    char name[] = "true";
    char *argv[] = {name, NULL};
    pid_t pid;
    int status;
    double before = bench_ns();
    if (posix_spawnp(&pid, "true", NULL, NULL, argv, env) != 0 ||
        waitpid(pid, &status, 0) != pid || status != 0)
        exit(2);
    return bench_ns() - before;
}

int main(void)
{
    static double with[ROUNDS], without[ROUNDS];
    char library[4096], preload[4200], path[] = "PATH=/usr/bin:/bin";
    bench_library(library, sizeof(library));
    snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", library);
    char *bare[] = {path, NULL}, *preloaded[] = {path, preload, NULL};
    for (int i = 0; i < ROUNDS; i++) {
        without[i] = start(bare);
        with[i] = start(preloaded);
    }
    /* About 1 ms at most is expected; how much of a process's start that is
     * depends on the machine, so it is reported and not bounded. */
    return bench_report("startup", "ms", bench_median(with, ROUNDS) / 1e6,
                        bench_median(without, ROUNDS) / 1e6, AT_MOST, INFINITY);
}
