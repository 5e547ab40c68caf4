/* Rank files with what tells how GPUs are linked, for tests of links. */
#ifndef LINKS_FILES_H
#define LINKS_FILES_H

#include "trace_files.h"

struct links_job {
    int ranks, per_host;
};

static inline int links_host(const struct links_job *job, int rank)
{
    return rank / job->per_host;
}

/* As files_begin_reducing, with one op; GPU rank of PCI bus rank. */
sqlite3 *links_begin(const char *folder, const struct links_job *job, int rank);

/* From rank's GPU to peer's, -1: to an NVSwitch. */
void links_gpu_link(sqlite3 *db, int rank, int peer, const char *kind,
                    int version, const char *path);
/* Port number of the host, mlx5_<number>: "rdma 1 InfiniBand ACTIVE 400000",
 * "net 0 - up 10000". */
void links_nic(sqlite3 *db, int number, const char *what);
void links_gpu_nic(sqlite3 *db, int rank, int number, const char *path);
void links_message(sqlite3 *db, const char *kind, const char *text);
void links_graph(sqlite3 *db, int pattern, const char *intra_type);

/* As the log of the rank at end ("send" or "receive") tells of it, on two
 * channels. */
void links_conn(sqlite3 *db, int src, int dst, const char *end,
                const char *via);

/* Rank's connections to both neighbours of a ring over all ranks. */
void links_ring(sqlite3 *db, const struct links_job *job, int rank,
                const char *via);
void links_ring_across(sqlite3 *db, const struct links_job *job, int rank,
                       const char *inside, const char *across);

#endif
