/* Rows on their way into one transaction. They stay until it has succeeded. */
#ifndef SHIM_BATCH_H
#define SHIM_BATCH_H

#include "rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

struct batch {
    struct row *rows;
    size_t n;
    size_t room;
};

/* A zeroed row to fill in, or NULL without memory. */
static inline struct row *batch_add(struct batch *batch, enum row_table table)
{
    if (batch->n == batch->room) {
        size_t room = batch->room ? 2 * batch->room : 256;
        struct row *rows = realloc(batch->rows, room * sizeof(*rows));
        if (!rows)
            return NULL;
        batch->rows = rows;
        batch->room = room;
    }
    struct row *row = &batch->rows[batch->n++];
    row->table = table;
    row->rowid = CT_NULL;
    return row;
}

static inline void batch_add_row(struct batch *batch, const struct row *row)
{
    struct row *copy = batch_add(batch, row->table);
    if (copy)
        *copy = *row;
}

#endif
