/*
 * A job in memory: what the traces of its processes say together. Everything
 * above trace/ works on this and never opens a database.
 *
 * Built in stages, each a function of its own file:
 *   ct_trace_load    files -> processes (rows of each file, ring included)
 *   ct_trace_join    processes -> jobs: communicators by uid, members, nodes,
 *                    NVLink domains, link class per communicator
 *   ct_trace_cut     ops that an abort ended are none that finished
 *   ct_trace_match   ops of all ranks -> instances, the common time of their
 *                    clocks, transfer and wait
 *   ct_trace_locate  transfers of collectives where ranks disturb each other
 *   ct_trace_settle  what was still in flight
 *   ct_trace_steps   step boundaries per process
 *   ct_trace_usage   instances -> usages: the aggregates that model, roles,
 *                    findings and reports read
 * ct_trace_open does all of it.
 *
 * Memory belongs to the ct_trace (one arena) and is freed with it. References
 * are int indices; CT_NONE means none. Times are ns; a process's times count
 * from its own t0_ns; clocks.h has what makes them comparable with another's.
 */
#ifndef COMMTRACE_TRACE_H
#define COMMTRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "commtrace/ops.h"
#include "trace/link_rows.h"
#include "trace/short_ns.h"

#define CT_NONE (-1)

/* What is true of an op by its row in nccl_ops.def. */
struct ct_op_info {
    const char *name;     /* "all_reduce" */
    const char *function; /* "ncclAllReduce" */
    enum ct_op base;
    enum ct_op_class cls;
    enum ct_op_size size;
    enum ct_op_wire wire;
};
extern const struct ct_op_info ct_op_infos[CT_OP_COUNT];

/* Every rank of the communicator calls it. */
static inline bool ct_is_collective(enum ct_op op)
{
    return ct_op_infos[op].cls == CT_COLL || ct_op_infos[op].cls == CT_ROOTED;
}

/* A send or a receive. */
static inline bool ct_is_p2p(enum ct_op op)
{
    return ct_op_infos[op].cls == CT_SEND || ct_op_infos[op].cls == CT_RECV;
}

/* busbw / algbw of op on n ranks, as nccl-tests defines it. */
double ct_wire_factor(enum ct_op op, int nranks);

struct ct_op_class_row { /* op_class, decoded */
    int comm;            /* index in the process's comms */
    enum ct_op kind;     /* as called */
    enum ct_op base;     /* what it is an instance of */
    int type, redop;     /* CT_NONE: none */
    uint64_t count;
    uint64_t bytes; /* S: size of the message as NCCL counts it */
    int peer;       /* rank in comm, or root; CT_NONE */
    uint64_t stream;
    uint64_t site;
    int graph; /* index in the process's graphs; CT_NONE: not captured */
    int stack; /* index in the process's stacks; CT_NONE: not taken */
};

struct ct_module_row {
    const char *path, *build_id; /* build_id NULL: it has none */
};

struct ct_frame_row {
    int module;      /* index in the process's modules; CT_NONE: in no file */
    uint64_t offset; /* return address in the file, else in memory */
};

struct ct_stack_row {
    int id;                 /* stack.id in the file */
    int first_frame, depth; /* in the process's frames, the caller first */
    bool cut;               /* it goes on */
};

struct ct_op_row { /* 40 bytes: there are as many as calls */
    int64_t enter_ns;
    /* Read by ct_op_host_ns, ct_op_start_ns, ct_op_gpu_ns. */
    struct ct_short_ns host, offset, gpu; /* offset: GPU start - enter_ns */
    int32_t cls;                          /* index in classes */
    uint32_t ordinal;
    uint32_t flags;
    int32_t launch;   /* index in launches; CT_NONE: not grouped */
    int32_t instance; /* index in ct_job.instances; CT_NONE */
};

/* The time of the call; CT_NO_TIME: it never returned. */
static inline int64_t ct_op_host_ns(const struct ct_op_row *op)
{
    return ct_full_ns(op->host);
}

