/*
 * From measured points to a line, and what of it was really measured.
 */
#ifndef COMMTRACE_FIT_H
#define COMMTRACE_FIT_H

#include "model/model.h"

/* Robust location of n > 0 times in us (sorted in place): the shortest half,
 * then the mean of what lies within three of its half-lengths. Stays within
 * 1 % of the truth with 40 % of the times made late. spread_p gets the relative
 * standard deviation of a single undisturbed time. */
double ct_location(double *us, int64_t n, double *spread_p);

/* Fits fit->points (by bytes) and fills the rest of fit but link, base, nranks
 * and samples, which it reads. */
void ct_fit_points(struct ct_fit *fit);

#endif
