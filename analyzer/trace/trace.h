/*
 * A job in memory: what the traces of its processes say together. Everything
 * above trace/ works on this and never opens a database.
 *
 * Built in stages, each a function of its own file:
 *   ct_trace_load    files -> processes (rows of each file, ring included)
 *   ct_trace_join    processes -> jobs: communicators by uid, members, nodes,
 *                    NVLink domains, link class per communicator
 *   ct_trace_cut     ops that an abort ended are none that finished
 *   ct_trace_match   ops of all ranks -> instances, the common time of their
 *                    clocks, transfer and wait
 *   ct_trace_choices how NCCL ran the instances
 *   ct_trace_locate  transfers of collectives where ranks disturb each other
 *   ct_trace_replays transfers of collectives that CUDA graphs ran
 *   ct_trace_settle  what was still in flight
 *   ct_trace_steps   step boundaries per process
 *   ct_trace_usage   instances -> usages: the aggregates that model, roles,
 *                    findings and reports read
 * ct_trace_open does all of it. process.h has the rows of a process, job.h what
 * becomes of those of all, op_facts.h and link_facts.h what can be asked of it.
 *
 * Memory belongs to the ct_trace (one arena) and is freed with it. References
 * are int indices; CT_NONE means none. Times are ns; a process's times count
 * from its own t0_ns; clocks.h has what makes them comparable with another's.
 */
#ifndef COMMTRACE_TRACE_H
#define COMMTRACE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "trace/info.h"
#include "trace/job.h"
#include "trace/link_facts.h"
#include "trace/op_facts.h"
#include "trace/process.h"

struct ct_trace {
    int nprocesses, njobs;
    struct ct_process *processes;
    struct ct_job *jobs;  /* as they were started */
    int nskipped;         /* files that could not be read */
    int ndoubles;         /* of them, what others say as well, or more */
    const char **skipped; /* "FILE: reason" each */
    struct ct_arena *arena;
};

/* Opens every trace file named by paths (folders: every *.db in them, not
 * below) and derives everything above. Returns 0 and sets *trace_p, which the
 * caller frees with ct_trace_free; on failure returns -1 and writes one line
 * "FILE: reason" into error (of error_size bytes): nothing readable, no trace,
 * no op. A file that cannot be read beside others that can is skipped and
 * listed, not fatal. */
int ct_trace_open(char *const *paths, int npaths, struct ct_trace **trace_p,
                  char *error, size_t error_size);
void ct_trace_free(struct ct_trace *trace);

/* What of a job is asked for: ops of a rank, or of a communicator, or those of
 * the rank in it. */
struct ct_part {
    int rank;         /* CT_NONE: of all */
    const char *comm; /* as ct_find_comm wants it; NULL: in all */
};

/* The same for who asks for those ops alone, and need not wait for the others:
 * of the ops that are not asked for, many are not there. Their times are those
 * of the whole job, except that clocks are tied by what the part knows. part
 * may be NULL: all. */
int ct_trace_open_part(char *const *paths, int npaths,
                       const struct ct_part *part, struct ct_trace **trace_p,
                       char *error, size_t error_size);

/* The communicator of that number, or that uid in hexadecimal; CT_NONE: none.
 */
int ct_find_comm(const struct ct_job *job, const char *text);

/* What tells who the members of a communicator are that have no trace. */
struct ct_absent {
    bool in_order; /* of the job's ranks */
    int only;      /* rank in the job that is missing; CT_NONE: unknown */
};
struct ct_absent ct_absent_of(const struct ct_trace *trace,
                              const struct ct_job *job, int comm);

/* Rank in the job of member rank; CT_NONE: it does not follow. */
int ct_absent_rank(const struct ct_absent *absent, int rank);

#endif
