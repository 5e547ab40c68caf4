/*
 * What each use of a communicator is for. A use is a communicator and a part
 * of its ops (its large all-reduces, its scalars, its send/recv): one
 * communicator may serve two roles.
 */
#ifndef COMMTRACE_ROLES_H
#define COMMTRACE_ROLES_H

#include "trace/trace.h"

enum ct_role_id {
    CT_ROLE_UNKNOWN,
    CT_ROLE_TP,
    CT_ROLE_PP,
    CT_ROLE_DP,
    CT_ROLE_CONTROL,
    CT_ROLE_COUNT
};
extern const char *const ct_role_names[CT_ROLE_COUNT];

#define CT_REASONS 3

struct ct_role {
    int comm;                     /* index in ct_job.comms */
    const char *use;              /* "all", "large", "small", "p2p", "init" */
    enum ct_role_id role;         /* UNKNOWN below the stated confidence */
    double confidence;            /* 0..1 */
    enum ct_role_id best, second; /* what it would be; runner-up */
    char reasons[CT_REASONS][120];
    char contradiction[120]; /* "": none */
    char decides[120];       /* for UNKNOWN: evidence that would decide */
};

struct ct_roles {
    int nroles;
    struct ct_role *roles;
    int *of_usage; /* per ct_job.usages: index in roles; CT_NONE */
    /* The job's layout where the labels give one; 0 where they do not. */
    int tp, pp, dp;
    int layers_per_stage; /* as far as the algebra allows; 0: not known */
    int micro_batches;
};

struct ct_roles *ct_roles_build(const struct ct_trace *trace,
                                const struct ct_job *job);
void ct_roles_free(struct ct_roles *roles);

#endif
