/*
 * How long others wait for some ranks where both do the same work.
 */
#ifndef COMMTRACE_KEPT_H
#define COMMTRACE_KEPT_H

#include "findings/rules.h"

/* Each of the others at least, per steady step, in the tensor- or data-parallel
 * communicator where that is most; NAN: there is none that holds both. those:
 * per process of the trace. False only without memory. */
bool ct_kept_waiting(const struct ct_case *c, const bool *those, double *ns_p);

/* Ranks of its communicator do the same work in that usage, so that the last
 * one has no excuse. */
bool ct_same_work(const struct ct_case *c, int usage);

/* Where no usage is known to be of that sort, any is. */
bool ct_any_same_work(const struct ct_case *c);

#endif
