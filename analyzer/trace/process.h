/* The rows of a process, decoded from its file. */
#ifndef COMMTRACE_PROCESS_H
#define COMMTRACE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/info.h"
#include "trace/link_rows.h"
#include "trace/short_ns.h"

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

/* How many of its steps are of that kind. */
static inline int ct_count_steps(const struct ct_process *p,
                                 enum ct_step_kind kind)
{
    int i, n = 0;

    for (i = 0; i < p->nsteps; i++)
        n += p->steps[i].kind == kind;
    return n;
}

#endif
