/*
 * How two ranks are linked, by one kind of evidence each. Every function
 * returns false, and leaves fact alone, where its kind says nothing.
 */
#ifndef COMMTRACE_LINKS_H
#define COMMTRACE_LINKS_H

#include <string.h>

#include "trace/trace.h"

struct ct_ends {                    /* of rank and of peer; not the same GPU */
    const struct ct_process *a, *b; /* NULL: it left no trace */
    const struct ct_comm_row *comm_a, *comm_b;
    const struct ct_device_row *gpu_a, *gpu_b; /* NULL: unknown */
    int rank, peer;
};

/* Both are known, and the same. */
static inline bool ct_same_name(const char *a, const char *b)
{
    return a && b && *a && !strcmp(a, b);
}

static inline bool ct_one_node(const struct ct_ends *ends)
{
    return ends->a && ends->b && ends->a->node == ends->b->node;
}

bool ct_link_by_conn(const struct ct_ends *ends, struct ct_link_fact *fact);
bool ct_link_by_plugin(const struct ct_ends *ends, struct ct_link_fact *fact);
bool ct_link_by_topology(const struct ct_ends *ends, struct ct_link_fact *fact);
/* By the RDMA ports of two hosts. */
bool ct_link_by_ports(const struct ct_ends *ends, struct ct_link_fact *fact);
bool ct_link_by_host(const struct ct_ends *ends, struct ct_link_fact *fact);

/* What one connection between them says, of which teller's log tells. */
bool ct_link_of_conn(const struct ct_ends *ends, const struct ct_conn_row *conn,
                     const struct ct_process *teller,
                     struct ct_link_fact *fact);

/* Whether a is the worse one: a collective waits for it. */
bool ct_link_is_worse(const struct ct_link_fact *a,
                      const struct ct_link_fact *b);

static inline bool ct_link_is_network(enum ct_link link)
{
    static const bool network[] = {
#define LINK(id_, name_, network_, ...) [CT_LINK_##id_] = (network_) > 0,
#include "commtrace/links.def"
    };

    return network[link];
}

/* The smaller of two speeds of which each may be CT_NONE. */
static inline int64_t ct_slower(int64_t a, int64_t b)
{
    if (a == CT_NONE || b == CT_NONE)
        return a == CT_NONE ? b : a;
    return a < b ? a : b;
}

/* Sets hops and nics of a communicator. */
void ct_link_counts(const struct ct_trace *trace, const struct ct_job *job,
                    int comm);

#endif
