#include "common/clock.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000

int64_t fabric_now_ns(void)
{
    struct timespec t = {0, 0};

    syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

void fabric_sleep_until_ns(int64_t due_ns)
{
    struct timespec t = {
        .tv_sec = due_ns / NS_PER_S,
        .tv_nsec = due_ns % NS_PER_S,
    };

    while (fabric_now_ns() < due_ns)
        syscall(SYS_clock_nanosleep, CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL);
}