/* When it began on the GPU, for an op of a group when its launch did;
 * CT_NO_TIME: unknown. */
static inline int64_t ct_op_start_ns(const struct ct_op_row *op)
{
    return ct_ns_after(op->enter_ns, op->offset);
}

/* How long it, or its launch, took on the GPU; CT_NO_TIME: unknown. */
static inline int64_t ct_op_gpu_ns(const struct ct_op_row *op)
{
    return ct_full_ns(op->gpu);
}

/* Either may be CT_NO_TIME: some kernels are timed without a place. */
static inline void ct_op_set_gpu(struct ct_op_row *op, int64_t start_ns,
                                 int64_t gpu_ns)
{
    op->offset = ct_ns_between(op->enter_ns, start_ns);
    op->gpu = ct_shorten_ns(gpu_ns);
}

struct ct_launch_row { /* 48 bytes: a lone send may be a group, and one */
    int64_t enter_ns;
    struct ct_short_ns host, offset, gpu; /* as of an op */
    uint32_t grp;
    int32_t comm;     /* index in the process's comms */
    int32_t stream;   /* index in its streams */
    int32_t nops;     /* as recorded; first_op.. may be fewer after losses */
    int32_t first_op; /* index of the first of its ops in ops; CT_NONE */
    uint32_t flags;
    int32_t bytes; /* index in launch_bytes; CT_NONE: of one op */
};

static inline int64_t ct_launch_host_ns(const struct ct_launch_row *launch)
{
    return ct_full_ns(launch->host);
}

static inline int64_t ct_launch_start_ns(const struct ct_launch_row *launch)
{
    return ct_ns_after(launch->enter_ns, launch->offset);
}

static inline int64_t ct_launch_gpu_ns(const struct ct_launch_row *launch)
{
    return ct_full_ns(launch->gpu);
}

static inline void ct_launch_set_gpu(struct ct_launch_row *launch,
                                     int64_t start_ns, int64_t gpu_ns)
{
    launch->offset = ct_ns_between(launch->enter_ns, start_ns);
    launch->gpu = ct_shorten_ns(gpu_ns);
}

/* Sums of S over the ops of a launch: each answers for its share of the
 * interval. */
struct ct_launch_bytes {
    uint64_t coll, recv, send;
};

/* A CUDA graph: its ops run at each launch of it, or of a graph that contains
 * it. */
struct ct_graph_row {
    int64_t id;
    int first, second; /* graphs that it contains; CT_NONE */
    bool made;         /* its end was seen */
    int64_t made_ns;   /* CT_NO_TIME */
    int64_t launches;  /* of itself, that were seen */
    int64_t runs;      /* of its ops */
    int64_t steady;    /* of its ops, in steady steps */
    int64_t ops;       /* captured into it */
};

struct ct_graph_launch_row {
    int64_t id, enter_ns, host_ns; /* host_ns CT_NO_TIME: never returned */
    int64_t result;                /* CT_NONE: never returned */
    uint64_t stream;
    int graph; /* index in graphs; CT_NONE: not known */
};

struct ct_comm_row { /* a communicator as one process holds it */
    uint64_t uid;
    const char *origin, *name; /* name may be NULL */
    int parent;                /* index in the process's comms; CT_NONE */
    int color, child;
    int nranks, rank, device, library;
    int64_t enter_ns, ready_ns, end_ns;
    int64_t aborted_ns; /* CT_NO_TIME: not */
    int comm;           /* index in ct_job.comms */
    int id;             /* comm.id in the file */
};

struct ct_comm_event_row {
    int comm;         /* index in comms; CT_NONE */
    const char *what; /* "abort", "destroy", ... */
    int64_t at_ns, host_ns;
    int result; /* ncclResult_t; CT_NONE: the call had not returned */
};

struct ct_device_row {
    int id;
    const char *uuid, *pci, *name, *cluster, *source; /* NULL: unknown */
    int clique;
};

struct ct_gpu_link_row {
    int device;                         /* device id */
    const char *peer_pci, *kind, *path; /* path NULL: unknown */
    int links, version;
};

