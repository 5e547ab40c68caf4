/*
 * tracegen writes the trace of a job that nobody ran: ranks advance in virtual
 * time, and waits, transfers and bubble follow from their dependencies. Same
 * options and seed, same bytes.
 *
 *   command_line.c   options
 *   layout.c    ranks, hosts, communicators
 *   job.c       what the job is, as far as options say
 *   program.c   instructions
 *   step.c, serve.c   what each rank calls, in order
 *   pipeline.c  the order of a step's forward and backward passes
 *   pass.c, attention.c, experts.c, gradients.c   what one of them calls
 *   simulate.c  when each call begins and ends
 *   collective.c, transfer.c   the same of collectives, of sends and recvs
 *   disturb.c   how long computing and transfers take
 *   record.c    classes and ordinals of a rank's ops
 *   memory.c    arrays, numbers of keys, random bits
 *   clocks.c    what the hosts' clocks say
 *   damage.c    what is wrong with the files
 *   files.c     the ranks' files, in portions
 *   output.c    how far one of them has come
 *   trace.c     what is in it, through schema.def
 *   rows.c      its ops and launches
 *   nccl.c      what NCCL says of itself in it
 *   truth.c     what an analyzer should find
 *   truth_db.c  the same of every op, in SQLite
 */
#ifndef TRACEGEN_H
#define TRACEGEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clocks.h"
#include "commtrace/ops.h"
#include "damage.h"
#include "disturb.h"
#include "job.h"
#include "memory.h"

/* IN is the inner part of data parallelism: expert parallel ranks, or those
 * that HSDP shards over; DP the rest of it. */
enum axis { TP, CP, IN, DP, PP, AXES };

/* What a communicator is for; a rank has at most one of each kind. */
enum comm_kind {
    COMM_WORLD,
    COMM_TP,
    COMM_PP,
    COMM_DP, /* CP x IN x DP: who holds the same dense parameters */
    COMM_CP,
    COMM_EP,
    COMM_EXPERT_DP, /* CP x DP: who holds the same experts */
    COMM_SHARD,     /* CP x IN: over whom FSDP shards */
    COMM_REPLICAS,  /* DP: who holds the same shard */
    COMM_GATHER,    /* again who shards, for all-gathers alone */
    COMM_MODEL,     /* TP x PP */
    COMM_EMBEDDING, /* first and last stage */
    COMM_KINDS
};

#define MAX_RANKS 65536

enum nccl { NCCL_SILENT, NCCL_LOG, NCCL_KERNELS };

struct options {
    int degree[AXES];
    enum axis order[AXES]; /* innermost first */
    int hosts, layers, micro_batches, steps, barriers, eval_every;
    uint64_t hidden; /* bytes of an activation, of the TP and PP messages */
    uint64_t bucket; /* bytes of a DP bucket; the last one is smaller */
    int buckets;
    double alpha_us[2], GBps[2]; /* inside an NVLink domain, between */
    double compute_us;           /* of half a layer, forward */
    double jitter;               /* sigma of lognormal factors */
    struct disturbance disturbance;
    bool lone_groups; /* each lone send or recv in a group */
    bool sweep;       /* sizes x iterations instead of steps */
    enum nccl nccl;   /* what NCCL says */
    struct clock_options clocks;
    struct damage damage;
    int64_t tick_ns;  /* of the GPUs' clocks */
    int domain_hosts; /* hosts of an NVLink domain */
    bool truth_db;    /* the truth of every op */
    int64_t portion; /* records that are kept in memory before they are written;
                        48 bytes each */
    int threads;     /* that write; 0: as many as there are cores */
    uint64_t seed;
    int64_t ops; /* choose steps so that about so many come out; 0 */
    struct job job;
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
    int nranks, ncomms, comm_capacity;
    struct comm *comms;
    int (*comm_of)[COMM_KINDS];  /* per rank; -1: none */
    int (*place_in)[COMM_KINDS]; /* rank in that communicator */
};

void layout_init(struct layout *layout, const struct options *options);
void layout_release(struct layout *layout);
int layout_host(const struct layout *layout, int rank);
/* The NVLink domain: a host, or several. */
int layout_domain(const struct layout *layout, int rank);
int layout_coordinate(const struct layout *layout, int rank, enum axis axis);
/* Ranks of rank's communicator of that kind; 1: it has none. */
int layout_size(const struct layout *layout, int rank, enum comm_kind kind);
/* Of a communicator. */
const char *layout_role(const struct layout *layout, int comm);

enum call {
    COMPUTE,
    COLLECTIVE,
    SEND,
    RECV,
    GROUP, /* a bracket around the n messages, or collectives of one kind on one
              communicator, that follow */
    WAIT,  /* the compute stream waits for an event */
    MARK
};

