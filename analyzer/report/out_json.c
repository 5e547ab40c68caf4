/*
 * JSON: one object per row and line, keys in the order of the columns, numbers
 * with enough digits to be read back, none as null.
 */
#include "report/out_format.h"
#include "report/utf8.h"

#include <inttypes.h>

static void json_string(struct out *out, const char *s)
{
    static const char escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    unsigned c;

    fputc('"', out->file);
    while ((c = utf8_next(&s)) != 0) {
        const char *e = escapes;

        while (*e && (unsigned char)*e != c)
            e += 2;
        if (*e)
            fprintf(out->file, "\\%c", e[1]);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out->file, "\\u%04x", c);
        else
            utf8_put(out->file, c);
    }
    fputc('"', out->file);
}

/* What comes before a value: comma, line break, key. */
static void json_key(struct out *out, const char *key)
{
    if (out->comma)
        fputc(',', out->file);
    out->comma = true;
    if (key) {
        json_string(out, key);
        fputc(':', out->file);
    }
}

static void json_nest(struct out *out, const char *key, char bracket)
{
    if (out->comma)
        fputs(",\n", out->file);
    out->comma = false;
    json_key(out, key);
    fputc(bracket, out->file);
    out->comma = false;
}

static void json_unnest(struct out *out, char bracket)
{
    fputc(bracket, out->file);
    out->comma = true;
}

static void json_open(struct out *out)
{
    fputc('{', out->file);
}

static void json_close(struct out *out)
{
    fputs("}\n", out->file);
}

static void json_cell(struct out *out, const struct out_column *c,
                      const void *row)
{
    const void *cell = out_cell(c, row);

    if (out_is_none(c, row)) {
        fputs("null", out->file);
        return;
    }
    switch (c->type) {
    case OUT_INT:
        fprintf(out->file, "%d", *(const int *)cell);
        break;
    case OUT_COUNT:
        fprintf(out->file, "%" PRId64, *(const int64_t *)cell);
        break;
    case OUT_SIZE:
        fprintf(out->file, "%" PRIu64, *(const uint64_t *)cell);
        break;
    case OUT_ID:
        fprintf(out->file, "\"%016" PRIx64 "\"", *(const uint64_t *)cell);
        break;
    case OUT_REAL:
    case OUT_SURE:
        fprintf(out->file, "%.9g", *(const double *)cell);
        break;
    case OUT_TEXT:
    case OUT_BUFFER:
        json_string(out, out_string(c, row));
        break;
    case OUT_BOOL:
        fputs(*(const bool *)cell ? "true" : "false", out->file);
        break;
    }
}

static void json_fields(struct out *out, const struct out_table *table,
                        const void *row)
{
    for (int i = 0; i < table->ncolumns; i++) {
        if (table->columns[i].how == OUT_TEXT_ONLY ||
            table->columns[i].how == OUT_TEXT_OPTIONAL)
            continue;
        json_key(out, table->columns[i].key);
        json_cell(out, &table->columns[i], row);
    }
}

static void json_text(struct out *out, const char *key, const char *value)
{
    json_key(out, key);
    if (value)
        json_string(out, value);
    else
        fputs("null", out->file);
}

static void json_table(struct out *out, const char *key)
{
    json_nest(out, key, '[');
}

static void json_row(struct out *out, const void *row)
{
    fputs(out->comma ? ",\n{" : "\n{", out->file);
    out->comma = false;
    json_fields(out, out->table, row);
    fputc('}', out->file);
    out->comma = true;
}

static void json_table_end(struct out *out)
{
    json_unnest(out, ']');
}

const struct out_ops out_json_ops = {
    .open = json_open,
    .close = json_close,
    .nest = json_nest,
    .unnest = json_unnest,
    .fields = json_fields,
    .text = json_text,
    .table = json_table,
    .row = json_row,
    .table_end = json_table_end,
};
