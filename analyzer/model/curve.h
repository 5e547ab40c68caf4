/*
 * Measured points per (link class, op, group size), pooled over the job.
 */
#ifndef COMMTRACE_CURVE_H
#define COMMTRACE_CURVE_H

#include "model/model.h"
#include "model/samples.h"

/* The key under which a usage is pooled. */
struct ct_curve_key {
    enum ct_link link;
    enum ct_op base;
    int nranks;
};
struct ct_curve_key ct_curve_key(const struct ct_job *job,
                                 const struct ct_usage *usage);
int ct_curve_key_cmp(const struct ct_curve_key *a,
                     const struct ct_curve_key *b);

/* Usages that moved bytes between ranks, ordered by key, then bytes. The caller
 * frees *order_p. Returns how many, or -1 without memory. */
int ct_curve_order(const struct ct_job *job, int **order_p);

/* One point from the k usages order[0..k), us NAN where none was measured;
 * false without memory. */
bool ct_curve_point(const struct ct_job *job, const struct ct_sample_set *set,
                    const int *order, int k, struct ct_point *point);

/* The points of usages order[0..n), all of one key. The caller frees the
 * result; *npoints_p gets their number (0: none was measured). NULL without
 * memory. *samples_p gets the number of transfers. */
struct ct_point *ct_curve_points(const struct ct_job *job,
                                 const struct ct_sample_set *set,
                                 const int *order, int n, int *npoints_p,
                                 int64_t *samples_p);

#endif
