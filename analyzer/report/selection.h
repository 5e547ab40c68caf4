/*
 * --steps, --ranks, --from and --to: the part of each job that a report is
 * asked for, as words and as what is left of the job.
 */
#ifndef COMMTRACE_REPORT_SELECTION_H
#define COMMTRACE_REPORT_SELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/narrow.h"

struct cli;
struct ct_findings;
struct ct_roles;
struct view_input;

struct selection_moment {
    const char *text; /* NULL: open */
    bool date;        /* else since the job's start */
    int64_t ns;
};

struct selection {                       /* as asked for */
    const char *steps_text, *ranks_text; /* NULL: all */
    int first_step, last_step;
    int nranks, *ranks; /* ascending, each once */
    struct selection_moment from, to;
};

/* Each returns 0, or -1 after a message. */
int selection_set_steps(struct selection *selection, const struct cli *cli,
                        const char *text);
int selection_set_ranks(struct selection *selection, const struct cli *cli,
                        const char *text);
int selection_set_moment(struct selection_moment *moment, const struct cli *cli,
                         const char *option, const char *text);
bool selection_is_all(const struct selection *selection);
void selection_release(struct selection *selection);

/* What is known of a job from all of it, once only a part is left. */
struct selected {
    struct ct_roles *roles;
    struct ct_findings *findings;
    int64_t ops, of_ops;
    int of_steps;           /* of a process, at most */
    int64_t from_ns, to_ns; /* of the job's time; CT_NO_TIME: open */
    int64_t start_real_ns;  /* of its 0 */
    int64_t last_ns;        /* of the job's last call */
};

/* Takes out of the jobs of input what is not chosen; fills input->selected.
 * Returns -1 after a message: nothing is left, or no memory. */
int selection_apply(struct view_input *input, const struct cli *cli);
void selection_forget(struct view_input *input);

/* "2026-11-30T01:25:44.500Z" */
void selection_date(int64_t real_ns, char *text, size_t size);

#endif
