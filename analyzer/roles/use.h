/*
 * Uses: a communicator and one part of its traffic, with what is known of it
 * before anyone asks for its purpose.
 */
#ifndef COMMTRACE_USE_H
#define COMMTRACE_USE_H

#include "trace/trace.h"

enum ct_use_kind {
    CT_USE_LARGE,    /* collectives on data */
    CT_USE_SMALL,    /* collectives on a few elements */
    CT_USE_P2P,      /* send/recv between neighbours */
    CT_USE_EXCHANGE, /* all-to-all, or send/recv with every rank at once */
    CT_USE_INIT,     /* collectives of no steady step */
    CT_USE_KINDS
};

/* A collective on at most this many elements carries no tensor. */
#define CT_SMALL_COUNT 16

struct ct_use_size {
    enum ct_op base;
    uint64_t bytes; /* S */
    double calls;   /* per step; without steps: in all */
};

struct ct_use {
    int comm, nranks;
    enum ct_use_kind kind;
    bool only;    /* the communicator's one use */
    double calls; /* per step and rank; without steps: in all */
    double bytes; /* S, likewise */
    int nsizes;   /* distinct (operation, size), most calls first */
    struct ct_use_size *sizes;
    double reduces, scatters, gathers, broadcasts; /* shares of calls */
    double averages;   /* share that divides by the ranks: AVG, PreMulSum */
    double init_bytes; /* broadcast over comm before the steps */

    /* From the order of ops, order.h; NAN where nothing is known. */
    double p2p_inside; /* share of the rank's send/recv between its first and
                          last call of a step, the step taken as a circle */
    double gap_ratio;  /* longest / median pause between two calls */
    double turns;      /* share of calls where gather and scatter alternate */

    bool one_pipeline; /* two of its ranks are stages of one pipeline */
    int family;        /* index, family.h */
};

struct ct_uses {
    int n;
    struct ct_use *uses;
    int *of_usage;            /* per ct_job.usages */
    bool *exchanges;          /* per ct_job.comms: its p2p is an all-to-all */
    struct ct_use_size *room; /* what all sizes point into */
};

/* What a class of ops belongs to inside a steady step. */
enum ct_use_kind ct_use_kind_of(enum ct_op base, uint64_t count, bool exchange);

/* Divides the job's usages into uses; exchanges as ct_exchanges found them, and
 * owned by the result from then on. Returns 0, or -1 without memory. */
int ct_uses_gather(const struct ct_job *job, bool *exchanges,
                   struct ct_uses *uses);
void ct_uses_release(struct ct_uses *uses);

/* The use of comm of that kind; CT_NONE. */
int ct_uses_find(const struct ct_uses *uses, int comm, enum ct_use_kind kind);

#endif
