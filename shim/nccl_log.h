/*
 * NCCL's debug log (NCCL_DEBUG=INFO), read as facts: which transport each
 * channel took, rings, trees, what the search of the topology found, NCCL's
 * table of predictions, what it chose for each collective, warnings. The shapes
 * of NCCL 2.4 ... 2.32 are known; any other line is counted, none is an error.
 *
 * Bytes come in pieces of any size. Memory is fixed, whatever comes: nothing
 * here knows of files, the environment or the clock.
 *
 * A log may hold the lines of many processes and threads, interleaved, and be
 * broken by what others print into it. Lines of a communicator's set-up do not
 * say whose they are, but share the thread of those that do: so such facts
 * wait until its communicator is named (before 2.18 that is the set-up's last
 * line) and then come in their order. Connections made at first use come from
 * threads that name nobody: they go to the communicator of that process whose
 * device, rank, nodes and rings they fit; where several do, to the one that was
 * called first, if calls are told and leave no doubt, else the fact says that
 * it is `likely` only.
 */
#ifndef SHIM_NCCL_LOG_H
#define SHIM_NCCL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nccl_log_kind {
    NCCL_LOG_COMM,    /* more is known of a communicator */
    NCCL_LOG_CONN,    /* a channel's way to a peer */
    NCCL_LOG_RING,    /* neighbours on a channel */
    NCCL_LOG_TREE,    /* parent and children on a channel */
    NCCL_LOG_GRAPH,   /* a pattern that the search found */
    NCCL_LOG_TUNING,  /* one cell of the table of predictions */
    NCCL_LOG_CHOICE,  /* what a collective runs as */
    NCCL_LOG_MESSAGE, /* a line worth keeping as it is */
};

enum { NCCL_LOG_UNKNOWN = -1 }; /* a number that the log does not tell */

/* Who says it. */
struct nccl_log_source {
    const char *host;
    int64_t pid;
    int64_t tid;
    int device; /* CUDA ordinal */
};

/* The communicator that a fact is of. Pointers come back after a destroy:
 * birth counts the communicators that its process has had at that address,
 * from 0, in the order of their set-up. */
struct nccl_log_name {
    uint64_t pointer; /* 0: of none, or of nobody knows which */
    unsigned birth;
    bool likely; /* several would fit */
};

enum nccl_log_phase {
    NCCL_LOG_START,    /* its set-up began; not told before 2.18 */
    NCCL_LOG_DETAIL,   /* some number changed */
    NCCL_LOG_COMPLETE, /* its set-up is done */
    NCCL_LOG_END,      /* it was destroyed or aborted */
};

/* All that is known of it so far. */
struct nccl_log_comm {
    enum nccl_log_phase phase;
    uint64_t hash; /* commId; 0: not told, as before 2.16 and of splits */
    uint64_t parent;
    int rank;
    int nranks;
    int device;
    int nodes;
    int local_ranks;
    int mnnvl;
    int channels;
    int nvls_channels;
    int p2p_channels;
    char network[48]; /* empty: not told */
};

enum nccl_log_end { NCCL_LOG_BOTH, NCCL_LOG_SEND, NCCL_LOG_RECEIVE };

struct nccl_log_conn {
    int channel;
    int connector; /* 0 rings and trees, 1 send and recv */
    int src;       /* ranks; of CollNet the one that is not in the network is */
    int dst;       /* NCCL_LOG_UNKNOWN */
    enum nccl_log_end end;
    char via[64]; /* P2P/IPC, SHM/direct/direct, NET/IB/0/GDRDMA, ... */
};

struct nccl_log_ring {
    int channel;
    int prev;
    int next;
};

struct nccl_log_tree {
    int channel;
    int up;      /* NCCL_LOG_UNKNOWN: none, */
    int down[3]; /* here too */
};

struct nccl_log_graph {
    int pattern;
    int channels;
    double intra_GBps;
    double inter_GBps;
    char intra_type[8];
    char inter_type[8];
};

struct nccl_log_tuning {
    int op; /* enum ct_op */
    const char *algorithm;
    const char *protocol;
    double latency_us;
    double algbw_GBps;
};

struct nccl_log_choice {
    int op;        /* enum ct_op; NCCL_LOG_UNKNOWN before 2.23 */
    int64_t bytes; /* S before 2.24, of a group's alike in one; since then of
                      one rank's share */
    char algorithm[48]; /* of symmetric kernels the kernel */
    char protocol[16];
    int channels;
    double time_us; /* that NCCL expects; < 0: not told, as since 2.24 */
};

struct nccl_log_message {
    const char *kind; /* as nccl_message.kind */
    const char *text; /* without its prefix */
};

struct nccl_log_fact {
    enum nccl_log_kind kind;
    struct nccl_log_source source;
    struct nccl_log_name comm;
    union {
        struct nccl_log_comm about;
        struct nccl_log_conn conn;
        struct nccl_log_ring ring;
        struct nccl_log_tree tree;
        struct nccl_log_graph graph;
        struct nccl_log_tuning tuning;
        struct nccl_log_choice choice;
        struct nccl_log_message message;
    };
};

/* The fact and what it points to last until the return. */
typedef void nccl_log_sink(void *arg, const struct nccl_log_fact *fact);

struct nccl_log_counts {
    uint64_t bytes;
    uint64_t lines;
    uint64_t nccl;    /* of them NCCL's */
    uint64_t others;  /* of them by processes that were not asked for */
    uint64_t unknown; /* NCCL's, in no known shape */
    uint64_t facts;
    uint64_t unnamed; /* facts whose communicator was never named */
};

struct nccl_log;

/* Facts of one process only where pid is not 0, and of one on that host where
 * host is not NULL. NULL: no memory. */
struct nccl_log *nccl_log_open(int64_t pid, const char *host,
                               nccl_log_sink *sink, void *arg);

void nccl_log_feed(struct nccl_log *log, const char *bytes, size_t n);

/* A collective, send or recv that moves something, called on a communicator of
 * several ranks, by the process that was asked for, else the first of the log;
 * share: count times size of its type, whole: its message size S. To be told in
 * the order of the calls, after the bytes that NCCL had written by then; sooner
 * or later than the lines about it; together: in one group with the call told
 * before, or while that was under way, so that NCCL may have come to either
 * first. Without, a choice is of no communicator where the process is rank 0 of
 * several, and connections at first use are `likely` ones more often. */
void nccl_log_called(struct nccl_log *log, uint64_t pointer, int op,
                     int64_t share, int64_t whole, bool together);

/* Calls will be told, though none was yet: lines about them wait. */
void nccl_log_expect_calls(struct nccl_log *log);

/* To be called when nothing has come for a while: decides about connections at
 * first use that several communicators would fit, as far as that leaves no
 * doubt. all_calls: those that were made before the last bytes have been told.
 * last: nothing will come any more, so a last line without newline counts, and
 * all that waits is told. */
void nccl_log_flush(struct nccl_log *log, bool all_calls, bool last);

const struct nccl_log_counts *nccl_log_counted(const struct nccl_log *log);

void nccl_log_close(struct nccl_log *log);

#endif
