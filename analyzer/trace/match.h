/*
 * Work area of matching, shared by match.c (which ops are one communication),
 * lanes.c (their numbers) and transfer.c (what they cost).
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
    bool rooted;      /* holds a ROOTED op, or is P2P: needs sides */
    int64_t side;     /* first of count sides; CT_NONE */
};

/* What one-clock rules need of an instance beside its durations. Times are
 * absolute, on the clock. */
struct ct_side {
    int64_t start_max, end_max;     /* end: of receivers */
    int64_t send_start, recv_start; /* of the last who sends, receives */
    int64_t recv_min, recv_sum;     /* durations of receivers */
    double share;                   /* of a recv in its launch */
    int clock;                      /* CT_NONE: none seen */
    int nrecv;
    bool many_clocks;
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
    int *clocks;                  /* per process of the job */
    struct ct_intern lane_keys, signature_keys;
    int nlanes, lane_capacity, usage_capacity, signature_capacity;
    struct ct_lane *lanes;
    struct ct_usage *signatures; /* usage of each signature, ungrouped */
    int *usage_of;               /* per signature: plain, grouped */
    int *signature_of;           /* per instance */
    struct ct_side *sides;
    int64_t nslots, nsides;
    int32_t *slots; /* dense lanes: instance, CT_NONE */
};

static inline struct ct_process *ct_process_at(const struct ct_matching *m,
                                               int i)
{
    return &m->trace->processes[m->job->processes[i]];
}

/* Room for the ordinals counted in each lane; marks those of process i; makes
 * an instance of each that is marked. */
void ct_lanes_lay_out(struct ct_matching *m);
void ct_lanes_mark(struct ct_matching *m, int i);
void ct_lanes_number(struct ct_matching *m);
int ct_lane_instance(const struct ct_matching *m, const struct ct_lane *lane,
                     uint32_t ordinal);

/* One record of instance: adds its times. */
void ct_transfer_add(struct ct_matching *m, int process_number,
                     const struct ct_op_row *op,
                     const struct ct_class_info *info,
                     struct ct_instance *instance, struct ct_side *side);

/* All records are in: sums -> transfer and wait. */
void ct_transfer_finish(struct ct_matching *m);

#endif
