/* Threads that are small, many, cancelled, or leave things open. */
#include "ways.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static pthread_barrier_t barrier;

static void *first_call(void *arg)
{
    ncclComm_t part;
    pthread_barrier_wait(&barrier);
    ncclComm_t own = make((int)(intptr_t)arg);
    ops_on(own, 1);
    ncclGroupStart();
    ops_on(own, 1);
    ncclGroupEnd();
    if (ncclCommSplit(own, 0, 0, &part, NULL) != ncclSuccess)
        abort();
    ops_on(part, 1);
    ncclCommDestroy(part);
    ncclCommDestroy(own);
    return NULL;
}

/* Sixteen threads make the first call at once, on stacks of 16 KiB. */
static void run_race(char **argv)
{
    enum { THREADS = 16 };
    pthread_t threads[THREADS];
    pthread_attr_t attr;
    (void)argv;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 16384);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (intptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &attr, first_call, (void *)i) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void *leave_bracket_open(void *unused)
{
    ncclGroupStart();
    ops(1);
    make(2);
    return unused;
}

static void *use_bracket(void *unused)
{
    ncclGroupStart();
    ops(1);
    ncclGroupEnd();
    return unused;
}

/* A thread ends in its bracket; what the next one does is not its. */
static void run_open_bracket(char **argv)
{
    pthread_t thread;
    (void)argv;
    init(1);
    pthread_create(&thread, NULL, leave_bracket_open, NULL);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, use_bracket, NULL);
    pthread_join(thread, NULL);
}

/* The program has taken all keys of thread-specific data. */
static void run_keys(char **argv)
{
    pthread_key_t last = 0, key;
    (void)argv;
    while (pthread_key_create(&key, NULL) == 0)
        last = key;
    for (key = 0; key <= last; key++)
        pthread_setspecific(key, data);
    init(1);
    use_bracket(NULL);
    for (key = 0; key <= last; key++)
        if (pthread_getspecific(key) != data)
            abort();
}

static void *ask_to_be_cancelled(void *reached)
{
    pthread_cancel(pthread_self());
    init(1);
    ops(5);
    *(bool *)reached = true;
    pthread_testcancel();
    return NULL;
}

/* NCCL's calls are no cancellation points; neither are ours. */
static void run_cancel(char **argv)
{
    bool reached = false;
    pthread_t thread;
    (void)argv;
    pthread_create(&thread, NULL, ask_to_be_cancelled, &reached);
    pthread_join(thread, NULL);
    if (!reached)
        abort();
    ops(5);
}

const struct way thread_ways[] = {
    {"race", run_race},
    {"open_bracket", run_open_bracket},
    {"keys", run_keys},
    {"cancel", run_cancel},
    {0},
};
