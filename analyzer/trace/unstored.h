/*
 * Processes that died before their database held anything: all that is known
 * of them is in their ring, which names the database.
 */
#ifndef COMMTRACE_UNSTORED_H
#define COMMTRACE_UNSTORED_H

struct ct_ring;

/* Calls found(context, NAME.db) for each ring on this host whose process wrote
 * into folder and stored nothing. The folder need not exist. */
void ct_unstored_each(const char *folder,
                      void (*found)(void *context, const char *name),
                      void *context);

/* Copies the ring of the database that should be at db_path; ring->copy stays
 * NULL where there is none, or where it is not of such a process. */
void ct_unstored_read(struct ct_ring *ring, const char *db_path);

#endif
