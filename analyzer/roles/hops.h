/*
 * The directed graph of messages between processes.
 */
#ifndef COMMTRACE_HOPS_H
#define COMMTRACE_HOPS_H

#include "roles/chains.h"

struct ct_hop { /* messages of one size from one process to another */
    int src, dst;
    uint64_t bytes;
    double sent, received; /* per step */
};

struct ct_hops {
    const struct ct_trace *trace;
    const struct ct_job *job;
    int nhops, room;
    struct ct_hop *hops;
    int *parent;      /* union-find over processes */
    int *degree;      /* neighbours */
    int *next[2];     /* the neighbours of a process with one or two */
    bool *apart;      /* process has a message that no other one accompanies */
    bool *recv_first; /* its first message of a step is a receive */
};

/* Collects the messages of the job and connects the processes. Returns 0, or -1
 * without memory; to be released either way. */
int ct_hops_find(const struct ct_trace *trace, const struct ct_job *job,
                 const bool *exchanges, struct ct_hops *graph);
void ct_hops_release(struct ct_hops *graph);

/* Representative of the component of process i. */
int ct_hops_root(int *parent, int i);

/* Some message goes from src to dst. */
bool ct_hops_has(const struct ct_hops *graph, int src, int dst);

#endif
