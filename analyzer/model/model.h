/*
 * T = alpha + S / beta: fits per (link class, op, group size), the prior of
 * links.def, and what both predict for each message size that was seen.
 */
#ifndef COMMTRACE_MODEL_H
#define COMMTRACE_MODEL_H

#include "trace/trace.h"

enum ct_fit_quality {
    CT_FIT_FULL,    /* alpha and beta measured */
    CT_FIT_BW_ONLY, /* latency invisible at these sizes */
    CT_FIT_LAT_ONLY,
    CT_FIT_PRIOR /* sizes do not tell them apart: no alpha, no beta */
};

struct ct_fit {
    enum ct_link link;
    enum ct_op base;
    int nranks;
    int sizes; /* distinct message sizes */
    int64_t samples;
    double alpha_us;           /* NAN: not identifiable */
    double algbw_GBps;         /* 1 / beta of S; NAN: not identifiable */
    double alpha_se, algbw_se; /* relative standard errors; NAN */
    double residual;           /* median relative residual */
    enum ct_fit_quality quality;
    const char *why; /* the quality in words */
};

struct ct_prediction { /* one line of observed beside predicted */
    enum ct_link link;
    enum ct_op base;
    int nranks;
    uint64_t bytes;
    int64_t calls;
    double observed_us; /* median transfer; NAN: never timed */
    double fit_us;      /* NAN: no fit */
    double prior_us;
    double algbw_GBps, busbw_GBps; /* of observed */
};

struct ct_model {
    int nfits, npredictions;
    struct ct_fit *fits;
    struct ct_prediction *predictions; /* by link, op, nranks, bytes */
};

/* Where a predicted time comes from, best first. */
enum ct_source {
    CT_SOURCE_FIT,       /* this job's own measurements */
    CT_SOURCE_REFERENCE, /* --reference: another trace of the same machines */
    CT_SOURCE_PRIOR,
    CT_SOURCE_COUNT
};

/* Derives fits and predictions of one job; NULL only without memory. Free with
 * ct_model_free. */
struct ct_model *ct_model_build(const struct ct_trace *trace,
                                const struct ct_job *job);
void ct_model_free(struct ct_model *model);

/* Prior of links.def: base + steps * hop + wire * S / busbw, in us. */
double ct_model_prior_us(enum ct_link link, enum ct_op base, int nranks,
                         uint64_t bytes);

/* Expected time of one op in us inside a node (links with network == 0): from
 * own measurements, else from reference (may be NULL), else the prior.
 * relative_error_p gets one standard error, relative (the prior's is what
 * research calls .35 on bandwidth). */
double ct_model_inside_us(const struct ct_model *own,
                          const struct ct_model *reference, enum ct_op base,
                          int nranks, uint64_t bytes, enum ct_source *source_p,
                          double *relative_error_p);

#endif
