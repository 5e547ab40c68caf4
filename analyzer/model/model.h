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

/* What was measured at one message size. */
struct ct_point {
    double bytes;  /* mean of sizes within 2 % of each other */
    double us;     /* robust location of the transfer times */
    double spread; /* relative standard deviation of one transfer */
    int64_t n;     /* transfers */
};

/* Base SEND stands for both sides of a transfer between two ranks; its nranks
 * is 2, whatever the size of the communicator. */
struct ct_fit {
    enum ct_link link;
    int64_t speed; /* the lowest that is known of it, for the prior; else
                      CT_NONE */
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
    /* For predictions only: the line behind the verdict, part of which may come
     * from the prior (then alpha_us or algbw_GBps is NAN). NAN for PRIOR. */
    double line_us;                /* at S = 0 */
    double line_us_per_byte;       /* slope */
    double var_aa, var_ab, var_bb; /* covariance of the two, in their units */
    int npoints;
    struct ct_point *points; /* what was measured, by bytes */
    char words[128];         /* why points here */
};

struct ct_prediction { /* one line of observed beside predicted */
    enum ct_link link;
    enum ct_op base;
    int nranks;
    uint64_t bytes;
    int64_t calls;
    double observed_us; /* median transfer; NAN: never timed */
    int64_t samples;    /* transfers fit for that; 0: of whatever was timed, */
    bool apart;         /* a least: ranks always came too far apart */
    double fit_us;      /* NAN: no fit */
    double prior_us;
    double nccl_us;                /* by NCCL's own table; NAN: not recorded */
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

/* Per usage of job: robust location in us of its transfers as the fits use them
 * (late ranks and clocks put right), and its relative standard error; NAN where
 * none is fit for that. Both arrays hold job->nusages. 0, or -1 without
 * memory. */
int ct_model_locate(const struct ct_trace *trace, const struct ct_job *job,
                    double *us, double *relative_error);

/* Prior of links.def: base + steps * hop + wire * S / busbw, in us; NAN: the
 * link is unknown. busbw is that of a speed which is known: the row of it, for
 * networks scaled from the next one; else that of the class. */
double ct_model_prior_us(enum ct_link link, int64_t speed, enum ct_op base,
                         int nranks, uint64_t bytes);

/* S = 0 .. of a fit's line in us; relative_error_p (may be NULL) gets one
 * relative standard error. NAN where the fit is no better than the prior. */
double ct_fit_us(const struct ct_fit *fit, double bytes,
                 double *relative_error_p);

/* Hops that one op takes one after the other: 2(n-1) for all-reduce, n-1 for
 * the other collectives, 1 for send/recv. */
double ct_model_steps(enum ct_op base, int nranks);

/* Expected time of one op in us inside a node (links with network == 0): from
 * own measurements, else from reference (may be NULL), else the prior. Own
 * measurements are, best first: the fit of this op and group size; the measured
 * sizes around bytes, interpolated; the fit of this op at another group size,
 * alpha scaled by steps and beta by the wire factor. Own gives way to a
 * reference where its error is above a quarter and the reference's is smaller.
 * relative_error_p gets one standard error, relative (the prior's is what
 * research calls .35 on bandwidth). */
double ct_model_inside_us(const struct ct_model *own,
                          const struct ct_model *reference, enum ct_op base,
                          int nranks, uint64_t bytes, enum ct_source *source_p,
                          double *relative_error_p);

/* The same over one class of link (of a speed; CT_NONE: not known). NAN:
 * nothing is known of the class. */
double ct_model_over_us(const struct ct_model *own,
                        const struct ct_model *reference, enum ct_link link,
                        int64_t speed, enum ct_op base, int nranks,
                        uint64_t bytes, enum ct_source *source_p,
                        double *relative_error_p);

#endif
