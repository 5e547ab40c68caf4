/* What the bytes between two ranks travel over. */
#ifndef COMMTRACE_LINK_FACTS_H
#define COMMTRACE_LINK_FACTS_H

#include <stddef.h>
#include <stdint.h>

#include "commtrace/ops.h"
#include "trace/link_rows.h"

struct ct_trace;
struct ct_job;
struct ct_process;
struct ct_comm_row;

/* How two ranks are linked. */
struct ct_link_fact {
    enum ct_link link;
    int64_t speed;        /* NVLink: its version; networks: Mbit/s of the port;
                             CT_NONE: unknown */
    const char *evidence; /* conn, plugin, topology, host, unknown */
    char detail[160];     /* the words that say so */
};

/* Names of links.def. */
extern const char *const ct_link_names[CT_LINK_COUNT];

/* "NVSwitch 4", "InfiniBand 400G", "network". */
void ct_link_text(enum ct_link link, int64_t speed, char *text, size_t size);

/* What rank's bytes to peer travel over, by the best evidence. */
void ct_pair_link(const struct ct_trace *trace, const struct ct_job *job,
                  int comm, int rank, int peer, struct ct_link_fact *fact);

/* What they could travel over by what the machine has; evidence is unknown
 * where that is not known. */
void ct_pair_topology(const struct ct_trace *trace, const struct ct_job *job,
                      int comm, int rank, int peer, struct ct_link_fact *fact);

/* The GPU of a communicator; NULL: unknown. */
const struct ct_device_row *ct_device_of(const struct ct_process *process,
                                         const struct ct_comm_row *comm);

/* What one connection of communicator comm (in the job) says, which teller's
 * log tells of; src and dst have to be ranks of it. */
void ct_conn_link(const struct ct_trace *trace, const struct ct_job *job,
                  int comm, const struct ct_process *teller,
                  const struct ct_conn_row *row, struct ct_link_fact *fact);

/* Connections of its communicator comm that the process's log tells of. *n_p
 * may be 0. */
const struct ct_conn_row *ct_conns_in(const struct ct_process *process,
                                      int comm, int *n_p);

#endif
