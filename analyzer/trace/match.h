/*
 * Work area of matching, shared by match.c (which ops are one communication),
 * lanes.c (their numbers), agree.c (what they are where ranks differ),
 * account.c (whom they lack), the clock stage (clock.h), transfer.c and
 * rooted.c (what they cost).
 *
 * A lane is a sequence that counts its ordinals by itself: the collectives of
 * a communicator, or the transfers of one (communicator, source, destination).
 */
#ifndef COMMTRACE_MATCH_H
#define COMMTRACE_MATCH_H

#include "trace/intern.h"
#include "trace/stages.h"

enum ct_lane_kind { CT_LANE_COLL, CT_LANE_P2P, CT_LANE_ONE_SIDED };

struct ct_lane {
    int comm, src, dst;
    enum ct_lane_kind kind;
    uint32_t low, high; /* ordinals seen */
    int64_t n;          /* ops */
    int64_t slots;      /* dense: first of high - low + 1 slots */
    uint32_t *sparse;   /* else: the distinct ordinals, sorted */
    int nsparse;
    int first, count; /* instances */
    int64_t issued;   /* first of its width in issued */
    int64_t pair;     /* of P2P: first of count pairs */
};

/* A send and its recv, if timed: processes of the trace, and their ops. */
struct ct_pair {
    int sender, receiver; /* CT_NONE: none */
    int send, recv;
};

struct ct_class_info {
    int lane;
    int signature;
    enum ct_op_class cls;
    bool receives; /* gets data from a root or peer */
};

struct ct_matching {
    struct ct_trace *trace;
    struct ct_job *job;
    struct ct_class_info **infos; /* per process of the job, per class */
    struct ct_intern lane_keys, signature_keys;
    int nlanes, lane_capacity, usage_capacity, signature_capacity;
    struct ct_lane *lanes;
    struct ct_usage *signatures; /* usage of each signature, ungrouped */
    int *usage_of;               /* per signature: plain, grouped */
    int *signature_of;           /* per instance */
    struct ct_pair *pairs;       /* per instance of P2P lanes */
    uint32_t *issued;            /* per lane and rank: highest ordinal + 1 */
    int64_t nslots, npairs;
    int32_t *slots; /* dense lanes: instance, CT_NONE */
};

static inline struct ct_process *ct_process_at(const struct ct_matching *m,
                                               int i)
{
    return &m->trace->processes[m->job->processes[i]];
}

/* Ranks that record an instance of it. */
static inline int ct_lane_width(const struct ct_matching *m,
                                const struct ct_lane *lane)
{
    return lane->kind == CT_LANE_COLL  ? m->job->comms[lane->comm].nranks
           : lane->kind == CT_LANE_P2P ? 2
                                       : 1;
}

/* Which of them rank of the communicator is, that issues a class. */
static inline int ct_lane_place(const struct ct_lane *lane,
                                const struct ct_class_info *info, int rank)
{
    return lane->kind == CT_LANE_COLL  ? rank
           : lane->kind == CT_LANE_P2P ? (int)info->receives
                                       : 0;
}

/* The rank of the communicator that has a place, not of ONE_SIDED. */
static inline int ct_lane_rank(const struct ct_lane *lane, int place)
{
    return lane->kind == CT_LANE_COLL ? place
           : place == 0               ? lane->src
                                      : lane->dst;
}

/* Room for the ordinals counted in each lane; marks those of process i; makes
 * an instance of each that is marked. */
void ct_lanes_lay_out(struct ct_matching *m);
void ct_lanes_mark(struct ct_matching *m, int i);
void ct_lanes_number(struct ct_matching *m);
int ct_lane_instance(const struct ct_matching *m, const struct ct_lane *lane,
                     uint32_t ordinal);

/* Instances on which ranks differ get the signature of most of them; names the
 * others in job->unlike. */
void ct_match_agree(struct ct_matching *m);

/* Room for issued; once it is filled: job->met, job->ahead. */
void ct_account_lay_out(struct ct_matching *m);
void ct_account(struct ct_matching *m);

/* One record of instance: adds its duration. */
void ct_transfer_add(struct ct_matching *m, int process_number,
                     const struct ct_op_row *op,
                     const struct ct_class_info *info,
                     struct ct_instance *instance);

/* All records are in, and clocks known: sums -> transfer and wait. */
void ct_transfer_finish(struct ct_matching *m);
void ct_rooted_finish(struct ct_matching *m);

/* Duration that op answers for: its own, or its share of its launch, which
 * lasts as long as what the rank receives in it: sends beside that cost
 * nothing. */
int64_t ct_own_time(const struct ct_process *p, const struct ct_op_row *op,
                    enum ct_op_class cls);

/* Sums of durations -> waits beyond transfer. */
void ct_set_waits(struct ct_instance *instance, int64_t transfer);

/* Times on several clocks count where they are off by no more than
 * CT_CLOCK_ERROR_NS, or no more than CT_CLOCK_ERROR of the transfer. Beyond
 * CT_SAMPLE_ERROR of it the result is no sample of a bandwidth. */
#define CT_CLOCK_ERROR_NS 20e3
#define CT_CLOCK_ERROR .1
#define CT_SAMPLE_ERROR .05

static inline bool ct_is_clear(double error_ns, int64_t transfer_ns)
{
    return error_ns <= CT_CLOCK_ERROR_NS ||
           error_ns <= CT_CLOCK_ERROR * (double)transfer_ns;
}

/* Whether a receiver that began so much after all senders missed too much: more
 * than this share of the transfer. */
#define CT_HIDDEN_SHARE .02

static inline bool ct_hides(int64_t late_ns, int64_t transfer_ns)
{
    return late_ns > 0 &&
           (double)late_ns > CT_HIDDEN_SHARE * (double)transfer_ns;
}

#endif
