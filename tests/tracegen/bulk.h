/*
 * Rows of integers that come in masses. They wait in memory, and one statement
 * takes many of them through a virtual table: SQLite spends two thirds of the
 * time on each that it spends where each is bound and stepped alone.
 */
#ifndef TRACEGEN_BULK_H
#define TRACEGEN_BULK_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#define BULK_NULL INT64_MIN

struct bulk;

/* For rows of so many columns into table; NULL: not possible. */
struct bulk *bulk_open(sqlite3 *db, const char *table, int columns);
void bulk_close(struct bulk *bulk);

/* Adds a row, or what waits; false: the database refuses. */
bool bulk_add(struct bulk *bulk, const int64_t *values);
bool bulk_flush(struct bulk *bulk);

#endif
