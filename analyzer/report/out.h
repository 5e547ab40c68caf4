/*
 * A report without a format. Sections hand over rows (plain structs) and the
 * table that describes their columns; the format, text or JSON, is chosen when
 * the report is opened. What only a human reader needs (titles, sentences) is
 * dropped by JSON; what only a program needs is marked OUT_DATA and dropped by
 * text.
 *
 * "none" is printed as "-" in text and as null in JSON: a negative int or
 * int64_t, OUT_NO_SIZE, NAN or an infinity, a NULL or empty string.
 */
#ifndef COMMTRACE_REPORT_OUT_H
#define COMMTRACE_REPORT_OUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OUT_WIDTH 100 /* columns that text may use */
#define OUT_NO_SIZE UINT64_MAX

enum out_type {
    OUT_INT,    /* int */
    OUT_COUNT,  /* int64_t */
    OUT_SIZE,   /* uint64_t bytes; text says KiB, MiB, ... */
    OUT_ID,     /* uint64_t, hexadecimal; a string in JSON, which has doubles */
    OUT_REAL,   /* double; digits are significant ones */
    OUT_SURE,   /* double, a confidence */
    OUT_TEXT,   /* const char *, alive until the table ends */
    OUT_BUFFER, /* char array inside the row */
    OUT_BOOL    /* bool; text says yes or no */
};

enum out_how {
    OUT_BOTH,         /* text and JSON */
    OUT_OPTIONAL,     /* text leaves it out where no row has a value */
    OUT_DATA,         /* JSON only */
    OUT_TEXT_ONLY,    /* text only */
    OUT_TEXT_OPTIONAL /* text only, where some row has a value */
};

struct out_column {
    const char *key;  /* in JSON; ends in the unit where it has one */
    const char *head; /* in text */
    enum out_type type;
    int digits;
    enum out_how how;
    size_t offset;
};

#define OUT_COL(row_, member_, head_, type_, digits_, how_)            \
    {                                                                  \
#member_, head_, type_, digits_, how_, offsetof(row_, member_) \
    }

struct out_table {
    const struct out_column *columns;
    int ncolumns;
    size_t row_size;
    int most; /* rows that text shows, then it says how many follow; 0: all */
};

#define OUT_TABLE(row_, columns_) OUT_TABLE_OF(row_, columns_, 0)

#define OUT_TABLE_OF(row_, columns_, most_)                                    \
    {                                                                          \
        columns_, (int)(sizeof(columns_) / sizeof(columns_)[0]), sizeof(row_), \
            most_                                                              \
    }

struct out;

enum out_format { OUT_AS_TEXT, OUT_AS_JSON };

/* The JSON document is one object, open from here to out_close. */
struct out *out_open(FILE *file, enum out_format format);

/* Returns 0, or -1 when something could not be written. */
int out_close(struct out *out);

/* Nesting; seen in JSON only. The key of an object in a list is NULL. */
void out_object(struct out *out, const char *key);
void out_object_end(struct out *out);
void out_list(struct out *out, const char *key);
void out_list_end(struct out *out);

/* The columns of one row as members of the object that is open. */
void out_fields(struct out *out, const struct out_table *table,
                const void *row);
/* And as an object of its own. */
void out_record(struct out *out, const char *key, const struct out_table *table,
                const void *row);
void out_text(struct out *out, const char *key, const char *value);

/* A table: rows may be many, they are written as they come. */
void out_table(struct out *out, const char *key, const struct out_table *table);
void out_row(struct out *out, const void *row);
void out_table_end(struct out *out);
void out_rows(struct out *out, const char *key, const struct out_table *table,
              const void *rows, size_t n);

/* For human readers: a title with a remark (may be NULL), and a paragraph that
 * is wrapped and starts in column indent. */
void out_title(struct out *out, const char *title, const char *remark);
__attribute__((format(printf, 3, 4))) void out_say(struct out *out, int indent,
                                                   const char *format, ...);
/* "label   paragraph" in two columns. */
__attribute__((format(printf, 3, 4))) void
out_fact(struct out *out, const char *label, const char *format, ...);

#endif
