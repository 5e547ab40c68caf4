/*
 * Families: communicators of one size that do the same on other ranks. They
 * are judged together, so that all groups of one axis get one label.
 */
#ifndef COMMTRACE_FAMILY_H
#define COMMTRACE_FAMILY_H

#include "roles/use.h"

struct ct_family {
    int n;              /* uses */
    int first;          /* index in ct_uses.uses, the one it is described by */
    struct ct_use mean; /* numbers averaged over its uses; sizes of first */
    bool *has;          /* per process of the trace: a member */
};

struct ct_families {
    int n;
    struct ct_family *families;
};

/* Sorts the large collectives of uses into families and sets use.family. 0, or
 * -1 without memory. */
int ct_families_find(const struct ct_trace *trace, const struct ct_job *job,
                     struct ct_uses *uses, struct ct_families *families);
void ct_families_release(struct ct_families *families);

/* Groups of a and b lie along different axes: no group of one holds two ranks
 * of a group of the other. Judged by the first group of each. */
bool ct_families_cross(const struct ct_job *job, const struct ct_uses *uses,
                       const struct ct_family *a, const struct ct_family *b);

#endif