enum segment_kind {
    SEGMENT_WARM_UP,
    SEGMENT_STEP,
    SEGMENT_EVALUATION,
    SEGMENT_CHECKPOINT,
    SEGMENT_FORWARD, /* of inference */
    SEGMENT_END      /* as a mark: it ended, with the call before */
};

/* Streams of a rank. */
enum {
    COMPUTE_STREAM,
    GRADIENT_STREAM,
    GATHER_STREAM,
    REPLICA_STREAM,
    CONTEXT_STREAM,
    TENSOR_STREAM,
    PIPELINE_STREAM,
    EXPERT_STREAM,
    STREAMS
};

/* What can be waited for; some are used in turn. */
enum {
    NO_EVENT,
    GRADIENT_EVENT,
    EXPERT_EVENT,
    REPLICA_EVENT,
    CONTEXT_EVENT,
    PIPELINE_EVENT,
    UNIT_EVENTS,
    SCATTER_EVENTS = UNIT_EVENTS + 16,
    PARAMETER_EVENTS = SCATTER_EVENTS + 16,
    EVENTS = PARAMETER_EVENTS + 64
};

struct instruction { /* small, since there are many */
    uint8_t call;    /* enum call */
    uint8_t op;      /* enum ct_op, of COLLECTIVE */
    uint8_t comm;    /* enum comm_kind */
    uint8_t type;
    int8_t redop; /* -1: none */
    uint8_t stream;
    uint8_t event; /* set when it is done, or waited for */
    uint8_t after; /* an event that its stream waits for */
    bool async;    /* computing goes on beside it */
    uint8_t mark;  /* enum segment_kind */
    int32_t peer;  /* rank in comm, or root; -1: none */
    int32_t n;     /* of GROUP; micro-batches of a mark */
    uint64_t count;
    double compute_us;
};

struct program {
    int n, capacity, parts; /* parts: how often it was added to */
    struct instruction *code;
};

void program_add(struct program *p, struct instruction instruction);
void program_compute(struct program *p, double us);
/* On the compute stream; the caller may change what comes back. */
struct instruction *program_collective(struct program *p, enum ct_op op,
                                       enum comm_kind comm, int type,
                                       uint64_t count);
void program_message(struct program *p, enum call call, enum comm_kind comm,
                     int type, uint64_t count, int peer);
/* A bracket around the n messages that follow. */
struct instruction *program_group(struct program *p, int n);
void program_wait(struct program *p, int event);
/* Rows of table op that the program leads to. */
int64_t program_ops(const struct program *p);

/* Append what rank does before the first step, in a step, in a forward pass of
 * inference, in a benchmark; number counts steps and passes. */
void program_setup(struct program *p, const struct layout *layout, int rank,
                   int number);
void program_step(struct program *p, const struct layout *layout, int rank,
                  int number);
void program_forward(struct program *p, const struct layout *layout, int rank,
                     int number);
void program_sweep(struct program *p, const struct layout *layout, int rank,
                   int number);
/* Ranks with the same number are given the same program. */
int program_of(const struct layout *layout, int rank);

#define NEVER (INT64_MAX / 4)

struct record { /* one op; small, since there are many */
    int64_t start_ns, enter_ns, gpu_ns; /* start and gpu NEVER: did not */
    int32_t cls;
    uint32_t ordinal;
    int32_t group; /* number of its bracket, from 1; 0: none */
    int32_t id;    /* in its rank's file; 0: not there */
    bool last_of_group;
    bool unlike; /* written as another call: see damage.h */
};

struct op_class {
    enum ct_op op;
    enum comm_kind comm;
    int type, redop, peer, stream;
    uint64_t count;
    int lane, next; /* next: the class that came after it last time */
};

struct segment { /* a step, evaluation, ... */
    enum segment_kind kind;
    int64_t first, last; /* ops of the rank, from 0 */
    int micro_batches;
};

struct task {   /* a call that a stream has to work on */
    int at;     /* in the program */
    int record; /* its first */
    uint64_t turn;
    int64_t ready_ns;
};

struct turns { /* calls on a communicator */
    uint64_t issued, done;
    int64_t end_ns; /* of the last */
};

struct stream {
    int64_t now_ns;
    int ntasks, done, capacity; /* of this run */
    struct task *tasks;
    bool begun; /* the first that is not done */
    int64_t start_ns, end_ns;
    int missing; /* messages of it that have not ended */
};

struct event {
    int pending; /* calls that set it and are not over */
    int64_t at_ns;
};

