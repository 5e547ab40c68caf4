/*
 * Ways that bytes take: a communicator for its collectives, two ranks for their
 * messages. A way is slow where its transfers take longer than the same ones of
 * ways that are alike.
 */
#ifndef COMMTRACE_WAYS_H
#define COMMTRACE_WAYS_H

#include "findings/rules.h"

struct ct_way {
    int comm;
    int a, b;          /* ranks of comm, a < b; CT_NONE: all of them */
    bool network;      /* else inside a node or an NVLink domain */
    bool rare;         /* of those that are alike most are as slow */
    bool by_reference; /* all are, and slower than in the reference */
    int usual;         /* usages that take as long as those that are alike */
    int slow;          /* those that take longer */
    double excess_ns;  /* in all, per step, or second where there are none */
    double error_ns;   /* of it, 90 % */
    int top;           /* the usage that costs most of it; */
    double top_excess_ns;
    double own_ns, usual_ns; /* its transfer, and that of the others, */
    int alike;               /* ways, this one among them */
};

struct ct_ways {
    int n;
    struct ct_way *rows; /* slow ones and others that were compared */
};

/* 0, or -1 without memory. */
int ct_ways_compare(const struct ct_case *c, struct ct_ways *ways);
void ct_ways_release(struct ct_ways *ways);

/* Of rank of its communicator. */
static inline bool ct_way_has(const struct ct_way *way, int rank)
{
    return way->a == CT_NONE || rank == way->a || rank == way->b;
}

/* Processes of the ranks at it, at most comm's nranks; returns their number. */
int ct_way_processes(const struct ct_job *job, const struct ct_way *way,
                     int *processes);

#endif
