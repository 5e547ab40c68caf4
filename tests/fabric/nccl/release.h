/*
 * Which NCCL the library is. A release is the same objects as every other,
 * linked with its own version and its own list of exports.
 */
#ifndef FABRIC_NCCL_RELEASE_H
#define FABRIC_NCCL_RELEASE_H

/* NCCL_VERSION_CODE; of the default library what the machine's file says. */
int nccl_release(void);

/* Data types and reduction operators that the release knows. */
int nccl_release_types(void);
int nccl_release_redops(void);

/* What a release calls of itself by its public name, so that a tool in front
 * sees it (NCCL's source at the tags around the change). */
int nccl_release_groups_p2p(void);  /* Send, Recv: GroupStart, GroupEnd */
int nccl_release_groups_all(void);  /* CommInitAll: the same two */
int nccl_release_asks_for_id(void); /* CommInitAll: GetUniqueId */

#endif
