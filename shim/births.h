/*
 * Communicators between the call that asks for one and the moment it can be
 * used: at once, at the end of the bracket, or when a non-blocking parent
 * reports success.
 */
#ifndef SHIM_BIRTHS_H
#define SHIM_BIRTHS_H

#include "comm.h"
#include "group.h"

/* What is known before the call, by its kind. */
void birth_of_id(struct comm_birth *birth, const ncclUniqueId *id, int nranks,
                 int rank, const ncclConfig_t *config);
void birth_of_all(struct comm_birth *birth, int ndev);
/* False: this rank gets no communicator (the child counts all the same). */
bool birth_of_split(struct comm_birth *birth, ncclComm_t parent, int color,
                    const ncclConfig_t *config);

/* After the call. parent is NULL for what has none. */
void birth_end(const struct comm_birth *birth, ncclComm_t *made,
               ncclComm_t parent, ncclResult_t result);

/* After the outermost ncclGroupEnd. */
void births_of_group(struct group *group, ncclResult_t result);

/* comm (new, or a parent) has left ncclInProgress. */
void births_settle(ncclComm_t comm, ncclResult_t state);

/* comm is being destroyed. */
void births_forget(ncclComm_t comm);

#endif
