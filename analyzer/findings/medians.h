/*
 * What transfers of a usage take, so well known that usages can be compared.
 */
#ifndef COMMTRACE_MEDIANS_H
#define COMMTRACE_MEDIANS_H

#include "findings/rules.h"

struct ct_median {
    int64_t n;                  /* transfers; 0: too few, or none is clear */
    double low_ns, ns, high_ns; /* the median, and between what it surely is;
                                   low 0: they may have waited as well */
    double mean_ns, error_ns;   /* one standard error of it */
};

/* Per usage; NULL only without memory. The caller frees. */
struct ct_median *ct_medians_measure(const struct ct_case *c);

#endif
