/*
 * What usages cost per step, or per second where no step was found.
 */
#ifndef COMMTRACE_PRICE_H
#define COMMTRACE_PRICE_H

#include "findings/rules.h"

/* Fills located_us and located_error; false only without memory. */
bool ct_price_times(struct ct_case *c);

double ct_price_calls(const struct ct_job *job, const struct ct_usage *usage);

/* Time of one transfer and its standard error in us; NAN: never timed. */
double ct_price_observed_us(const struct ct_case *c, int usage,
                            double *error_p);

/* By what factor the prior of the link that the usage runs over is off from
 * what it takes, us; 1 where it is not by much. */
double ct_price_doubt(const struct ct_case *c, const struct ct_usage *usage,
                      double us);

/* What the usages of a communicator that run over `link` lose against link
 * `better`: fills figures, source and per of row. They stay NAN where nothing
 * was timed, nothing is lost, or only a prior is there that does not describe
 * this machine. Returns the number of calls. */
double ct_price_link(const struct ct_case *c, int comm, enum ct_link link,
                     const struct ct_link_fact *better,
                     struct ct_finding_row *row);

#endif
