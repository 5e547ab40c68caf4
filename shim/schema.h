/* DDL and look-up rows of a trace, made from the tables in include/commtrace.
 */
#ifndef SHIM_SCHEMA_H
#define SHIM_SCHEMA_H

struct sqlite3;

/* Creates everything in an empty database, inside one transaction. An SQLite
 * result code. */
int schema_create(struct sqlite3 *db);

#endif
