/*
 * The clocks of the hosts. The simulation knows one true time; every host has
 * a clock that is off and runs at its own rate, and what a process writes is in
 * that clock. CLOCK_REALTIME and CLOCK_MONOTONIC of a host run alike.
 */
#ifndef TRACEGEN_CLOCKS_H
#define TRACEGEN_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "option_values.h"

#define MAX_SET_CLOCKS 64

struct options;

struct clock_options {
    /* Of every host, drawn evenly between minus and plus this. */
    double offset_us, drift_ppm;
    double wander_ppm; /* largest deviation of the rate from its mean */
    double wander_s;   /* period of that */
    /* Deviation of a GPU's times: what its clock is tied to the host's by is
     * read anew every now and then. */
    double gpu_us;
    int nset; /* hosts whose clocks are not drawn */
    struct {
        int host;
        double offset_us, drift_ppm;
    } set[MAX_SET_CLOCKS];
};

struct host_clock {
    int64_t boot_ns; /* CLOCK_MONOTONIC at true time 0: hosts were booted at
                        different times */
    int64_t real_ns; /* CLOCK_REALTIME at true time 0 */
    double offset_us, drift_ppm, wander_ppm, wander_ns, phase;
};

struct host_clock host_clock(const struct options *o, int host);

/* What has passed on the clock since true time 0. */
int64_t host_time(const struct host_clock *clock, int64_t true_ns);

/* How far the nth op of rank is from where it was, in what the GPU says. */
int64_t gpu_error_ns(const struct options *o, int rank, int64_t n);

/* Takes an option; false: it is none of the clocks'. */
bool clocks_set(struct options *o, const char *name, const char *value);
/* The option that names a host that the job does not have; NULL: none does. */
const char *clocks_check(const struct options *o);

extern const struct option_row clocks_options[];

#endif