struct lane { /* what counts ordinals */
    enum comm_kind comm;
    enum ct_op op; /* SEND, RECV, or any collective */
    int peer;
    uint32_t n;
};

struct rank {
    const struct program *program;
    int pc;
    bool issued;     /* the instruction there, which is waited for */
    int64_t host_ns; /* when the host is free to call */
    int64_t dies_ns;
    int64_t collectives; /* that its program has, up to here */
    bool hangs;          /* it was never done */
    unsigned waiting;    /* streams with a call that has not begun, as bits */
    struct stream streams[STREAMS];
    struct event events[EVENTS];
    struct turns turns[COMM_KINDS];
    bool awake;
    int64_t nops;           /* so far */
    int nrecords, capacity; /* the last of them */
    struct record *records;
    int nclasses, class_capacity, last_class;
    int nlanes, lane_capacity, groups;
    struct op_class *classes;
    struct lane *lanes;
    struct index class_index;
    int nsegments, segment_capacity;
    struct segment *segments;
    uint64_t draws; /* random numbers used */
};

struct meeting { /* the collective that a communicator's ranks come to */
    int arrived;
    int64_t last_ns;
    uint64_t n;             /* collectives so far */
    unsigned char *streams; /* where each rank waits for it */
};

struct simulation {
    const struct layout *layout;
    struct rank *ranks;
    struct program *programs; /* ranks that call the same share one */
    int parts;                /* of the programs so far */
    struct meeting *meetings; /* per communicator */
    struct edge *edges;       /* per (communicator, source, destination) */
    int nedges, edge_capacity;
    struct index edge_index;
    int *awake; /* ranks that may be able to go on */
    int nawake;
    struct truth_db *truth; /* NULL: not asked for */
};

void simulation_init(struct simulation *s, const struct layout *layout);
void simulation_release(struct simulation *s);
/* Every rank calls what make appends for it. */
void simulation_call(struct simulation *s,
                     void (*make)(struct program *p,
                                  const struct layout *layout, int rank,
                                  int number),
                     int number);
/* Runs every rank's program to its end and empties it. */
void simulation_run(struct simulation *s);
/* What that stream of rank r has begun is done. */
void simulation_done(struct simulation *s, int r, int stream, int64_t end_ns);
/* The instruction that the stream is at. */
const struct instruction *stream_task(const struct rank *rank, int stream);

/* Rank r has come to a collective or a group of them. */
void meet(struct simulation *s, int r, int stream);
/* Rank r has come to a send, a recv or a group of them. */
void transfer(struct simulation *s, int r, int stream);
void edges_release(struct simulation *s);

/* Called once per collective and per message, when all ranks are known. */
struct instance {
    int comm;
    enum ct_op op; /* SEND: a send with its recv */
    int type;
    uint64_t count, ordinal;
    int src, dst;     /* of a message, ranks in comm */
    int64_t start_ns; /* the last rank had come */
    int64_t transfer_ns;
};

void truth_instance(struct simulation *s, const struct instance *instance);

/* The op that an instruction leads to; its times on the GPU follow. */
void record_add(struct rank *rank, const struct instruction *in,
                enum comm_kind comm, int stream, int group);

/* Of rank's next piece of computing that takes us. */
int64_t compute_ns(const struct simulation *s, int rank, double us);
/* Of comm's nth collective, which begins at start_ns. */
int64_t collective_ns(const struct simulation *s, int comm, enum ct_op op,
                      uint64_t bytes, uint64_t n, int64_t start_ns);
/* Of the nth message between two ranks of the job. */
int64_t message_ns(const struct simulation *s, int source, int target,
                   uint64_t bytes, uint64_t n, int64_t start_ns);
/* How much later than others a rank of comm leaves its nth collective. */
int64_t late_end_ns(const struct simulation *s, int comm, int place,
                    uint64_t n);

/* Time that bytes take inside a host (0) or between hosts (1), in ns. */
double transfer_ns(const struct options *o, int link, enum ct_op op, int nranks,
                   uint64_t bytes);
uint64_t op_bytes(enum ct_op op, int type, uint64_t count, int nranks);

/* How long the host is in a call, and in one inside a group. */
#define HOST_CALL_NS 3000
#define HOST_GROUPED_NS 400

void trace_path(const struct simulation *s, int rank, char *path, size_t size);
int truth_write(const struct simulation *s);

/* truth.sqlite, where it is asked for: begun before the job runs, ended when
 * its files are written. */
int truth_db_begin(struct simulation *s);
/* Adds the records of all ranks. */
void truth_db_ops(struct simulation *s);
int truth_db_end(struct simulation *s);

/* Normally distributed, the same for the same bits. */
double normal(uint64_t bits);

#endif
