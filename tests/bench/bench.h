/* What the benchmarks of the shim share. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline double bench_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double bench_median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), bench_compare);
    return values[n / 2];
}

/* libcommtrace.so of the build that this program is in. */
static inline void bench_library(char *path, size_t size)
{
    char self[2048];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = 0;
    for (int up = 0; up < 2; up++)
        if (strrchr(self, '/'))
            *strrchr(self, '/') = 0;
    snprintf(path, size, "%s/libcommtrace.so", self);
}

/* Runs this program again with the recorder in front, once. */
static inline void bench_preload(char **argv)
{
    char library[4096];
    if (getenv("BENCH_AGAIN"))
        return;
    bench_library(library, sizeof(library));
    setenv("BENCH_AGAIN", "1", 1);
    setenv("LD_PRELOAD", library, 1);
    execv("/proc/self/exe", argv);
    perror("execv");
    exit(1);
}

static inline void bench_remove(const char *dir)
{
    char command[256];
    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    if (system(command) != 0)
        fprintf(stderr, "bench: %s stays\n", dir);
}

enum bench_bound { AT_MOST, AT_LEAST };

/* Prints the line: a value and its ratio to a floor of the same run. Gives the
 * exit status: 1 where the ratio breaks its bound. */
static inline int bench_report(const char *name, const char *unit, double value,
                               double floor, enum bench_bound which,
                               double bound)
{
    double ratio = value / floor;
    bool good = which == AT_MOST ? ratio <= bound : ratio >= bound;

    printf("bench %s %.4g %s ratio=%.3f floor=%.4g%s\n", name, value, unit,
           ratio, floor, good ? "" : " FAILED");
    return good ? 0 : 1;
}

#endif
