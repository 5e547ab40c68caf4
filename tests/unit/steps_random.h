/* Jobs by chance, for the tests of steps. */
#ifndef COMMTRACE_STEPS_RANDOM_H
#define COMMTRACE_STEPS_RANDOM_H

#include <stddef.h>

/* Options of tracegen; the same for the same seed. *missing_p: every so
 * many-th rank leaves no trace, *lost_p: one of so many records is lost; 0:
 * none. */
void steps_random(unsigned long seed, char *options, size_t size,
                  int *missing_p, int *lost_p);

#endif
