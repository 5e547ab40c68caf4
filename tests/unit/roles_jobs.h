/*
 * Jobs in memory, made in virtual time: each rank issues computation and NCCL
 * calls on one stream; collectives and send/recv wait for each other as NCCL
 * does. The result is what trace/ would have loaded and joined.
 */
#ifndef ROLES_JOBS_H
#define ROLES_JOBS_H

#include "trace/trace.h"

struct maker;

struct maker_link { /* T = alpha + S * wire / bandwidth */
    double alpha_us, GBps;
};

struct maker *maker_new(int ranks, int ranks_per_node, uint64_t seed);
void maker_free(struct maker *maker);
/* Default: inside 2 us, 100 GB/s; between nodes 15 us, 10 GB/s. */
void maker_links(struct maker *maker, struct maker_link inside,
                 struct maker_link between);
/* Every transfer and computation takes 1 +- jitter of its time. */
void maker_jitter(struct maker *maker, double jitter);

/* A communicator of n ranks; returns its number. */
int maker_comm(struct maker *maker, const int *ranks, int n);

/* What rank issues next. count is in float32 elements. */
void maker_compute(struct maker *maker, int rank, double us);
void maker_op(struct maker *maker, int rank, int comm, enum ct_op base,
              uint64_t count, int redop, int peer);
void maker_group(struct maker *maker, int rank);     /* ncclGroupStart */
void maker_group_end(struct maker *maker, int rank); /* ncclGroupEnd */
/* Everything since the last call of this is one step; the first one: what came
 * before it is no step. */
void maker_step(struct maker *maker, int rank, enum ct_step_kind kind);

/* Plays all ranks and derives the job; fails the test on a deadlock. */
const struct ct_trace *maker_run(struct maker *maker);
/* Share of steady steps in which a rank did not compute, mean over ranks. */
double maker_idle(const struct maker *maker);

/* A transformer as samples/jobs/train3d.c runs it. */
struct layout {
    int tp, pp, dp;
    char order[4]; /* fastest first: "tpd" tensor, pipeline, data */
    int layers;    /* per stage */
    int micro_batches, steps;
    int buckets; /* unequal, of the gradients */
    int ranks_per_node;
    uint64_t payload;                     /* elements of b*s*h */
    double compute_us;                    /* forward of a layer */
    bool no_norm, no_broadcast, sequence; /* sequence parallelism */
    uint64_t seed;
};
extern const struct layout default_layout;

struct maker *layout_make(const struct layout *layout);
/* Groups along axis 't', 'p', 'd': its number per rank. */
int layout_group(const struct layout *layout, char axis, int rank);
int layout_place(const struct layout *layout, char axis, int rank);

#endif
