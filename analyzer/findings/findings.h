/*
 * Rules that turn job, model and roles into findings, each with its price and
 * how sure it is.
 */
#ifndef COMMTRACE_FINDINGS_H
#define COMMTRACE_FINDINGS_H

#include "model/model.h"
#include "pipeline/pipeline.h"
#include "roles/roles.h"

struct ct_finding_info {
    const char *code;
    const char *severity; /* "bad", "warn", "info" */
    const char *meaning;
};
extern const struct ct_finding_info ct_finding_infos[CT_FINDING_COUNT];

struct ct_finding_row {
    enum ct_finding id;
    int comm; /* index in ct_job.comms; CT_NONE: about the whole job */
    double observed_ms;  /* per step; NAN: not about time. Per second where no
                            step was found (per says which) */
    double predicted_ms; /* inside one node */
    double loss_ms;      /* what a step is longer for it: stretch times the
                            difference of the two above */
    double loss_low_ms, loss_high_ms; /* 90 % interval */
    double stretch;  /* (m+p-1)/m in a pipeline, whose stages wait for each
                        other's calls while it fills and drains; else 1 */
    int groups;      /* communicators that the finding is about; the figures are
                        those of comm, the worst: a step waits for its slowest
                        group, so their losses do not add up */
    const char *per; /* "step" or "second" */
    enum ct_source source;
    double confidence; /* 0..1 */
    char who[64];      /* "rank 17 (host2)"; "": those of comm, or all */
    char text[640];
    char advice[200];
};

struct ct_findings {
    int n;
    struct ct_finding_row *rows; /* worst first */
};

/* Findings of one job; NULL only without memory. reference (may be NULL) is the
 * model of another trace of the same machines. troubles (may be NULL) is what
 * ct_findings_of_troubles said when the job was whole. Free with
 * ct_findings_free. */
struct ct_findings *ct_findings_build(const struct ct_trace *trace,
                                      const struct ct_job *job,
                                      const struct ct_model *model,
                                      const struct ct_model *reference,
                                      const struct ct_roles *roles,
                                      const struct ct_findings *troubles);

/* Those that are not about what costs time: how the job ended, and how far its
 * trace is to be trusted. */
struct ct_findings *ct_findings_of_troubles(const struct ct_trace *trace,
                                            const struct ct_job *job);
void ct_findings_free(struct ct_findings *findings);

#endif
