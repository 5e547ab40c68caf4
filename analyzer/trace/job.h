/*
 * What the processes of a job say together: communicators over all their
 * ranks, communications, and what is alike of these.
 */
#ifndef COMMTRACE_JOB_H
#define COMMTRACE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/info.h"

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
                            mismatch, warm-up left out */
    int64_t *samples;    /* ns, in time order */
    int64_t apart;       /* calls whose ranks came too far apart for that */
    int64_t median_ns;   /* of samples, else of transfers that are whole, else
                            of all that were not overlapped; CT_NO_TIME */
};

static inline bool ct_usage_is_p2p(const struct ct_usage *usage)
{
    return usage->src != CT_NONE && usage->dst != CT_NONE;
}

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
    const char *step_doubt; /* what lowers that most; NULL: nothing */
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

/* What instance is an example of: its size, and for p2p its edge. */
static inline const struct ct_usage *
ct_usage_of(const struct ct_job *job, const struct ct_instance *instance)
{
    return &job->usages[instance->usage];
}

#endif
