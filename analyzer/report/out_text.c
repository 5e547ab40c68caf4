/*
 * Text: aligned columns, two blanks apart, or one where they fit the screen
 * only so; numbers to the right, words to the left. Control characters of
 * foreign strings never reach the terminal.
 */
#include "report/out_format.h"
#include "report/units.h"
#include "report/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GAP 2
#define LABEL_WIDTH 15

static int text_width(const char *s)
{
    int width = 0;

    while (utf8_next(&s))
        width++;
    return width;
}

/* Writes at most n characters of s, control characters as '?'. */
static void put_clean(struct out *out, const char *s, int n)
{
    unsigned c;

    while (n-- > 0 && (c = utf8_next(&s)) != 0)
        utf8_put(out->file, c < 0x20 || (c >= 0x7f && c < 0xa0) ? '?' : c);
}

static void pad(struct out *out, int n)
{
    if (n > 0)
        fprintf(out->file, "%*s", n, "");
}

/* The text of a cell; numbers go through buffer. */
static const char *cell_text(const struct out_column *c, const void *row,
                             char buffer[UNITS_SIZE])
{
    const void *cell = out_cell(c, row);

    if (out_is_none(c, row))
        return "-";
    switch (c->type) {
    case OUT_INT:
        snprintf(buffer, UNITS_SIZE, "%d", *(const int *)cell);
        return buffer;
    case OUT_COUNT:
        snprintf(buffer, UNITS_SIZE, "%" PRId64, *(const int64_t *)cell);
        return buffer;
    case OUT_SIZE:
        return units_size(buffer, *(const uint64_t *)cell);
    case OUT_ID:
        snprintf(buffer, UNITS_SIZE, "%016" PRIx64, *(const uint64_t *)cell);
        return buffer;
    case OUT_REAL:
        return units_real(buffer, *(const double *)cell, c->digits);
    case OUT_BOOL:
        return *(const bool *)cell ? "yes" : "no";
    case OUT_SURE:
        return units_sure(buffer, *(const double *)cell);
    case OUT_TEXT:
    case OUT_BUFFER:
        break;
    }
    return out_string(c, row);
}

static bool is_left(const struct out_column *c)
{
    return c->type == OUT_TEXT || c->type == OUT_BUFFER || c->type == OUT_BOOL;
}

static void put_cell(struct out *out, const struct out_column *c,
                     const char *text, int width, bool last)
{
    int blank = width - text_width(text);

    if (!is_left(c))
        pad(out, blank);
    put_clean(out, text, 1 << 20);
    if (is_left(c) && !last)
        pad(out, blank);
}

/* The last column that is shown. */
static int last_column(const struct out *out)
{
    int last = out->table->ncolumns - 1;

    while (last > 0 && !out->widths[last])
        last--;
    return last;
}

static void put_row(struct out *out, const void *row)
{
    int last = last_column(out);
    bool started = false;

    if (!out->widths[last])
        return; /* all of it is for programs */
    for (int i = 0; i <= last; i++) {
        const struct out_column *c = &out->table->columns[i];
        char buffer[UNITS_SIZE];

        if (!out->widths[i])
            continue;
        pad(out, started ? out->gap : GAP);
        started = true;
        put_cell(out, c, row ? cell_text(c, row, buffer) : c->head,
                 out->widths[i], i == last);
    }
    fputc('\n', out->file);
}

/* Width of column i by the rows held; 0 leaves it out. */
static int column_width(const struct out *out, int i)
{
    const struct out_column *c = &out->table->columns[i];
    int width = text_width(c->head);
    bool any = c->how == OUT_BOTH || c->how == OUT_TEXT_ONLY;

    if (c->how == OUT_DATA)
        return 0;
    for (int r = 0; r < out->nheld; r++) {
        const void *row = out->held + (size_t)r * out->table->row_size;
        char buffer[UNITS_SIZE];
        int w = text_width(cell_text(c, row, buffer));

        any = any || !out_is_none(c, row);
        width = w > width ? w : width;
    }
    return any ? width : 0;
}

static int gap_for(const struct out *out)
{
    int width = GAP, gaps = -1;

    for (int i = 0; i < out->table->ncolumns; i++) {
        width += out->widths[i];
        gaps += out->widths[i] > 0;
    }
    return width + gaps * GAP > OUT_WIDTH && width + gaps <= OUT_WIDTH ? 1
                                                                       : GAP;
}

static void flush_held(struct out *out)
{
    for (int i = 0; i < out->table->ncolumns; i++)
        out->widths[i] = column_width(out, i);
    out->gap = gap_for(out);
    put_row(out, NULL);
    for (int r = 0; r < out->nheld; r++)
        put_row(out, out->held + (size_t)r * out->table->row_size);
    out->nheld = 0;
    out->flushed = true;
}

static void text_table(struct out *out, const char *key)
{
    (void)key;
    free(out->held);
    out->held = malloc(OUT_HELD_ROWS * out->table->row_size);
    out->nheld = 0;
    out->nrows = 0;
    out->flushed = false;
}

static void text_row(struct out *out, const void *row)
{
    size_t size = out->table->row_size;

    if (out->nrows++ >= out->table->most && out->table->most)
        return;
    if (!out->flushed && out->held && out->nheld < OUT_HELD_ROWS) {
        memcpy(out->held + (size_t)out->nheld++ * size, row, size);
        return;
    }
    if (!out->flushed)
        flush_held(out);
    put_row(out, row);
}

static void text_table_end(struct out *out)
{
    int most = out->table->most;

    if (!out->flushed && out->nheld)
        flush_held(out);
    else if (!out->flushed)
        fputs("  none\n", out->file);
    if (most && out->nrows > most)
        fprintf(out->file, "  and %" PRId64 " more: --json shows all\n",
                out->nrows - most);
}

static void text_title(struct out *out, const char *title, const char *remark)
{
    fprintf(out->file, "\n%s", title);
    if (remark) {
        pad(out, GAP);
        put_clean(out, remark, 1 << 20);
    }
    fputc('\n', out->file);
}

/* Bytes of s, a word or more, that fit into width characters. */
static size_t line_length(const char *s, int width)
{
    size_t fits = 0;
    const char *at = s;
    int used = 0;

    for (;;) {
        const char *before = at;
        unsigned c = utf8_next(&at);

        if ((c == ' ' || c == 0) && (used <= width || !fits))
            fits = (size_t)(before - s);
        if (c == 0 || (used > width && fits))
            return fits;
        used++;
    }
}

static void text_say(struct out *out, const char *label, int indent,
                     const char *text)
{
    int hang = label ? indent + LABEL_WIDTH : indent;
    int first = hang; /* a long label pushes the first line */

    pad(out, indent);
    if (label)
        first = indent + fprintf(out->file, "%-*s ", LABEL_WIDTH - 1, label);
    for (;;) {
        size_t length = line_length(text, OUT_WIDTH - first);
        char line[2000];

        snprintf(line, sizeof line, "%.*s", (int)length, text);
        put_clean(out, line, 1 << 20);
        fputc('\n', out->file);
        text += length;
        while (*text == ' ')
            text++;
        if (!*text)
            return;
        hang = label ? hang : indent + 2;
        pad(out, hang);
        first = hang;
    }
}

const struct out_ops out_text_ops = {
    .table = text_table,
    .row = text_row,
    .table_end = text_table_end,
    .title = text_title,
    .say = text_say,
};
