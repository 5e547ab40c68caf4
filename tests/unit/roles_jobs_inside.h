/*
 * What the files that make jobs share: roles_jobs.c collects what each rank
 * issues, roles_jobs_play.c plays it, roles_jobs_trace.c derives what trace/
 * would have.
 */
#ifndef ROLES_JOBS_INSIDE_H
#define ROLES_JOBS_INSIDE_H

#include "roles_jobs.h"

#define MOST_COMMS 256

enum item_kind { COMPUTE, CALL, GROUP, GROUP_END, STEP };

struct item {
    enum item_kind kind;
    double us;
    int comm, peer, redop;
    enum ct_op base;
    uint64_t count;
    enum ct_step_kind step;
};

struct call { /* a played op */
    int comm, peer;
    enum ct_op base;
    uint64_t bytes;
    uint32_t ordinal;
    double start, end;
    bool posted;
    int op; /* index in the process's ops */
};

struct rank_state {
    int nitems, room, pc;
    struct item *items;
    double now, busy; /* us; busy: computing, in the step */
    double steady_us; /* computing in steady steps */
    int ncalls, calls_room;
    struct call *calls;
    int group_first; /* first call of the open or posted group */
    bool posted;
    int *ordinals; /* [comm]: collectives; then per peer and direction */
};

struct maker {
    int nranks, ranks_per_node, ncomms;
    uint64_t seed;
    double jitter;
    struct maker_link links[2];
    struct rank_state *ranks;
    int comm_of[MOST_COMMS][64]; /* rank in comm by world rank, -1 */
    double idle;
    int instances_room, usages_room;
    struct ct_trace trace;
    struct ct_job job;
};

/* Room for element n of array, of which *room are there. */
void *maker_more(void *array, int n, int *room, size_t size);
double maker_jittered(struct maker *maker, double us);
bool maker_is_p2p(enum ct_op base);
enum ct_link maker_pair_link(const struct maker *maker, int a, int b);
void maker_play(struct maker *maker);

#endif
