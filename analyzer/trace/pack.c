#include "trace/pack.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MOST_NUMBER 10 /* bytes of LEB128 */
#define MOST_BYTES     \
    (2 * MOST_NUMBER + \
     CT_PACK_COLUMNS * (3 * MOST_NUMBER + 2 * CT_PACK_ROWS * MOST_NUMBER))
#define LEVEL 6 /* of zlib */

enum how { PLAIN, AFTER, ALIKE, HOWS };

#define KEYED_BY 1 /* the column whose equals are alike */

/* Bytes that are written, or only counted where at is NULL. */
struct out {
    unsigned char *at;
    size_t n;
};

static void put(struct out *out, uint64_t value)
{
    for (; value > 127; value >>= 7) {
        if (out->at)
            out->at[out->n] = (unsigned char)(value | 128);
        out->n++;
    }
    if (out->at)
        out->at[out->n] = (unsigned char)value;
    out->n++;
}

struct in {
    const unsigned char *at, *end;
    bool bad;
};

static uint64_t get(struct in *in)
{
    uint64_t value = 0;
    int shift;

    for (shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        const unsigned char byte = *in->at++;

        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    in->bad = true;
    return 0;
}

static int64_t get_within(struct in *in, int64_t most)
{
    const uint64_t value = get(in);

    if (value <= (uint64_t)most)
        return (int64_t)value;
    in->bad = true;
    return 0;
}

/* Small numbers for small differences of both signs. */
static uint64_t folded(uint64_t difference)
{
    return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static uint64_t unfolded(uint64_t number)
{
    return number >> 1 ^ (number & 1 ? UINT64_MAX : 0);
}

#define SLOTS (2 * CT_PACK_ROWS)

static unsigned slot_of(int64_t key)
{
    return (unsigned)((uint64_t)key * 0x9e3779b97f4a7c15u >> 32) % SLOTS;
}

static void find_alike(struct ct_block *block)
{
    const int64_t *keys = block->values[KEYED_BY];
    int last[SLOTS]; /* row with the key of the slot, and 1 */
    unsigned slot;
    int i;

    memset(last, 0, sizeof(last));
    for (i = 0; i < block->nrows; i++) {
        for (slot = slot_of(keys[i]);
             last[slot] && keys[last[slot] - 1] != keys[i];
             slot = (slot + 1) % SLOTS)
            ;
        block->alike[i] = last[slot] - 1;
        last[slot] = i + 1;
    }
}

static int64_t foretold(const struct ct_block *block, const int64_t *values,
                        int row, int before, enum how how)
{
    if (how == ALIKE)
        before = block->alike[row];
    return how == PLAIN || before < 0 ? 0 : values[before];
}

static void put_values(struct out *out, const struct ct_block *block,
                       int column, enum how how)
{
    const int64_t *values = block->values[column];
    int i, before = -1;

    for (i = 0; i < block->nrows; i++) {
        if (block->null[column][i])
            continue;
        put(out, folded((uint64_t)values[i] -
                        (uint64_t)foretold(block, values, i, before, how)));
        before = i;
    }
}

static enum how best_of(const struct ct_block *block, int column)
{
    enum how how, best = PLAIN;
    size_t least = SIZE_MAX;

    for (how = PLAIN; how < HOWS; how++) {
        struct out out = {0};

        if (how == ALIKE && column <= KEYED_BY)
            continue;
        put_values(&out, block, column, how);
        if (out.n < least) {
            least = out.n;
            best = how;
        }
    }
    return best;
}

/* First row from row on that is not as row is. */
static int run_end(const bool *null, int row, int nrows)
{
    const bool as = null[row];

    while (row < nrows && null[row] == as)
        row++;
    return row;
}

static void put_runs(struct out *out, const bool *null, int nrows)
{
    int row, end, n = null[0];

    for (row = 0; row < nrows; row = run_end(null, row, nrows))
        n++;
    put(out, (uint64_t)n);
    if (null[0])
        put(out, 0);
    for (row = 0; row < nrows; row = end) {
        end = run_end(null, row, nrows);
        put(out, (uint64_t)(end - row));
    }
}

static void put_body(struct out *out, const struct ct_block *block, int column,
                     enum how how)
{
    put(out, how);
    put_runs(out, block->null[column], block->nrows);
    put_values(out, block, column, how);
}

static void put_column(struct out *out, const struct ct_block *block,
                       int column)
{
    const enum how how = best_of(block, column);
    struct out counted = {0};

    put_body(&counted, block, column, how);
    put(out, counted.n);
    put_body(out, block, column, how);
}

static void clear_nulls(struct ct_block *block)
{
    int c, i;

    for (c = 0; c < block->ncolumns; c++)
        for (i = 0; i < block->nrows; i++)
            if (block->null[c][i])
                block->values[c][i] = 0;
}

size_t ct_pack(struct ct_block *block, unsigned char **bytes_p)
{
    const size_t least = ((size_t)block->nrows - 1) / CT_PACK_ROWS_PER_BYTE + 1;
    struct out out = {malloc(MOST_BYTES), 0};
    uLongf size;
    int c;

    clear_nulls(block);
    find_alike(block);
    if (!out.at)
        return 0;
    put(&out, (uint64_t)block->nrows);
    put(&out, (uint64_t)block->ncolumns);
    for (c = 0; c < block->ncolumns; c++)
        put_column(&out, block, c);
    size = compressBound(out.n);
    if (size < least)
        size = least;
    *bytes_p = calloc(1, size);
    if (!*bytes_p || compress2(*bytes_p, &size, out.at, out.n, LEVEL) != Z_OK) {
        free(*bytes_p);
        *bytes_p = NULL;
        size = 0;
    }
    free(out.at);
    return size && size < least ? least : size;
}

static void get_runs(struct in *in, bool *null, int nrows)
{
    int64_t runs = get_within(in, nrows + 1), n;
    bool as = false;
    int row = 0;

    for (; runs > 0 && !in->bad; runs--, as = !as) {
        n = get_within(in, nrows - row);
        memset(null + row, as, (size_t)n);
        row += (int)n;
    }
    if (row != nrows)
        in->bad = true;
}

static void get_column(struct in *in, struct ct_block *block, int column)
{
    const int64_t how = get_within(in, HOWS - 1);
    int64_t *values = block->values[column];
    int i, before = -1;

    if (how == ALIKE && column <= KEYED_BY)
        in->bad = true;
    get_runs(in, block->null[column], block->nrows);
    for (i = 0; i < block->nrows && !in->bad; i++) {
        if (block->null[column][i]) {
            values[i] = 0;
            continue;
        }
        values[i] = (int64_t)(unfolded(get(in)) +
                              (uint64_t)foretold(block, values, i, before,
                                                 (enum how)how));
        before = i;
    }
    if (in->at != in->end)
        in->bad = true;
}

static void get_columns(struct in *in, struct ct_block *block, uint64_t wanted)
{
    int c;

    wanted |= 1 << KEYED_BY;
    for (c = 0; c < block->ncolumns && !in->bad; c++) {
        const int64_t n = get_within(in, in->end - in->at);
        struct in body = {in->at, in->at, false};

        if (in->bad || n > in->end - in->at)
            break;
        body.end = in->at += n;
        if (wanted >> c & 1)
            get_column(&body, block, c);
        in->bad |= body.bad;
        if (c == KEYED_BY && !in->bad)
            find_alike(block);
    }
    if (c < block->ncolumns || in->at != in->end)
        in->bad = true;
}

bool ct_unpack(struct ct_block *block, const void *bytes, size_t n,
               uint64_t wanted)
{
    unsigned char *raw = malloc(MOST_BYTES);
    uLongf size = MOST_BYTES;
    struct in in = {raw, raw, true};

    if (raw && uncompress(raw, &size, bytes, n) == Z_OK) {
        in = (struct in){raw, raw + size, false};
        block->nrows = (int)get_within(&in, CT_PACK_ROWS);
        block->ncolumns = (int)get_within(&in, CT_PACK_COLUMNS);
        if (!block->nrows || !block->ncolumns ||
            (size_t)block->nrows > n * CT_PACK_ROWS_PER_BYTE)
            in.bad = true;
        get_columns(&in, block, wanted);
    }
    free(raw);
    return !in.bad;
}
