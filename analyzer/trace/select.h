/* Order statistics, and what integers have in common. */
#ifndef COMMTRACE_SELECT_H
#define COMMTRACE_SELECT_H

#include <stdint.h>

/* The value that would stand at index k (0 <= k < n) if values were sorted, in
 * linear time on average; reorders values. */
int64_t ct_nth(int64_t *values, int64_t n, int64_t k);

/* The greatest common divisor; of 0 and n it is n. */
static inline int ct_divisor(int a, int b)
{
    return b ? ct_divisor(b, a % b) : a;
}

#endif
