/* Where traces and rings would go, and whether there is room. */
#ifndef COMMTRACE_DOCTOR_PLACES_H
#define COMMTRACE_DOCTOR_PLACES_H

#include <stdbool.h>
#include <stdint.h>

struct facts;
struct options;

struct places {
    char dir[4096];
    uint64_t dir_free;
    uint64_t ring_bytes;
    uint64_t ring_free;
    bool nowhere; /* no trace can be written: nothing would be recorded */
};

void places_check(struct places *places, const struct options *options,
                  struct facts *facts);

#endif
