/* The rows of op and launch of one rank's file, in its host's clock, with the
 * damage that the options ask for. */
#ifndef TRACEGEN_ROWS_H
#define TRACEGEN_ROWS_H

#include "clocks.h"
#include "tracegen.h"
#include "writer.h"

#define FIRST_PLANTED_CLASS 1000000

int64_t stream_handle(int stream);

/* A rank's file, and how far it has come. */
struct output {
    struct host_clock clock;
    int64_t t0_ns;   /* true time at which recording began */
    int64_t cut_ns;  /* true time at which it ends */
    int64_t host_ns; /* true time until which the host thread is busy */
    int64_t id;      /* of the last row of op or launch */
    int group_ops;   /* of the group that is open */
    long n;          /* ops so far, lost ones included */
    long ncollectives;
    long lost;
    int64_t first_lost_ns, last_lost_ns; /* true times */
    int nplanted, planted_capacity; /* classes from FIRST_PLANTED_CLASS on */
    struct op_class *planted;
};

void output_init(struct output *out, const struct options *o, int host,
                 int rank);
void output_release(struct output *out);

/* A true time as nanoseconds after t0 on the clock of the process. */
int64_t output_time(const struct output *out, int64_t true_ns);

/* Adds the records of rank and notes in them under which id. */
void rows_put(struct writer *w, struct output *out, const struct options *o,
              struct rank *rank, int r);
/* Adds what was lost of them. */
void rows_put_losses(struct writer *w, const struct output *out);

#endif
