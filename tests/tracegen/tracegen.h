/*
 * tracegen writes the trace of a regular training job, TP x PP x DP with 1F1B,
 * without running it: ranks advance in virtual time, and waits, transfers and
 * bubble follow from their dependencies. Same options and seed, same bytes.
 *
 *   layout.c    ranks, hosts, communicators
 *   program.c   what each rank calls, in order
 *   simulate.c  when each call begins and ends
 *   transfer.c  the same of sends and recvs
 *   trace.c     one rank's file, through schema.def
 *   nccl.c      what NCCL says of itself in it
 *   truth.c     what an analyzer should find
 */
#ifndef TRACEGEN_H
#define TRACEGEN_H

#include <stdbool.h>
#include <stdint.h>

#include "commtrace/ops.h"

enum axis { TP, PP, DP, AXES };
enum comm_kind { COMM_WORLD, COMM_TP, COMM_PP, COMM_DP, COMM_KINDS };

enum nccl { NCCL_SILENT, NCCL_LOG, NCCL_KERNELS };

struct options {
    int degree[AXES];
    enum axis order[AXES]; /* innermost first */
    int hosts, layers, micro_batches, steps, barriers, eval_every;
    uint64_t hidden; /* bytes of an activation, of the TP and PP messages */
    uint64_t bucket; /* bytes of a DP bucket; the last one is smaller */
    int buckets;
    double alpha_us[2], GBps[2]; /* inside a host, between hosts */
    double compute_us;           /* of half a layer, forward */
    double jitter;               /* sigma of lognormal factors */
    int slow_rank;               /* -1: none */
    double slow_factor;          /* of its computing */
    bool lone_groups;            /* each lone send or recv in a group */
    bool sweep;                  /* sizes x iterations instead of steps */
    enum nccl nccl;              /* what NCCL says */
    uint64_t seed;
    long ops; /* choose steps so that about so many come out; 0 */
    const char *out;
};

struct comm {
    enum comm_kind kind;
    uint64_t uid;
    int nranks;
    int *ranks; /* in the job */
    bool crosses;
};

struct layout {
    const struct options *options;
    int nranks, ncomms;
    struct comm *comms;
    int (*comm_of)[COMM_KINDS];  /* per rank */
    int (*place_in)[COMM_KINDS]; /* rank in that communicator */
};

void layout_init(struct layout *layout, const struct options *options);
void layout_release(struct layout *layout);
int layout_host(const struct layout *layout, int rank);
int layout_coordinate(const struct layout *layout, int rank, enum axis axis);

enum call { COMPUTE, COLLECTIVE, SEND, RECV, EXCHANGE, MARK };

struct instruction {
    enum call call;
    enum ct_op op; /* of COLLECTIVE */
    enum comm_kind comm;
    int type;
    uint64_t count;
    int to, from; /* ranks in comm: SEND, RECV, EXCHANGE both */
    double compute_us;
    int mark; /* of MARK: 1 a step begins, 2 it ended, with the call before */
};

struct program {
    int n, capacity;
    struct instruction *code;
};

/* Appends what rank does before the first step, in step number step. */
void program_setup(struct program *p, const struct layout *layout, int rank);
void program_step(struct program *p, const struct layout *layout, int rank,
                  int step);
void program_sweep(struct program *p, const struct layout *layout, int rank);
/* Rows of table op that the program leads to. */
long program_ops(const struct program *p);

struct record { /* one op */
    int64_t start_ns, gpu_ns;
    int cls;
    uint32_t ordinal;
    int32_t group; /* number of its bracket, from 1; 0: none */
    int32_t last_of_group;
};

struct op_class {
    enum ct_op op;
    enum comm_kind comm;
    int type, redop, peer;
    uint64_t count;
};

struct step_mark {
    int first, last; /* records */
};

#define MAX_CLASSES 64 /* of a rank */

struct rank {
    struct program program;
    int pc;
    bool posted;
    int64_t now_ns, posted_ns;
    int nrecords, record_capacity, nclasses, groups;
    struct record *records;
    struct op_class classes[MAX_CLASSES];
    uint32_t *ordinals; /* per class, kept per lane */
    int nsteps, step_capacity;
    struct step_mark *steps;
    uint64_t draws; /* random numbers used */
};

/* Transfers of one (communicator, source, destination), in order. */
struct edge {
    int nsends, nrecvs, send_capacity, recv_capacity;
    int64_t *sends, *recvs; /* when posted */
    int sent, received;     /* finished */
};

/* Edges of a source: up and down, in the world and in its pipeline. */
#define EDGES 4

struct simulation {
    const struct layout *layout;
    struct rank *ranks;
    struct edge *edges;       /* per (comm, source, destination) */
    struct meeting *meetings; /* per communicator */
};

void simulation_init(struct simulation *s, const struct layout *layout);
void simulation_release(struct simulation *s);
/* Runs every rank's program to its end and empties it. */
void simulation_run(struct simulation *s);

/* One call of rank r; false: it has to wait for others. */
bool step_transfer(struct simulation *s, int r, const struct instruction *in);
struct record *add_record(struct rank *rank, enum ct_op op,
                          const struct instruction *in, int peer, int64_t start,
                          int64_t end);
/* A lognormal factor around 1, the same for the same numbers. */
double jittered(const struct options *o, uint64_t a, uint64_t b);

/* Time that bytes take inside a host (0) or between hosts (1), in ns. */
double transfer_ns(const struct options *o, int link, enum ct_op op, int nranks,
                   uint64_t bytes);
uint64_t op_bytes(enum ct_op op, int type, uint64_t count, int nranks);

int trace_write(const struct simulation *s, int rank);
int truth_write(const struct simulation *s);

/* Bits that look random, the same for the same numbers. */
uint64_t mix(uint64_t a, uint64_t b);
void *grow(void *array, int *capacity_p, int n, unsigned long size);
void *zeros(unsigned long n, unsigned long size);

#endif
