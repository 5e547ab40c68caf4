/*
 * Everything that is known of one job, for commands to print from.
 */
#ifndef COMMTRACE_REPORT_VIEW_H
#define COMMTRACE_REPORT_VIEW_H

#include "findings/findings.h"
#include "model/model.h"
#include "pipeline/pipeline.h"
#include "report/cli.h"
#include "roles/roles.h"
#include "trace/trace.h"

#define VIEW_STEPS_SURE 0.8 /* below it, it is said how sure steps are */

/* What a usage costs a rank of its communicator, on average over its ranks,
 * per step or (view.per) per second. */
struct view_cost {
    int ranks; /* that it is a mean over: traced; with steps, if there are */
    double calls;
    double bytes; /* of messages, S */
    double transfer_ms, wait_ms;
};

/* How GPU times were had; counts of ops. */
struct view_times {
    int64_t event, group, host; /* around the op, its group, the call only */
    int64_t kernel;             /* by NCCL's profiler alone */
    int64_t none;               /* captured, zero or never finished */
    int64_t recovered;          /* from the ring of a dead process */
};

#define VIEW_COPIES_SHOWN 8 /* of what was skipped; all else is shown */

struct selected;
struct selection;

struct view {
    const struct ct_trace *trace;
    int number; /* of the job, from 0 */
    const struct ct_job *job;
    struct ct_model *model;
    const struct ct_model *reference; /* NULL: none; not owned */
    struct ct_roles *roles;
    struct ct_pipeline pipeline;
    struct ct_findings *findings;
    const char *per;         /* "step" or "second" */
    struct view_cost *costs; /* per job->usages */
    struct view_times times;
    /* NULL: the whole job. Then roles and findings are not owned. */
    const struct selected *selected;
    const struct selection *selection;
};

/* Traces of a command line with the reference's model, if one was asked for. */
struct view_input {
    struct ct_trace *trace;
    struct ct_trace *reference_trace;
    struct ct_model *reference;
    struct selected *selected;         /* per job; NULL: whole jobs */
    const struct selection *selection; /* with selected */
};

/* Returns 0, or -1 after a message. */
int view_input_open(struct view_input *input, const struct cli *cli);
/* The same of a part of the job; NULL: all of it. */
int view_input_open_part(struct view_input *input, const struct cli *cli,
                         const struct ct_part *part);
void view_input_close(struct view_input *input);

/* A process of that rank left a trace. */
bool view_has_rank(const struct ct_trace *trace, int rank);

/* Its steps are numbered from 0 up to, but not with, that. */
int view_steps(const struct ct_process *process);

/* Something of the job is chosen. */
bool view_has_job(const struct view_input *input, int number);

/* Prints one object per job: what put writes, which returns -1 only without
 * memory. Returns the exit status. */
typedef int view_put_job(struct out *out, const struct view_input *input,
                         const struct cli *cli, int number);
int view_print_jobs(const struct cli *cli, const struct view_input *input,
                    view_put_job *put);

/* The same from the command line's traces. */
int view_print(const struct cli *cli, view_put_job *put);

/* Derives all of job number `number`; -1 only without memory. */
int view_open(struct view *view, const struct view_input *input, int number);
void view_close(struct view *view);

/* A line of trace->skipped is about a process that another file holds. */
bool view_is_copy(const char *skipped);

/* The role of a usage; NULL: none was given. */
const struct ct_role *view_role(const struct view *view, int usage);

/* Length of a step, or of a second, in ms. */
double view_period_ms(const struct view *view);

/* "TP", or "unknown {TP, DP}". */
const char *view_role_name(char *buffer, size_t size,
                           const struct ct_role *role);

/* "all_reduce", "send/recv". */
const char *view_op_name(enum ct_op base);

/* Ranks with a trace: a process may hold several. */
int view_traced_ranks(const struct ct_job *job);

/* Of those the ones that were chosen; and of the members of a communicator. */
int view_chosen_ranks(const struct view *view);
int view_chosen_members(const struct view *view, int comm);

/* Micro-batches of a step, by the layout, else by what its calls repeat;
 * CT_NONE: unknown. */
int view_micro_batches(const struct view *view);

/* Members of a communicator without a trace: "1 (rank 5), 3", with the rank in
 * the job where that follows; "" where there are none. */
void view_missing_members(const struct view *view, int comm, char *text,
                          size_t size);

/* "rank 3", "ranks 4-7", as far as it fits: which ranks of the job left no
 * trace; "some ranks" where that is not known. Returns how many. */
int view_missing_ranks(const struct view *view, char *text, size_t size);

/* "2 processes died", and what else may be where that is not known for sure;
 * "" where none did. Returns how many. */
int view_dead(const struct view *view, char *text, size_t size);

/* Ranks in the job of the known members of a communicator, ascending, each
 * once, into ranks (of comm->nranks); returns how many. */
int view_comm_ranks(const struct ct_trace *trace, const struct ct_comm *comm,
                    int *ranks);

#endif
