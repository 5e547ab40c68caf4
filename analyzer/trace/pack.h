/*
 * Rows of integers in few bytes, as digests keep their long tables. A block
 * holds some thousand rows, column by column, and stands alone:
 *   block  = zlib(rows, columns, column, ...)
 *   column = bytes of what follows, how, runs, value, ...
 *   runs   = their number, then how many rows have a value, have none (NULL),
 *            have a value, ...
 *   value  = what it is more than foretold, the sign in the lowest bit
 * All numbers are LEB128. how says what foretells a value: nothing, the value
 * before it, or that of the last row that is alike, which has the same in
 * column 1 (of an op its class).
 * A block takes so many bytes for each row, or is filled up: so a file holds no
 * more rows than memory has to be found for.
 */
#ifndef COMMTRACE_PACK_H
#define COMMTRACE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CT_PACK_ROWS 4096
#define CT_PACK_COLUMNS 12
#define CT_PACK_ROWS_PER_BYTE 2 /* at most */

struct ct_block {
    int nrows, ncolumns;
    int64_t values[CT_PACK_COLUMNS][CT_PACK_ROWS]; /* of NULL: 0 */
    bool null[CT_PACK_COLUMNS][CT_PACK_ROWS];
    int alike[CT_PACK_ROWS]; /* rows; negative: none before */
};

/* Bytes in *bytes_p, which the caller frees; 0: no memory. Values of NULL are
 * set to 0. */
size_t ct_pack(struct ct_block *block, unsigned char **bytes_p);

/* False: damaged. Bit c of wanted: column c is, the others are left as they
 * were. */
bool ct_unpack(struct ct_block *block, const void *bytes, size_t n,
               uint64_t wanted);

#endif
