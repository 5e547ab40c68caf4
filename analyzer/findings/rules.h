/*
 * What the rules of findings share: each appends rows.
 */
#ifndef COMMTRACE_RULES_H
#define COMMTRACE_RULES_H

#include "findings/findings.h"

struct ct_case {
    const struct ct_trace *trace;
    const struct ct_job *job;
    const struct ct_model *model, *reference;
    const struct ct_roles *roles;
    double *located_us, *located_error; /* see ct_model_locate; NULL: not yet
                                           needed */
};

/* A new row about the whole job; NULL without memory. It stays valid until the
 * next one is added. */
struct ct_finding_row *ct_finding_add(struct ct_findings *findings,
                                      enum ct_finding id);

/* More of its text, as far as there is room. */
__attribute__((format(printf, 2, 3))) void
ct_finding_say(struct ct_finding_row *row, const char *format, ...);

/* Each returns false only without memory. */
bool ct_rule_crossing(struct ct_case *c, struct ct_findings *findings);
bool ct_rule_transport(struct ct_case *c, struct ct_findings *findings);
bool ct_rule_nics(struct ct_case *c, struct ct_findings *findings);
bool ct_rule_ports(const struct ct_case *c, struct ct_findings *findings);
bool ct_rule_slow_link(const struct ct_case *c, struct ct_findings *findings);
bool ct_rule_straggler(const struct ct_case *c, struct ct_findings *findings);
bool ct_rule_stuck(const struct ct_case *c, struct ct_findings *findings);
bool ct_rule_died(const struct ct_case *c, struct ct_findings *findings);
bool ct_rule_quality(const struct ct_case *c, struct ct_findings *findings);

/* "0-3, 8, 10", shortened to fit. */
void ct_rank_list(const int *ranks, int n, char *text, size_t size);

/* The same: ranks of the job that are members of comm and have a trace. */
void ct_ranks_text(const struct ct_trace *trace, const struct ct_comm *comm,
                   char *text, size_t size);

#endif
