#include "objects.h"

#include "thread.h"

/* Recursive, as the loader's is: a signal handler may come to walk, too. */
#define FREE PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
static pthread_mutex_t walking = FREE;

static void before_fork(void)
{
    pthread_mutex_lock(&walking);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&walking);
}

/* Its thread has another number than the one that holds the lock. */
static void in_child(void)
{
    walking = (pthread_mutex_t)FREE;
}

static void watch_forks(void)
{
    /* Without memory for it we do without. */
    pthread_atfork(before_fork, in_parent, in_child);
}

static void watch_forks_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static _Atomic bool done;
    struct thread_hold before;
    if (atomic_load_explicit(&done, memory_order_relaxed))
        return;
    thread_hold(&before);
    pthread_once(&once, watch_forks);
    atomic_store_explicit(&done, true, memory_order_relaxed);
    thread_release(&before);
}

int objects_walk(int (*each)(struct dl_phdr_info *, size_t, void *), void *data)
{
    watch_forks_once();
    pthread_mutex_lock(&walking);
    int result = dl_iterate_phdr(each, data);
    pthread_mutex_unlock(&walking);
    return result;
}
