/*
 * Communicators that do the same thing in the same kind of place are one line
 * of a report: 128 tensor-parallel groups differ in their ranks only.
 */
#ifndef COMMTRACE_REPORT_FAMILY_H
#define COMMTRACE_REPORT_FAMILY_H

#include "report/view.h"

struct family { /* role x use x op x group size x place */
    char role[48];
    const char *use, *op, *link;
    char groups[32];                /* "4 x 2" */
    char nodes_text[16], where[48]; /* nodes and link; "2+", "TCP?" where
                                       ranks are missing */
    int counted; /* groups that means are over: some of their ranks count */
    int ngroups, nranks, nodes, domains;
    int members; /* of all its groups, that have a trace and were chosen */
    bool network;
    bool missing; /* a rank has no trace: times are upper bounds */
    bool timed;   /* else its times are 0 because nothing is known */
    double confidence;
    /* Per rank and view->per. */
    double calls, transfer_ms, wait_ms, share_percent;
    double apart_ms; /* of transfer_ms: of calls whose ranks always came too far
                        apart, which may be less than they took */
    uint64_t bytes;
    double wire_bytes; /* that a rank puts on its links */
    char first_ranks[64];
    char reasons[400], contradiction[120], decides[120];

    const struct ct_role *given; /* NULL: no role */
    enum ct_op base;
    enum ct_link link_id;
    int64_t speed;       /* of link: the lowest that is known; CT_NONE */
    uint64_t main_bytes; /* message size that carries most bytes */
    uint64_t top_bytes;  /* largest message size that was timed */
    double top_us;       /* its median; NAN: none */
    bool top_shared;     /* that is a share of groups, by bytes */
};

struct families {
    int n;
    struct family *rows; /* dearest first */
};

/* Returns 0, or -1 without memory. */
int families_build(struct families *families, const struct view *view);
void families_release(struct families *families);

/* The family of a role (of op, or CT_OP_COUNT: any) that moves most bytes;
 * NULL: none. */
const struct family *families_find(const struct families *families,
                                   enum ct_role_id role, enum ct_op base);

#endif