struct ct_loss_row {
    const char *cause, *what;
    int comm; /* index in comms; CT_NONE: several */
    int64_t n, first_ns, last_ns;
};

enum ct_step_kind {
    CT_STEP_STEADY,
    CT_STEP_WARM_UP,
    CT_STEP_EVALUATION, /* forward passes between steps */
    CT_STEP_CHECKPOINT, /* other calls between steps */
    CT_STEP_FORWARD,    /* of inference, which has no steps */
    CT_STEP_OTHER,
    CT_STEP_CUT /* not all of it was chosen: see narrow.h */
};
extern const char *const ct_step_kinds[]; /* "steady", "warm-up", ... */

struct ct_step_row {
    /* From the end of the step before (the first: from its first op) to the end
     * of its last op; on the GPU where timed, else on the host. */
    int64_t start_ns, end_ns;
    int64_t first_ns, last_ns; /* entry of its first and last call */
    int first_op, last_op; /* inclusive; last < first: graphs ran all of it */
    enum ct_step_kind kind;
    int number; /* in the job: rows of one number are one step; CT_NONE: of
                   which is not known */
    bool sure;  /* its edges: all its calls are there, or no record is lost */
};

struct ct_library_row { /* a copy of NCCL */
    int id;
    int version; /* as ncclGetVersion says; CT_NONE */
};

struct ct_tuning_row { /* of NCCL's table: T = latency + S / algbw */
    int comm;          /* index in the process's comms */
    enum ct_op base;
    const char *algorithm, *protocol;
    double latency_us, algbw_GBps;
};

struct ct_choice_class_row { /* how NCCL ran ops; text NULL, numbers CT_NONE:
                                not said */
    int id;                  /* choice_class.id in the file */
    int comm;                /* index in comms */
    enum ct_op
        base; /* CT_OP_COUNT: some collective, as NCCL before 2.23 says */
    int peer; /* of send and recv */
    uint64_t bytes;
    const char *algorithm, *protocol;
    int channels;
    bool by_plugin; /* else by the log */
};

struct ct_kernel_row { /* a run of an op, timed by NCCL's profiler */
    int op;            /* index in ops */
    int launch;        /* index in graph_launches that ran it; CT_NONE */
    int64_t start_ns;  /* of the GPU's own clock; CT_NO_TIME */
    int64_t gpu_ns;
};

struct ct_choice_stop { /* from op on, choices of comm do not fit its ops */
    int comm;
    int op;        /* index in ops; nops: there are more choices than ops */
    uint64_t said; /* bytes of the choice that does not fit */
    bool lost;     /* records of ops are missing there */
};

struct ct_refusal { /* a call that NCCL answered with an error */
    enum ct_op kind;
    int comm;   /* index in comms */
    int result; /* ncclResult_t */
};

struct ct_process {
    const char *path; /* of the trace, as given */
    const char *file; /* what was read: path, or a digest of it */
    const char *uuid, *host, *host_id, *boot_id, *exe, *cmdline;
    const char *run_id, *job_id, *rank_source; /* NULL: unknown */
    int rank;       /* in the job; from the launcher, else the rank in the
                       largest communicator; CT_NONE */
    int world_size; /* CT_NONE: unknown */
    int local_rank, restart, pid;
    int64_t t0_ns, t0_real_ns;
    int64_t end_ns;    /* CT_NO_TIME: the trace was not closed */
    int64_t last_ns;   /* last sign of life, as far as it was recorded */
    int64_t looked_ns; /* when the recorder last looked what the GPU had done */
    int64_t gpu_clock_ns; /* how far its GPU positions may be off */
    bool dead;            /* not closed and its process is gone, or on another
                             machine and not known to live */
    bool left;            /* not closed and gone, but it had ended all its
                             communicators: it left orderly, by _exit() say */
    bool ring_missing;    /* not closed, and its ring cannot be read: the last
                             ops, at most COMMTRACE_FLUSH_MS of them, are lost */
    const char *ring_refused; /* "RING: why" of one that is there but cannot be
                                 read; NULL: none */
    bool unstored; /* died before its file held anything: all of it is
                      from the ring, what that lacks is unknown */
    int recovered; /* ops that came from the ring */
    int64_t lost;  /* sum of losses of ops */
    int refused;   /* calls that returned an error; not among ops */
    int simulated; /* calls of groups that were simulated or never
                      ended; not among ops */
    struct ct_refusal first_refused;
    int job;          /* index in ct_trace.jobs */
    int node, domain; /* numbers in the job */
    int clock;        /* index in ct_job.clocks */
    int part, nparts; /* of a process with several ranks: this is the part-th
                         of them, from 0; else 0 of 1 */

