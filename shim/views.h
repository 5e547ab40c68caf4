/* The views of a trace: what a person asks of it in a bare sqlite3 shell. */
#ifndef SHIM_VIEWS_H
#define SHIM_VIEWS_H

struct sqlite3;

/* Creates them, once the tables are there. An SQLite result code. */
int views_create(struct sqlite3 *db);

#endif
