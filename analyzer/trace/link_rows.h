/*
 * What a process knows of the ways between GPUs: the ports of its host, and
 * what NCCL's log or profiler said of its communicators. Rows as in the file;
 * comm is an index in the process's comms, CT_NONE stands for NULL. It comes
 * first in each row of ct_nccl_words, and all but messages are sorted by it.
 */
#ifndef COMMTRACE_LINK_ROWS_H
#define COMMTRACE_LINK_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_nic_row {
    int id, port;
    bool rdma;
    const char *name, *state, *source; /* never NULL */
    const char *link_layer, *driver;   /* NULL: unknown */
    int64_t mbps;
};

struct ct_gpu_nic_row {
    int device, nic; /* ids */
    const char *path;
};

struct ct_absence_row {
    const char *what, *why;
};

struct ct_nccl_comm_row {
    int comm;
    int nodes, mnnvl, nvls_channels;
    bool plugin;         /* NCCL's profiler said it, not its log */
    const char *network; /* NULL: not said */
};

/* Connections from src to dst that are alike. Sorted by comm, src, dst. */
struct ct_conn_row {
    int comm, src, dst;
    int connector; /* 1: of send/recv */
    int channels;
    bool receives; /* dst said so; else src did, or it is not said */
    const char *via;
};

struct ct_nccl_graph_row {
    int comm, pattern;
    const char *intra_type; /* never NULL */
};

/* Of the first ring of comm. */
struct ct_ring_row {
    int comm, prev, next;
};

struct ct_nccl_message_row {
    int comm;
    const char *text; /* never NULL */
};

struct ct_nccl_words {
    int ncomms, nconns, ngraphs, nrings, nmessages;
    struct ct_nccl_comm_row *comms;
    struct ct_conn_row *conns;
    struct ct_nccl_graph_row *graphs;
    struct ct_ring_row *rings;
    struct ct_nccl_message_row *messages;
};

/* The rows of comm: index of the first of *n_p. */
int ct_rows_of_comm(const void *rows, int n, size_t size, int comm, int *n_p);

#endif
