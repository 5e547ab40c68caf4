#include "trace/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_THREADS 64

/* Files that a thread may hold open at once: a database, its log, its ring,
 * and what they are copied to; and those of the process. */
#define FILES_PER_THREAD 8
#define FILES_BESIDE 32

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

static long at_most(long n, long most)
{
    return n < most ? n : most;
}

/* So many that no file has to stay closed. */
static long threads_by_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur > MAX_THREADS * FILES_PER_THREAD + FILES_BESIDE)
        return MAX_THREADS;
    return ((long)limit.rlim_cur - FILES_BESIDE) / FILES_PER_THREAD;
}

static long threads_wanted(void)
{
    const char *text = getenv(CT_THREADS_VARIABLE);
    long n = text ? strtol(text, NULL, 10) : 0;

    return n > 0 ? n : sysconf(_SC_NPROCESSORS_ONLN);
}

static int helpers_for(int n)
{
    const long threads = at_most(at_most(threads_wanted(), MAX_THREADS),
                                 at_most(threads_by_files(), n));

    return threads > 1 ? (int)threads - 1 : 0;
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
