/* Numbers as people read them. */
#ifndef COMMTRACE_REPORT_UNITS_H
#define COMMTRACE_REPORT_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define UNITS_SIZE 32 /* enough for any number here */

/* "512 B", "16 MiB", "1.5 GiB". Returns buffer. */
const char *units_size(char buffer[UNITS_SIZE], uint64_t bytes);

/* Significant digits, at most four decimals, never an exponent: 0.0012, 12.3,
 * 4560. NAN and infinities: "n/a". */
const char *units_real(char buffer[UNITS_SIZE], double value, int digits);

/* A confidence with two decimals, which do not make it sure: "0.85", "> 0.99",
 * and "1.00" only of 1. */
const char *units_sure(char buffer[UNITS_SIZE], double confidence);

/* Ascending numbers as "0-3", "0-6:2" (every second), "0,3,4"; cut with "..."
 * where buffer ends. */
const char *units_ranks(char *buffer, size_t size, const int *ranks, int n);

#endif
