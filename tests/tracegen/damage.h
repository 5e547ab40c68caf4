/*
 * What is wrong with the files that are written, though the job ran well:
 * records lost, ranks without a file, files that end early, calls that do not
 * fit those of the other ranks.
 */
#ifndef TRACEGEN_DAMAGE_H
#define TRACEGEN_DAMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "option_values.h"

struct options;

#define MAX_PLANTS 256

enum unlike { UNLIKE_COUNT, UNLIKE_TYPE, UNLIKE_KIND };

struct damage {
    double drop;  /* share of ops whose record is lost */
    int drop_run; /* ops lost in a row */
    double drop_launches;
    int nmissing; /* ranges of ranks without a file */
    struct {
        int from, to;
    } missing[MAX_PLANTS];
    int ncuts; /* ranges of ranks whose files end at a time */
    struct {
        int from, to;
        int64_t at_ns;
    } cuts[MAX_PLANTS];
    int nplants; /* a rank's nth collective is written as another call */
    struct {
        int rank;
        long n;
        enum unlike how;
    } plants[MAX_PLANTS];
};

bool is_missing(const struct options *o, int rank);

/* True time at which the file of rank ends; INT64_MAX: when the job ends. */
int64_t cut_of(const struct options *o, int rank);

/* The record of the nth op of rank was lost. */
bool is_dropped(const struct options *o, int rank, long n);

/* That of the launch which its nth op ends was. */
bool is_launch_dropped(const struct options *o, int rank, long n);

/* How the nth collective of rank is written; false: as it was. */
bool is_unlike(const struct options *o, int rank, long n, enum unlike *how);

/* Takes an option; false: it is none of the damage's. */
bool damage_set(struct options *o, const char *name, const char *value);
/* The option that names a rank that the job does not have; NULL: none does. */
const char *damage_check(const struct options *o, int nranks);

extern const struct option_row damage_options[];

#endif