    int ncomms, nevents, ndevices, ngpu_links, nlosses, nclasses, nlaunches;
    int nops, nsteps, nmodules, nstacks, nframes, nnics, ngpu_nics;
    int nabsences;
    int nlibraries, ntunings, nchoice_classes, nchoice_stops, nkernels;
    struct ct_comm_row *comms;
    struct ct_comm_event_row *events;
    struct ct_device_row *devices;
    struct ct_gpu_link_row *gpu_links;
    struct ct_nic_row *nics;
    struct ct_gpu_nic_row *gpu_nics;
    struct ct_absence_row *absences;
    struct ct_nccl_words nccl;
    struct ct_loss_row *losses;
    struct ct_op_class_row *classes;
    struct ct_launch_row *launches;
    int nlaunch_bytes, nstreams;
    struct ct_launch_bytes *launch_bytes; /* of those of several ops */
    uint64_t *streams;                    /* of launches */
    int64_t runs;                         /* of all ops */
    int64_t replays; /* of them, of captured ops, where launches were seen */
    int captured;    /* ops that are part of a CUDA graph; of them: */
    int idle;        /* of graphs that were not launched, as far as seen */
    int blind;       /* whose launches cannot have been seen */
    int ngraphs, ngraph_launches;
    struct ct_graph_row *graphs;
    struct ct_graph_launch_row *graph_launches; /* in call order */
    bool by_launches;      /* launches were seen: captured ops count by them */
    struct ct_op_row *ops; /* in call order */
    int *op_ids;   /* what they were before some were taken out; NULL: none */
    bool left_out; /* it is of no chosen rank, and has no ops: see narrow.h */
    struct ct_step_row *steps;
    struct ct_module_row *modules;
    struct ct_stack_row *stacks;
    struct ct_frame_row *frames;
    struct ct_library_row *libraries;
    struct ct_tuning_row *tunings; /* by comm; usable ones only */
    struct ct_choice_class_row *choice_classes;
    struct ct_choice_stop *choice_stops; /* of each communicator at most one */
    struct ct_kernel_row *kernels; /* by op; by itself first, then by launch */
    int *op_choices;   /* per op: index in choice_classes, or CT_NONE; NULL:
                          no choice was recorded */
    int64_t choices;   /* rows of choice */
    int64_t unplaced;  /* of them without an op */
    int64_t disagreed; /* ops of which log and plugin say different things */
};

struct ct_member { /* rank r of a communicator is members[r] */
    int process;   /* index in ct_trace.processes; CT_NONE: no trace */
    int row;       /* index in that process's comms */
};

struct ct_comm { /* a communicator, over all ranks */
    uint64_t uid;
    const char *name, *origin; /* NULL: none */
    int nranks, nknown;        /* known: with a trace */
    struct ct_member *members;
    int parent;           /* index in ct_job.comms; CT_NONE: made of none, or
                             nobody recorded it */
    int nnodes, ndomains; /* that its known members span */
    enum ct_link link;    /* the worst hop: what collectives wait for */
    int64_t speed;        /* of link; CT_NONE: unknown */
    const char *evidence; /* how link is known: conn, topology, host, ... */
    const char *detail;   /* the words that say so */
    int hops;             /* of its ring that are network; CT_NONE: unknown */
    int nics; /* fewest ports that a node uses for it; CT_NONE: none, or not
                 known */
};

