#include "room.h"

#include "thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

/* Where the program's first stack began; the dynamic loader knows. */
extern void *__libc_stack_end; /* NOLINT(bugprone-reserved-identifier) */

enum { ASSUMED_BYTES = 8 << 20 };

/* The main thread's stack grows on demand, so that only its limit is known. To
 * ask pthread would mean to read /proc/self/maps. */
static void learn_main(struct thread *thread)
{
    struct rlimit limit;
    uintptr_t bytes = ASSUMED_BYTES;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        bytes = (uintptr_t)limit.rlim_cur;
    uintptr_t end = ((uintptr_t)__libc_stack_end | 4095) + 1;
    thread->stack_end = end;
    thread->stack_start = bytes < end ? end - bytes : 0;
}

static void learn_other(struct thread *thread)
{
    pthread_attr_t attr;
    void *start = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return;
    if (pthread_attr_getstack(&attr, &start, &bytes) == 0) {
        thread->stack_start = (uintptr_t)start;
        thread->stack_end = (uintptr_t)start + bytes;
    }
    pthread_attr_destroy(&attr);
}

uintptr_t room_end(uintptr_t here, uintptr_t need)
{
    struct thread *thread = &thread_state;
    if (!thread->stack_end) {
        if (gettid() == getpid())
            learn_main(thread);
        else
            learn_other(thread);
    }
    if (here >= thread->stack_end || here < thread->stack_start ||
        here - thread->stack_start < need)
        return 0;
    return thread->stack_end;
}
