/* More than anybody counts on. */
#include "ways.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COMMS = 4096, MILLION = 1000000 };

static long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        abort();
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Makes COMMS communicators n times; the last ones take no more memory than
 * those before, once caches are full (2 MiB of SQLite's, the classes of ops).
 */
static void run_rounds(void (*round)(void), int rounds, int n)
{
    for (int i = 0; i < rounds * (n - 1); i++)
        round();
    long first = resident_kib();
    for (int i = 0; i < rounds; i++)
        round();
    long more = resident_kib() - first;
    if (more > 1024)
        printf("grown by %ld KiB\n", more);
}

static void one_after_another(void)
{
    for (int i = 0; i < COMMS / 8; i++) {
        ncclComm_t own = make(i);
        ops_on(own, 2);
        ncclCommDestroy(own);
    }
    usleep(20000); /* a job does something else, too */
}

static void run_comms(char **argv)
{
    (void)argv;
    run_rounds(one_after_another, 8, 4);
}

static void all_at_once(void)
{
    static ncclComm_t all[COMMS / 4];
    for (int i = 0; i < COMMS / 4; i++)
        all[i] = make(i);
    for (int i = 0; i < COMMS / 4; i++)
        ops_on(all[i], 1);
    for (int i = 0; i < COMMS / 4; i++)
        ncclCommDestroy(all[i]);
    usleep(20000);
}

static void run_comms_alive(char **argv)
{
    (void)argv;
    run_rounds(all_at_once, 4, 4);
}

static void as_fast_as_possible(void)
{
    for (int i = 0; i < 4 * COMMS; i++)
        ncclCommDestroy(make(i));
}

/* The writer cannot keep up: it loses some, and no memory. */
static void run_comms_fast(char **argv)
{
    (void)argv;
    run_rounds(as_fast_as_possible, 1, 8);
}

static void run_million(char **argv)
{
    (void)argv;
    init(1);
    ncclGroupStart();
    ops(MILLION);
    ncclGroupEnd();
    say_issued(MILLION);
}

const struct way many_ways[] = {
    {"comms", run_comms},
    {"comms_alive", run_comms_alive},
    {"comms_fast", run_comms_fast},
    {"million", run_million},
    {0},
};