/* How two ranks are linked. */
struct ct_link_fact {
    enum ct_link link;
    int64_t speed;        /* NVLink: its version; networks: Mbit/s of the port;
                             CT_NONE:        unknown */
    const char *evidence; /* conn, plugin, topology, host, unknown */
    char detail[160];     /* the words that say so */
};

/* One communication over all its ranks: a collective, or a send with its recv
 * (base SEND). Ops of one group launch are instances of their own; they share
 * its interval by their bytes, and say so. */
struct ct_instance { /* what it has in common with others is in its usage */
    int comm;        /* index in ct_job.comms */
    int usage;       /* index in ct_job.usages */
    uint32_t ordinal;
    uint32_t runs;       /* 1, or launches of what it was captured into */
    uint32_t ranks;      /* records found */
    uint32_t timed;      /* of them with a GPU time */
    int64_t transfer_ns; /* CT_NO_TIME: unknown */
    int64_t wait_sum_ns; /* duration - transfer over the ranks that were timed;
                            a late rank's may be negative, the sum over all
                            ranks is not */
    int64_t wait_max_ns;
    uint8_t base;    /* enum ct_op */
    bool grouped;    /* several ops in one launch: one sample, no alpha-beta */
    bool bound;      /* transfer is an upper bound: a rank is missing */
    bool overlapped; /* p2p or ROOTED whose receiver came late: transfer hidden,
                        a lower bound at best */
    bool skewed;     /* ranks came so far apart that transfer is a guess */
    bool estimated;  /* p2p without a common clock, where recvs of its edge and
                        size do not agree: transfer is their lower quartile */
    bool mismatch;   /* ranks disagree on kind, type or size */
    bool cut;        /* an abort ended it on some rank: no transfer */
};

/* All instances that are alike: same communicator, operation, reduction, type,
 * size, p2p edge and grouping. What everything above reads. */
struct ct_usage {
    int comm;
    enum ct_op base;
    int type, redop;
    uint64_t count, bytes;
    int src, dst;      /* p2p edge as ranks in comm; CT_NONE */
    bool grouped;      /* shared a launch with other ops */
    enum ct_link link; /* of the edge or, for collectives, the worst hop */
    int64_t speed;     /* of link; CT_NONE: unknown */
    const char *evidence;
    int64_t calls;       /* runs of its instances */
    double per_step;     /* calls in steady steps / steady steps; NAN: no
                            steps */
    double position;     /* mean place in the step, 0 first .. 1 last; NAN */
    int64_t timed;       /* instances whose transfer is known */
    int64_t transfer_ns; /* sum over those */
    int64_t wait_ns;     /* mean over ranks, summed over instances */
    int64_t nsamples;    /* transfers fit for alpha-beta: timed on the GPU, not
                            grouped, not bound, not overlapped, not skewed, no
                            mismatch,    warm-up left out */
    int64_t *samples;    /* ns, in time order */
    int64_t median_ns;   /* of samples, else of transfers that are whole, else
                            of all that were not overlapped; CT_NO_TIME */
};

struct ct_choice_of { /* index in the choice_classes of process; CT_NONE */
    int process, choice;
};

struct ct_call_kind {
    enum ct_op base;
    int type, redop;
    uint64_t count, bytes;
};

/* A rank whose operations are not those of the others of a communicator. */
struct ct_unlike {
    int comm, rank;
    int64_t calls;
    uint32_t first;                  /* ordinal of the first of them, */
    struct ct_call_kind own, others; /* and what was called */
    bool tied; /* as many ranks called the one as the other */
};

/* A rank that issued fewer operations of a communicator (src, dst: sends or
 * receives between these) than others, and whose trace lacks nothing. */
struct ct_ahead {
    int comm, src, dst;
    int behind;           /* its rank */
    int64_t issued, most; /* by it, by who issued most */
};

/* Collectives, and sends with their receives. */
struct ct_met {
    int64_t whole;    /* over all ranks; the rest lacks */
    int64_t untraced; /* ranks without a trace */
    int64_t lost;     /* records */
    int64_t ahead;    /* ranks that never issued it */
    int64_t unlike;   /* of all: ranks differ in what they called */
};

