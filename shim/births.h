/*
 * Communicators between the call that asks for one and the moment it can be
 * used: at once, at the end of the bracket, or when a non-blocking one reports
 * success.
 */
#ifndef SHIM_BIRTHS_H
#define SHIM_BIRTHS_H

#include "comm.h"
#include "group.h"

/* An id was asked for, which is maybe all that this process is for. */
void births_ask_id(void);
bool births_only_ids(void);

/* What is known before the call, by its kind; after it comes nccl_file_after().
 * A parent counts its children as NCCL does, also those that this rank has no
 * part in. */
void birth_of_id(struct comm_birth *birth, struct nccl_copy *copy,
                 enum ct_comm_origin origin, const ncclUniqueId *id, int nranks,
                 int rank, const ncclConfig_t *config);
void birth_of_all(struct comm_birth *birth, struct nccl_copy *copy, int ndev);
void birth_of_split(struct comm_birth *birth, struct nccl_copy *copy,
                    ncclComm_t parent, int color, const ncclConfig_t *config);
void birth_of_shrink(struct comm_birth *birth, struct nccl_copy *copy,
                     ncclComm_t parent, const int *excluded, int n,
                     const ncclConfig_t *config);
/* parent is NULL in new ranks, id in most of the others. */
void birth_of_grow(struct comm_birth *birth, struct nccl_copy *copy,
                   ncclComm_t parent, int nranks, const ncclUniqueId *id,
                   int rank, const ncclConfig_t *config);

/* The id that parent's coordinator got for the new ranks. */
void births_learn_id(const struct comm *parent, const ncclUniqueId *id);

/* Grown communicators whose new ranks got another number than the old ones
 * derive: an NCCL that numbers otherwise. */
uint64_t births_unlike(void);

/* After the call. parent is that whose state tells when *made is there; NULL:
 * *made is set at once and tells itself. */
void birth_end(const struct comm_birth *birth, ncclComm_t *made,
               ncclComm_t parent, ncclResult_t result);

/* After the outermost ncclGroupEnd. */
void births_of_group(struct group *group, ncclResult_t result);

/* comm (new, or a parent) has left ncclInProgress. */
void births_settle(ncclComm_t comm, ncclResult_t state);

/* The entry of one that is used and not known: it was never seen being made, or
 * nobody asked whether it is there. NULL: NCCL does not know it either. */
struct comm *births_adopt(struct nccl_copy *copy, ncclComm_t comm);

/* comm is being destroyed. */
void births_forget(ncclComm_t comm);

#endif
