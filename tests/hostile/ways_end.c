/* How a process begins and ends: NCCL before main() and after it, and ends in
 * the middle of everything. */
#include "ways.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void run_plain(char **argv)
{
    (void)argv;
    init(1);
    ops(10);
}

static void run__exit(char **argv)
{
    run_plain(argv);
    await_trace();
    _exit(0);
}

static void run_quick_exit(char **argv)
{
    run_plain(argv);
    await_trace();
    quick_exit(0);
}

static void run_abort(char **argv)
{
    run_plain(argv);
    await_trace();
    abort();
}

static void run_crash(char **argv)
{
    run_plain(argv);
    await_trace();
    raise(SIGSEGV);
}

static void late(void)
{
    ops(3);
    ncclCommDestroy(comm);
}

static void run_atexit(char **argv)
{
    atexit(late);
    init(1);
    ops(7);
    (void)argv;
}

static bool at_both_ends;

/* The C library hands main()'s arguments to constructors. */
__attribute__((constructor)) static void first(int argc, char **argv)
{
    at_both_ends = argc > 1 && strcmp(argv[1], "constructor") == 0;
    if (!at_both_ends)
        return;
    init(1);
    ops(4);
}

__attribute__((destructor)) static void last(void)
{
    if (!at_both_ends)
        return;
    ops(3);
    ncclCommDestroy(comm);
}

static void run_constructor(char **argv)
{
    (void)argv;
    ops(3);
}

/* More than fits into one transaction waits when the process ends. */
static void run_backlog(char **argv)
{
    (void)argv;
    init(1);
    ops(60000);
    say_issued(60000);
}

static void *use_forever(void *unused)
{
    for (;;)
        ops(1);
    return unused;
}

static void start(void *(*run)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) != 0)
        abort();
}

static void start_users(void)
{
    init(1);
    for (int i = 0; i < 4; i++)
        start(use_forever);
}

/* exit() while others are inside NCCL. */
static void run_busy_exit(char **argv)
{
    (void)argv;
    start_users();
    await_trace();
}

static void *leave(void *unused)
{
    await_trace();
    exit(0);
    return unused;
}

/* The same from a thread that is not the first, which waits for ever. */
static void run_thread_exit(char **argv)
{
    (void)argv;
    start_users();
    start(leave);
    for (;;)
        pause();
}

static void *finish(void *first_thread)
{
    pthread_join(*(pthread_t *)first_thread, NULL);
    ops(6);
    return NULL;
}

/* The first thread ends before the process does. */
static void run_first_leaves(char **argv)
{
    static pthread_t self;
    (void)argv;
    self = pthread_self();
    init(1);
    ops(4);
    pthread_t thread;
    if (pthread_create(&thread, NULL, finish, &self) != 0)
        abort();
    pthread_exit(NULL);
}

const struct way end_ways[] = {
    {"plain", run_plain},
    {"_exit", run__exit},
    {"quick_exit", run_quick_exit},
    {"abort", run_abort},
    {"crash", run_crash},
    {"atexit", run_atexit},
    {"constructor", run_constructor},
    {"backlog", run_backlog},
    {"busy_exit", run_busy_exit},
    {"thread_exit", run_thread_exit},
    {"first_leaves", run_first_leaves},
    {0},
};