/* A reason that ct_job.no_steps gives. */
#define CT_NO_PERIOD \
    "no operation recurs regularly enough to mark training steps"

struct ct_job {
    int nprocesses;
    int *processes;        /* indices in ct_trace.processes, by rank */
    int64_t start_real_ns; /* of the first process; the host's CLOCK_REALTIME */
    const char *run_id; /* common to the tries of one launch; NULL: unknown */
    int restart;        /* number of the try, from 0 */
    int world_size;     /* by the launcher, else the largest communicator */
    int nnodes, ndomains;
    const char **node_names; /* a host name of each node */
    int ncomms, ninstances, nusages;
    struct ct_comm *comms;
    struct ct_instance *instances;
    struct ct_usage *usages;
    int nclocks, nclock_pairs;
    struct ct_clock_pair *clock_pairs; /* sorted */
    struct ct_clock *clocks;           /* see clocks.h */
    struct ct_choice_of *choices; /* per instance; NULL: none was recorded */
    int nsteps;      /* steady steps that all processes have; 0: none found */
    int64_t step_ns; /* median duration of those; CT_NO_TIME */
    double step_confidence; /* 0..1, that these are the steps; of those that
                               were not taken too */
    const char *no_steps;   /* why there are none; NULL: there are */
    int step_micro_batches; /* by the calls of a step; CT_NONE: they do not
                               tell */
    int64_t micro_batch_ns; /* median time from one to the next; CT_NO_TIME */
    int nforwards;          /* forward passes of inference */
    int64_t forward_ns;     /* median duration of those; CT_NO_TIME */
    int64_t span_ns;        /* longest first op .. last op of a process */
    int64_t missing;        /* members of communicators without a trace */
    int64_t mismatches;
    struct ct_met met;
    int nunlike, nahead;
    struct ct_unlike *unlike;
    struct ct_ahead *ahead;
    int64_t lost_ops;
    int in_flight; /* ops not known to have returned and finished */
};

struct ct_trace {
    int nprocesses, njobs;
    struct ct_process *processes;
    struct ct_job *jobs;  /* as they were started */
    int nskipped;         /* files that could not be read */
    int ndoubles;         /* of them, what others say as well, or more */
    const char **skipped; /* "FILE: reason" each */
    struct ct_arena *arena;
};

/* Opens every trace file named by paths (folders: every *.db in them, not
 * below) and derives everything above. Returns 0 and sets *trace_p, which the
 * caller frees with ct_trace_free; on failure returns -1 and writes one line
 * "FILE: reason" into error (of error_size bytes): nothing readable, no trace,
 * no op. A file that cannot be read beside others that can is skipped and
 * listed, not fatal. */
int ct_trace_open(char *const *paths, int npaths, struct ct_trace **trace_p,
                  char *error, size_t error_size);
void ct_trace_free(struct ct_trace *trace);

/* What of a job is asked for: ops of a rank, or of a communicator, or those of
 * the rank in it. */
struct ct_part {
    int rank;         /* CT_NONE: of all */
    const char *comm; /* as ct_find_comm wants it; NULL: in all */
};

/* The same for who asks for those ops alone, and need not wait for the others:
 * of the ops that are not asked for, many are not there. Their times are those
 * of the whole job, except that clocks are tied by what the part knows. part
 * may be NULL: all. */
int ct_trace_open_part(char *const *paths, int npaths,
                       const struct ct_part *part, struct ct_trace **trace_p,
                       char *error, size_t error_size);

/* The communicator of that number, or that uid in hexadecimal; CT_NONE: none.
 */
int ct_find_comm(const struct ct_job *job, const char *text);

/* What instance is an example of: its size, and for p2p its edge. */
static inline const struct ct_usage *
ct_usage_of(const struct ct_job *job, const struct ct_instance *instance)
{
    return &job->usages[instance->usage];
}

