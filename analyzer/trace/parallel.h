/*
 * The same work on many items, on all cores. Items are independent, so the
 * result does not depend on the number of threads.
 */
#ifndef COMMTRACE_PARALLEL_H
#define COMMTRACE_PARALLEL_H

/* How many threads there are: this if it is set, else as many as cores. */
#define CT_THREADS_VARIABLE "COMMTRACE_THREADS"

/* Calls work(context, i) once for each i of 0..n-1; returns when all are
 * done. Items start in order. */
void ct_parallel_for(int n, void (*work)(void *context, int i), void *context);

#endif
