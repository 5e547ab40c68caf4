/* A rank's file, and how far it has come. */
#ifndef TRACEGEN_OUTPUT_H
#define TRACEGEN_OUTPUT_H

#include "clocks.h"
#include "tracegen.h"

/* What every rank's file begins as: the tables, and the names of numbers. */
struct blank_file {
    unsigned char *bytes;
    size_t n;
};

int blank_file_make(struct blank_file *blank);
void blank_file_release(struct blank_file *blank);

struct output {
    bool begun;
    int rank;
    struct host_clock clock;
    int64_t t0_ns;      /* true time at which recording began */
    int64_t t0_host_ns; /* on the host's clock, as host_time() gives it */
    int64_t cut_ns;     /* true time at which it ends */
    int64_t id;         /* of the last row of op or launch */
    int group_ops;      /* of the group that is open */
    long n;             /* ops so far, lost ones included */
    long ncollectives;
    long lost, lost_launches;
    int64_t first_lost_ns, last_lost_ns; /* true times */
    int nplanted, planted_capacity; /* classes from FIRST_PLANTED_CLASS on */
    struct op_class *planted;
    /* What NCCL said: choices, counted per class or with an earlier one. */
    int64_t choice;
    int ncounters, counter_capacity, counter_of_capacity;
    uint32_t *counters;
    int *counter_of;
};

#define FIRST_PLANTED_CLASS 1000000

void output_init(struct output *out, const struct options *o, int host,
                 int rank);
void output_release(struct output *out);

/* A true time as nanoseconds after t0 on the clock of the process. */
int64_t output_time(const struct output *out, int64_t true_ns);

/* That the op was over is still in the file. */
bool output_has_end(const struct output *out, const struct record *record);

/* Adds the records of rank to its file; to what is not there yet before the
 * first of them, and to what comes after the last. */
int trace_write(struct simulation *s, struct output *out,
                const struct blank_file *blank, int rank, bool last);

#endif
