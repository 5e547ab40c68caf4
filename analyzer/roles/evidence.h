/*
 * Evidence: what speaks for or against each role, as additive log-odds with a
 * sentence each. A role's score is the sum; nothing is decided by one fact.
 */
#ifndef COMMTRACE_EVIDENCE_H
#define COMMTRACE_EVIDENCE_H

#include "roles/chains.h"
#include "roles/family.h"
#include "roles/roles.h"

#define CT_MOST_EVIDENCE 16

struct ct_evidence {
    double weight[CT_ROLE_COUNT]; /* log-odds; UNKNOWN stands for "none of
                                     these" */
    char text[120];
};

struct ct_verdict {
    int n;
    struct ct_evidence list[CT_MOST_EVIDENCE];
    double prior[CT_ROLE_COUNT];
    double explained; /* share of bytes that the likeliest role explains */
};

struct ct_view { /* what evidence is drawn from */
    const struct ct_trace *trace;
    const struct ct_job *job;
    const struct ct_uses *uses;
    const struct ct_chains *chains;
    const struct ct_families *families;
};

void ct_evidence_large(const struct ct_view *view,
                       const struct ct_family *family,
                       struct ct_verdict *verdict);
void ct_evidence_p2p(const struct ct_view *view, const struct ct_use *use,
                     struct ct_verdict *verdict);
void ct_evidence_small(const struct ct_view *view, const struct ct_use *use,
                       struct ct_verdict *verdict);
void ct_evidence_exchange(const struct ct_view *view, const struct ct_use *use,
                          struct ct_verdict *verdict);

/* One more fact; weights of the roles that are not named are 0. */
struct ct_weights {
    double none, tp, pp, dp, control;
};
/* No facts yet; prior: log-odds before any. */
void ct_verdict_start(struct ct_verdict *verdict, struct ct_weights prior);
__attribute__((format(printf, 3, 4))) void
ct_evidence_add(struct ct_verdict *verdict, struct ct_weights weights,
                const char *format, ...);

/* Scores verdict and writes role, confidence, best, second, reasons and
 * contradiction. Confidence is the distance of the two likeliest roles
 * (softmax) times explained times a factor for few steps. */
void ct_evidence_judge(const struct ct_view *view,
                       const struct ct_verdict *verdict, struct ct_role *role);

/* Parts of ct_evidence_large: gathers and scatters (sharded data parallelism or
 * sequence parallelism); all-reduces of what a scatter elsewhere left over
 * (replicas of shards); broadcasts. */
void ct_weigh_shards(const struct ct_use *use, struct ct_verdict *verdict);
void ct_weigh_replicas(const struct ct_view *view,
                       const struct ct_family *family,
                       struct ct_verdict *verdict);
void ct_weigh_broadcasts(const struct ct_use *use, struct ct_verdict *verdict);

/* "per step", or "in all" where there are no steps. */
const char *ct_view_per(const struct ct_view *view);

#endif
