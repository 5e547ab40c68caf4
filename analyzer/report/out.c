#include "report/out_format.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct out *out_open(FILE *file, enum out_format format)
{
    struct out *out = calloc(1, sizeof *out);

    if (!out)
        return NULL;
    out->file = file;
    out->ops = format == OUT_AS_JSON ? &out_json_ops : &out_text_ops;
    if (out->ops->open)
        out->ops->open(out);
    return out;
}

int out_close(struct out *out)
{
    int failed;

    if (!out)
        return 0;
    if (out->ops->close)
        out->ops->close(out);
    failed = fflush(out->file) != 0 || ferror(out->file);
    free(out->held);
    free(out);
    return failed ? -1 : 0;
}

void out_object(struct out *out, const char *key)
{
    if (out->ops->nest)
        out->ops->nest(out, key, '{');
}

void out_object_end(struct out *out)
{
    if (out->ops->unnest)
        out->ops->unnest(out, '}');
}

void out_list(struct out *out, const char *key)
{
    if (out->ops->nest)
        out->ops->nest(out, key, '[');
}

void out_list_end(struct out *out)
{
    if (out->ops->unnest)
        out->ops->unnest(out, ']');
}

void out_fields(struct out *out, const struct out_table *table, const void *row)
{
    if (out->ops->fields)
        out->ops->fields(out, table, row);
}

void out_record(struct out *out, const char *key, const struct out_table *table,
                const void *row)
{
    out_object(out, key);
    out_fields(out, table, row);
    out_object_end(out);
}

void out_text(struct out *out, const char *key, const char *value)
{
    if (out->ops->text)
        out->ops->text(out, key, value);
}

void out_table(struct out *out, const char *key, const struct out_table *table)
{
    out->table = table;
    out->ops->table(out, key);
}

void out_row(struct out *out, const void *row)
{
    out->ops->row(out, row);
}

void out_table_end(struct out *out)
{
    out->ops->table_end(out);
    out->table = NULL;
}

void out_rows(struct out *out, const char *key, const struct out_table *table,
              const void *rows, size_t n)
{
    out_table(out, key, table);
    for (size_t i = 0; i < n; i++)
        out_row(out, (const char *)rows + i * table->row_size);
    out_table_end(out);
}

void out_title(struct out *out, const char *title, const char *remark)
{
    if (out->ops->title)
        out->ops->title(out, title, remark);
}

void out_say(struct out *out, int indent, const char *format, ...)
{
    char text[2000];
    va_list args;

    if (!out->ops->say)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    out->ops->say(out, NULL, indent, text);
}

void out_fact(struct out *out, const char *label, const char *format, ...)
{
    char text[2000];
    va_list args;

    if (!out->ops->say)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    out->ops->say(out, label, 2, text);
}

const char *out_string(const struct out_column *c, const void *row)
{
    const void *cell = out_cell(c, row);

    return c->type == OUT_TEXT ? *(const char *const *)cell : cell;
}

bool out_is_none(const struct out_column *c, const void *row)
{
    const void *cell = out_cell(c, row);

    switch (c->type) {
    case OUT_INT:
        return *(const int *)cell < 0;
    case OUT_COUNT:
        return *(const int64_t *)cell < 0;
    case OUT_SIZE:
        return *(const uint64_t *)cell == OUT_NO_SIZE;
    case OUT_REAL:
    case OUT_SURE:
        return !isfinite(*(const double *)cell);
    case OUT_TEXT:
    case OUT_BUFFER:
        return !out_string(c, row) || !*out_string(c, row);
    case OUT_ID:
    case OUT_BOOL:
        break;
    }
    return false;
}
