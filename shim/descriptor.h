/*
 * Our file descriptors in somebody else's process. They have high numbers, so
 * that the program's own files get the numbers that they always got, and never
 * 0 to 2, which a program started without them writes to all the same. A
 * program may close them all, as daemons do, and get a number of ours for a
 * file of its own: so each is checked before it is used.
 */
#ifndef SHIM_DESCRIPTOR_H
#define SHIM_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

/* As open(). At most DESCRIPTORS are open at once. */
int descriptor_open(const char *path, int flags, mode_t mode);
enum { DESCRIPTORS = 16 };

/* False once the program has closed it. */
bool descriptor_is_ours(int fd);

/* True if the program has closed one of SQLite's. */
bool descriptor_sqlite_robbed(void);

/* True if somebody has deleted what SQLite writes. */
bool descriptor_sqlite_removed(void);

/* False where the program needs all that the process may open. */
bool descriptor_has_room(void);

/* Closes it unless the program has. */
int descriptor_close(int fd);

/* Makes SQLite use the above; a file that was taken away is an I/O error. */
void descriptor_guard_sqlite(void);

#endif
