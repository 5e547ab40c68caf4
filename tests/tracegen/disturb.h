/*
 * What computing and transfers take, beside their lognormal jitter: curves of
 * the links by size, contention, slow ranks, hosts, links and ports for the
 * whole job or a part of it.
 */
#ifndef TRACEGEN_DISTURB_H
#define TRACEGEN_DISTURB_H

#include <stdbool.h>
#include <stdint.h>

#include "option_values.h"

struct options;

#define MAX_SLOW 64
#define MAX_CURVES 16
#define MAX_HANGS 16

enum slow_what {
    SLOW_RANKS, /* computing of ranks */
    SLOW_HOSTS, /* computing of all ranks of hosts */
    SLOW_LINK,  /* what goes between two ranks, both ways */
    SLOW_NIC    /* what enters or leaves hosts */
};

struct slow {
    enum slow_what what;
    int from, to; /* ranks or hosts; of a link its two ends */
    double factor;
    int64_t begin_ns, end_ns;
};

struct curve { /* of a link, for messages of so many bytes and more */
    int link;
    uint64_t bytes;
    double alpha_us, GBps;
};

struct disturbance {
    int nslow, ncurves;
    struct slow slow[MAX_SLOW];
    struct curve curves[MAX_CURVES];
    int ndeaths, nskips;
    struct {
        int from, to; /* ranks */
        int64_t at_ns;
    } deaths[MAX_HANGS];
    struct {
        int rank;
        int64_t n; /* it never calls its nth collective */
    } skips[MAX_HANGS];
    int64_t hang_ns; /* how long the job is left alone then */
    /* Share of the transfers that others are in the way of, and how much longer
     * those take on average, exponentially distributed. */
    double contended, contention;
    /* Ranks end a collective up to a few of this after each other. */
    double end_us;
    double end_order_us; /* the last of them always, others by their place */
};

/* When rank dies and leaves the others waiting; INT64_MAX: never. */
int64_t dies_at(const struct options *o, int rank);
bool is_skipped(const struct options *o, int rank, int64_t n);
/* Something of that happens. */
bool may_hang(const struct options *o);

/* Takes an option; false: it is no disturbance. */
bool disturb_set(struct options *o, const char *name, const char *value);
/* The option that names a rank or host that the job does not have; NULL: none
 * does. */
const char *disturb_check(const struct options *o, int nranks);

extern const struct option_row disturb_options[];

#endif
