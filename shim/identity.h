/*
 * Names for communicators that all their ranks compute alike, without a
 * message: of an id, of a parent and what was asked of it, or, where a grown
 * communicator's new ranks know no parent, of the number that NCCL itself
 * derives and passes on.
 */
#ifndef SHIM_IDENTITY_H
#define SHIM_IDENTITY_H

#include "commtrace/nccl_abi.h"

#include <stdbool.h>
#include <stdint.h>

/* NCCL's own numbers of a communicator. Its hash repeats (every shrink of a
 * parent has the same), so it names nothing; but a grown communicator's magic
 * is made of its parent's. */
struct nccl_numbers {
    bool known;
    uint64_t hash;
    uint64_t magic;
};

struct identity {
    uint64_t uid; /* 0: none, a name local to the process is needed */
    struct nccl_numbers nccl;
};

/* By unique id. A rank that joins under the same id again (NCCL_COMM_ID makes
 * all ids alike) gets the next name of a sequence. */
struct identity identity_of_id(const ncclUniqueId *id, int nranks, int rank);

/* The nth child (from 1; splits and grows count, also a split that leaves this
 * rank without a communicator) of a parent, of one colour. */
struct identity identity_of_split(const struct identity *parent, uint32_t child,
                                  int color);

/* The nth (from 1) that leaves out these very ranks, in whatever order: just
 * those that stay have called it n times. */
struct identity identity_of_shrink(const struct identity *parent, uint64_t set,
                                   uint32_t nth);
uint64_t identity_of_ranks(const int *ranks, int n);

/* What a grown communicator is named by, in NCCL's own terms: ranks of the
 * parent derive it, and NCCL writes it into the id that new ranks are given.
 * Two have the same name where NCCL's hashes of their parents are the same, as
 * those of two shrinks of one communicator are, and all sizes, too. */
struct grown {
    uint64_t magic;
    int old_ranks; /* those of the parent */
};
struct grown identity_grown(const struct nccl_numbers *parent, int old_ranks,
                            uint32_t child);
struct grown identity_grown_of_id(const ncclUniqueId *id);
struct identity identity_of_grow(const struct grown *grown, int nranks);

/* By NCCL's own number, where nothing else is known. One that comes back gets
 * the next name of a sequence, as that of a unique id. */
struct identity identity_of_hash(uint64_t hash, int nranks, int rank);

/* Never equal to one of another process. */
uint64_t identity_local(uint64_t process, uint64_t n);

#endif
