/* What the preloaded library adds to the start of a program that never calls
 * NCCL. Starts with and without it alternate. */
#include "bench.h"

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
    double extra_ms =
        (bench_median(with, ROUNDS) - bench_median(without, ROUNDS)) / 1e6;
    return bench_report("startup", extra_ms, "ms", extra_ms, 1, true);
}
