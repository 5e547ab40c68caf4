/*
 * What rules about links share: a walk over the connections that NCCL's logs
 * tell of, the line that says why one is as it is, and the finding about those
 * that are wrong in the same way.
 */
#ifndef COMMTRACE_CONNS_H
#define COMMTRACE_CONNS_H

#include "findings/rules.h"
#include "trace/via.h"

struct ct_conn_at { /* a connection, as its teller's log shows it */
    int comm;       /* index in ct_job.comms */
    const struct ct_process *teller;
    const struct ct_comm_row *row_of; /* the communicator, in teller */
    const struct ct_process *other;   /* NULL: left no trace */
    const struct ct_conn_row *row;
    struct ct_via via;
    bool own_end; /* the port that via names is the teller's */
};

/* Calls visit with every connection of the job until it returns false, which
 * is returned. */
typedef bool ct_visit_conn(const struct ct_conn_at *at, void *context);
bool ct_each_conn(const struct ct_case *c, ct_visit_conn *visit, void *context);

/* The first line of the log of process that holds word; NULL: none. Not one
 * of a variable whose value turns nothing off: NCCL_P2P_DISABLE=0,
 * NCCL_MNNVL_ENABLE=1, NCCL_NET_GDR_LEVEL=SYS. */
const char *ct_log_line(const struct ct_process *process, const char *word);

/* The first that is found, in the order of words; the list ends with NULL. */
const char *ct_log_reason(const struct ct_conn_at *at,
                          const char *const *words);

struct ct_bad_link {
    struct ct_link_fact is, could; /* could.link UNKNOWN: no price */
    const char *reason;            /* a line of the log; NULL: none says why */
};

struct ct_link_rule {
    enum ct_finding id;
    bool (*is_bad)(const struct ct_case *c, const struct ct_conn_at *at,
                   struct ct_bad_link *bad);
    /* What is wrong, after "of ranks 0-7: ", and what to do. */
    void (*tell)(const struct ct_case *c, const struct ct_conn_at *at,
                 const struct ct_bad_link *bad, char *text, size_t size);
    void (*advise)(const struct ct_bad_link *bad, char *text, size_t size);
};

/* By each rule one finding about all communicators of which a connection is
 * bad; false only without memory. */
bool ct_link_rules(struct ct_case *c, const struct ct_link_rule *rules,
                   size_t n, struct ct_findings *findings);

/* Advises to take the variable out that is the reason; false: none is. */
bool ct_advise_unset(const struct ct_bad_link *bad, char *text, size_t size);

/* How far a port is from a GPU, by gpu_nic.path: from near to far, as an
 * unsigned number the farthest where it is -1: not known. */
int ct_path_distance(const char *path);

/* Rank in the job of a rank of the communicator; CT_NONE: not known. */
int ct_job_rank(const struct ct_case *c, int comm, int rank);

#endif
