/*
 * The fabric's time: nanoseconds of CLOCK_REALTIME, read by the raw system
 * call. All processes of a machine agree on it, and neither a time namespace
 * nor a preloaded faketime, which tests use to skew a program's own clocks,
 * can disturb it.
 */
#ifndef FABRIC_CLOCK_H
#define FABRIC_CLOCK_H

#include <stdint.h>

int64_t fabric_now_ns(void);
/* Returns at once when the time has passed. */
void fabric_sleep_until_ns(int64_t due_ns);

#endif
