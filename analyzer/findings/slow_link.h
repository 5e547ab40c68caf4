/*
 * SLOW_LINK: ways whose transfers take longer than those of ways that are
 * alike, by what they share.
 */
#ifndef COMMTRACE_SLOW_LINK_H
#define COMMTRACE_SLOW_LINK_H

#include "findings/shared.h"

struct ct_slow {
    struct ct_shared shared;
    const struct ct_way *worst; /* of those that share it */
    int ways;
    double plain_ns; /* per step: what a rank's transfers take longer, */
    double high_ns;  /* what it may lose by that at most, */
    double kept_ns;  /* others wait for these ranks; NAN: nobody tells */
};

/* Who and text. */
void ct_slow_tell(const struct ct_case *c, const struct ct_slow *slow,
                  struct ct_finding_row *row);

#endif
