/*
 * Between out.c and the formats: a format is a set of functions. A function
 * that is NULL does nothing.
 */
#ifndef COMMTRACE_REPORT_OUT_FORMAT_H
#define COMMTRACE_REPORT_OUT_FORMAT_H

#include <stdbool.h>

#include "report/out.h"

struct out_ops {
    void (*open)(struct out *out);
    void (*close)(struct out *out);
    void (*nest)(struct out *out, const char *key, char bracket);
    void (*unnest)(struct out *out, char bracket);
    void (*fields)(struct out *out, const struct out_table *table,
                   const void *row);
    void (*text)(struct out *out, const char *key, const char *value);
    void (*table)(struct out *out, const char *key);
    void (*row)(struct out *out, const void *row);
    void (*table_end)(struct out *out);
    void (*title)(struct out *out, const char *title, const char *remark);
    void (*say)(struct out *out, const char *label, int indent,
                const char *text);
};
extern const struct out_ops out_text_ops, out_json_ops;

#define OUT_MAX_COLUMNS 32
#define OUT_HELD_ROWS 256

struct out {
    const struct out_ops *ops;
    FILE *file;
    bool comma;                    /* json: the next value needs one before */
    const struct out_table *table; /* that is open */
    /* Text holds back the first rows of a table to see how wide they are. */
    char *held;
    int nheld;
    int64_t nrows; /* of the table so far */
    bool flushed;
    int widths[OUT_MAX_COLUMNS]; /* 0: left out */
    int gap;                     /* blanks between columns */
};

/* The cell of row in column c. */
static inline const void *out_cell(const struct out_column *c, const void *row)
{
    return (const char *)row + c->offset;
}

/* The cell holds "none". */
bool out_is_none(const struct out_column *c, const void *row);

/* The string of an OUT_TEXT or OUT_BUFFER cell. */
const char *out_string(const struct out_column *c, const void *row);

#endif
