/*
 * The clocks of the hosts. The simulation knows one true time; every host has
 * a clock that is off and runs at its own rate, and what a process writes is in
 * that clock. CLOCK_REALTIME and CLOCK_MONOTONIC of a host run alike.
 */
#ifndef TRACEGEN_CLOCKS_H
#define TRACEGEN_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_SET_CLOCKS 64
#define WANDER_NS 600e9 /* period of the wander */

struct options;

struct clock_options {
    /* Of every host, drawn evenly between minus and plus this. */
    double offset_us, drift_ppm;
    double wander_ppm; /* largest deviation of the rate from its mean */
    int nset;          /* hosts whose clocks are not drawn */
    struct {
        int host;
        double offset_us, drift_ppm;
    } set[MAX_SET_CLOCKS];
};

struct host_clock {
    int64_t boot_ns; /* CLOCK_MONOTONIC at true time 0: hosts were booted at
                        different times */
    int64_t real_ns; /* CLOCK_REALTIME at true time 0 */
    double offset_us, drift_ppm, wander_ppm, phase;
};

struct host_clock host_clock(const struct options *o, int host);

/* What has passed on the clock since true time 0. */
int64_t host_time(const struct host_clock *clock, int64_t true_ns);

/* Takes an option; false: it is none of the clocks'. */
bool clocks_set(struct options *o, const char *name, const char *value);
extern const char clocks_help[];

#endif