/* The graph whose launches tell how often op ran; CT_NONE: it counts where it
 * was called, since it was not captured or no launch can have been seen. */
static inline int ct_op_graph(const struct ct_process *p,
                              const struct ct_op_row *op)
{
    return p->by_launches ? p->classes[op->cls].graph : CT_NONE;
}

/* How often op ran: once, or as often as what it was captured into. */
static inline int64_t ct_op_runs(const struct ct_process *p,
                                 const struct ct_op_row *op)
{
    const int graph = ct_op_graph(p, op);

    return graph == CT_NONE ? 1 : p->graphs[graph].runs;
}

/* Step of op, of p's ops; CT_NONE: in none, or a graph's launches tell. */
int ct_op_step(const struct ct_process *p, const struct ct_op_row *op);

/* The number in the job of the step in that row; CT_NONE: it is none. */
static inline int ct_step_number(const struct ct_process *p, int row)
{
    return row == CT_NONE ? CT_NONE : p->steps[row].number;
}

/* What an op cost its rank: both add up to its duration (in a group to its
 * share of it). Wait of a collective is negative where the rank came late and
 * found the work of its peers done; over the ranks and over time it is not. */
struct ct_op_cost {
    int64_t transfer_ns, wait_ns;
};

/* False, and no times, where nothing is known. */
bool ct_op_cost(const struct ct_trace *trace, int process, int op,
                struct ct_op_cost *cost);

/* How NCCL ran an op: as its own process was told, else as another rank of its
 * instance was, for all run it alike. NULL: nobody was told. */
const struct ct_choice_class_row *
ct_op_choice(const struct ct_trace *trace, int process, int op, int *process_p);

/* Run of an op, not by a graph, that NCCL's profiler timed; NULL: none. */
const struct ct_kernel_row *ct_op_kernel(const struct ct_process *p, int op);

/* "s" unless n reads as 1 with three or four digits. */
static inline const char *ct_plural(double n)
{
    return n > .9995 && n < 1.0005 ? "" : "s";
}

/* As %.3g has it for 3 digits, but written out: "24580", never "2.46e+04". */
#define CT_NUMBER_SIZE 32
const char *ct_number(char text[CT_NUMBER_SIZE], double value, int digits);
#define CT_NUM(value_, digits_) \
    ct_number((char[CT_NUMBER_SIZE]){0}, value_, digits_)

/* "3.906 KiB" */
void ct_bytes_text(double bytes, char *text, size_t size);

/* Rank in the job of a member without a trace; CT_NONE: it does not follow. */
int ct_missing_rank(const struct ct_trace *trace, const struct ct_job *job,
                    int comm, int rank);

/* What rank's bytes to peer travel over, by the best evidence. */
void ct_pair_link(const struct ct_trace *trace, const struct ct_job *job,
                  int comm, int rank, int peer, struct ct_link_fact *fact);

/* Names of links.def. */
extern const char *const ct_link_names[CT_LINK_COUNT];

/* "NVSwitch 4", "InfiniBand 400G", "network". */
void ct_link_text(enum ct_link link, int64_t speed, char *text, size_t size);

/* What they could travel over by what the machine has; evidence is unknown
 * where that is not known. */
void ct_pair_topology(const struct ct_trace *trace, const struct ct_job *job,
                      int comm, int rank, int peer, struct ct_link_fact *fact);

/* The GPU of a communicator; NULL: unknown. */
const struct ct_device_row *ct_device_of(const struct ct_process *process,
                                         const struct ct_comm_row *comm);

/* What one connection of communicator comm (in the job) says, which teller's
 * log tells of; src and dst have to be ranks of it. */
void ct_conn_link(const struct ct_trace *trace, const struct ct_job *job,
                  int comm, const struct ct_process *teller,
                  const struct ct_conn_row *row, struct ct_link_fact *fact);

/* Connections of its communicator comm that the process's log tells of. *n_p
 * may be 0. */
const struct ct_conn_row *ct_conns_in(const struct ct_process *process,
                                      int comm, int *n_p);

#endif
