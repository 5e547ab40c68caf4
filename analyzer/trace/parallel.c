#include "trace/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define MAX_THREADS 64

struct queue {
    atomic_int next;
    int n;
    void (*work)(void *context, int i);
    void *context;
};

static void *drain(void *argument)
{
    struct queue *queue = argument;
    int i;

    /* Relaxed: the counter hands out numbers, nothing is published by it. */
    while ((i = atomic_fetch_add_explicit(&queue->next, 1,
                                          memory_order_relaxed)) < queue->n)
        queue->work(queue->context, i);
    return NULL;
}

static int helpers_for(int n)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (cores > MAX_THREADS)
        cores = MAX_THREADS;
    return (int)((cores < n ? cores : n) - 1);
}

void ct_parallel_for(int n, void (*work)(void *context, int i), void *context)
{
    struct queue queue = {.n = n, .work = work, .context = context};
    pthread_t threads[MAX_THREADS];
    int helpers = helpers_for(n), started = 0;

    /* A thread that cannot start is no failure: the others do its share. */
    while (started < helpers &&
           !pthread_create(&threads[started], NULL, drain, &queue))
        started++;
    drain(&queue);
    while (started > 0)
        pthread_join(threads[--started], NULL);
}
