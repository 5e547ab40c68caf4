#include "report/sections.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/units.h"

enum end {
    END_DIED,
    END_DIED_PERHAPS,
    END_LEFT,
    END_RUNS_PERHAPS,
    END_RUNS,
    END_CLOSED,
    ENDS
};

struct process_line { /* a process that something is to be said about */
    int rank;
    const char *host;
    int pid;
    int ops;
    int64_t lost;
    int refused, in_flight, recovered;
    char first[64]; /* in flight: what the others queue behind */
    enum end how;
    const char *end, *end_word;
    const char *file;
};

static const struct out_column columns[] = {
    OUT_COL(struct process_line, rank, "rank", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct process_line, host, "host", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct process_line, pid, "pid", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct process_line, ops, "ops", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct process_line, lost, "lost", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct process_line, refused, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct process_line, in_flight, "in flight", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct process_line, first, "the first of them", OUT_BUFFER, 0,
            OUT_OPTIONAL),
    OUT_COL(struct process_line, recovered, "from ring", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct process_line, end_word, "ended", OUT_TEXT, 0, OUT_TEXT_ONLY),
    OUT_COL(struct process_line, end, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct process_line, file, "file", OUT_TEXT, 0, OUT_DATA),
};

static const struct out_table table =
    OUT_TABLE_OF(struct process_line, columns, 16);

struct times_line {
    int64_t event, group, kernel, host, none;
};

static const struct out_column times_columns[] = {
    OUT_COL(struct times_line, event, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct times_line, group, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct times_line, kernel, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct times_line, host, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct times_line, none, "", OUT_COUNT, 0, OUT_BOTH),
};

static const struct out_table times_table =
    OUT_TABLE(struct times_line, times_columns);

static void describe_op(char *text, size_t size, const struct ct_process *p,
                        const struct ct_op_row *op)
{
    const struct ct_op_class_row *cls = &p->classes[op->cls];
    char bytes[UNITS_SIZE];

    snprintf(text, size, "%s %s, comm %d #%" PRIu32,
             ct_op_infos[cls->kind].name, units_size(bytes, cls->bytes),
             p->comms[cls->comm].comm, op->ordinal);
}

static void find_in_flight(struct process_line *line, const struct ct_job *job,
                           const struct ct_process *p)
{
    for (int i = 0; job->in_flight && i < p->nops; i++) {
        if (!(p->ops[i].flags & (CT_FLAG_IN_CALL | CT_FLAG_RUNNING)))
            continue;
        if (!line->in_flight++)
            describe_op(line->first, sizeof line->first, p, &p->ops[i]);
    }
}

static const struct {
    const char *word, *meaning;
    bool noted; /* the word alone does not tell */
} ends[ENDS] = {
    [END_DIED] = {"died", "died", false},
    [END_DIED_PERHAPS] = {"died?",
                          "died, or runs where it cannot be reached: last ops "
                          "are missing",
                          true},
    [END_LEFT] = {"unclosed",
                  "had ended its communicators, did not close its trace", true},
    [END_RUNS_PERHAPS] = {"runs?",
                          "still running, ring out of reach: last ops are "
                          "missing",
                          true},
    [END_RUNS] = {"still running", "still running", false},
    [END_CLOSED] = {"closed", "closed", false},
};

static enum end how_ended(const struct ct_process *p)
{
    if (p->dead)
        return p->ring_missing ? END_DIED_PERHAPS : END_DIED;
    if (p->left)
        return END_LEFT;
    if (p->ring_missing)
        return END_RUNS_PERHAPS;
    return p->end_ns == CT_NO_TIME ? END_RUNS : END_CLOSED;
}

static struct process_line line_of(const struct ct_job *job,
                                   const struct ct_process *p)
{
    const enum end end = how_ended(p);
    struct process_line line = {.rank = p->rank,
                                .host = p->host,
                                .pid = p->pid,
                                .ops = p->nops,
                                .lost = p->lost,
                                .refused = p->refused,
                                .recovered = p->recovered,
                                .how = end,
                                .end = ends[end].meaning,
                                .end_word = ends[end].word,
                                .file = p->path};

    find_in_flight(&line, job, p);
    return line;
}

/* The more is wrong, the earlier: dead, refused, lost, in flight. */
static int wrongness(const struct process_line *line)
{
    const bool died = line->how == END_DIED || line->how == END_DIED_PERHAPS;

    return 8 * died + 4 * (line->refused > 0) + 2 * (line->lost > 0) +
           (line->in_flight > 0);
}

static int worst_first(const void *left, const void *right)
{
    const struct process_line *a = left, *b = right;
    const int order = wrongness(b) - wrongness(a);

    if (order)
        return order;
    if (a->lost != b->lost)
        return a->lost > b->lost ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return strcmp(a->file, b->file);
}

/* Those that something is to be said about; the caller frees. */
static struct process_line *pick_processes(const struct view *view, int *n_p)
{
    struct process_line *lines =
        calloc((size_t)view->job->nprocesses + 1, sizeof *lines);
    int n = 0;

    for (int i = 0; lines && i < view->job->nprocesses; i++) {
        const struct ct_process *p =
            &view->trace->processes[view->job->processes[i]];
        const struct process_line line = line_of(view->job, p);

        if (!p->left_out && (line.lost || line.refused || line.in_flight ||
                             line.recovered || p->end_ns == CT_NO_TIME))
            lines[n++] = line;
    }
    if (n)
        qsort(lines, (size_t)n, sizeof *lines, worst_first);
    *n_p = n;
    return lines;
}

static void explain_ends(struct out *out, const struct process_line *lines,
                         int n)
{
    for (enum end e = 0; e < ENDS; e++)
        for (int i = 0; i < n && ends[e].noted; i++)
            if (lines[i].how == e) {
                out_say(out, 2, "%s: %s", ends[e].word, ends[e].meaning);
                break;
            }
}

static void put_processes(struct out *out, const struct view *view)
{
    int n;
    struct process_line *lines = pick_processes(view, &n);

    if (n) {
        out_rows(out, "processes", &table, lines, (size_t)n);
        explain_ends(out, lines, n);
    } else {
        out_list(out, "processes");
        out_list_end(out);
    }
    free(lines);
}

#define MISSING_SHOWN 4

static void say_missing(struct out *out, const struct view *view)
{
    int comms = 0;

    for (int i = 0; view->job->missing && i < view->job->ncomms; i++) {
        char members[120];

        view_missing_members(view, i, members, sizeof members);
        if (*members && ++comms <= MISSING_SHOWN)
            out_fact(out, "", "of comm %d, of %d ranks: %s", i,
                     view->job->comms[i].nranks, members);
    }
    if (comms > MISSING_SHOWN)
        out_fact(out, "", "and of %d communicators more",
                 comms - MISSING_SHOWN);
}

#define LOSSES_SHOWN 4

static void say_losses(struct out *out, const struct view *view)
{
    int64_t more_records = 0;
    int said = 0, more_ranks = 0;

    for (int i = 0; i < view->job->nprocesses; i++) {
        const struct ct_process *p =
            &view->trace->processes[view->job->processes[i]];

        if (p->left_out)
            continue;
        for (int k = 0, more = 0; k < p->nlosses; k++) {
            /* No figure here depends on stacks; `commtrace stacks` tells. */
            if (!strcmp(p->losses[k].what, "stack"))
                continue;
            if (said < LOSSES_SHOWN) {
                out_fact(out, said++ ? "" : "lost",
                         "rank %d: %" PRId64 " records of kind %s, cause %s",
                         p->rank, p->losses[k].n, p->losses[k].what,
                         p->losses[k].cause);
                continue;
            }
            more_records += p->losses[k].n;
            more_ranks += !more++;
        }
    }
    if (more_ranks)
        out_fact(out, "", "and of %d rank%s more, %" PRId64 " records",
                 more_ranks, ct_plural(more_ranks), more_records);
}

static const char *result_name(int result)
{
    static const char *const names[] = {
        "success",          "unhandled CUDA error", "system error",
        "internal error",   "invalid argument",     "invalid usage",
        "a rank's failure",
    };

    if (result < 0 || result >= (int)(sizeof names / sizeof *names))
        return "an unknown error";
    return names[result];
}

#define REFUSED_SHOWN 4 /* what one rank does wrong, all do, mostly */

/* They are no communications, and may be why there are no more. */
static void say_refused(struct out *out, const struct view *view)
{
    int ranks = 0;

    for (int i = 0; i < view->job->nprocesses; i++) {
        const struct ct_process *p =
            &view->trace->processes[view->job->processes[i]];
        const struct ct_refusal *first = &p->first_refused;

        if (p->refused && !p->left_out && ++ranks <= REFUSED_SHOWN)
            out_fact(out, "refused",
                     "rank %d: %d call%s returned an error and counted for "
                     "nothing, the first: %s, comm %d, ncclResult_t %d (%s)",
                     p->rank, p->refused, ct_plural(p->refused),
                     ct_op_infos[first->kind].function,
                     p->comms[first->comm].comm, first->result,
                     result_name(first->result));
    }
    if (ranks > REFUSED_SHOWN)
        out_fact(out, "", "and of %d ranks more", ranks - REFUSED_SHOWN);
}

/* Nothing tells when their bytes arrived. */
static void say_one_sided(struct out *out, const struct view *view)
{
    int64_t n = 0;

    for (int i = 0; i < view->job->ninstances; i++)
        n += ct_op_infos[view->job->instances[i].base].cls == CT_ONE_SIDED;
    if (n)
        out_fact(out, "one-sided",
                 "%" PRId64 " puts, signals and waits for signals have no "
                 "record of their other side: the times of puts are upper "
                 "bounds, those of signals waiting",
                 n);
}

static void say_simulated(struct out *out, const struct view *view)
{
    int64_t n = 0;

    for (int i = 0; i < view->job->nprocesses; i++)
        n += view->trace->processes[view->job->processes[i]].simulated;
    if (n)
        out_fact(out, "simulated",
                 "%" PRId64 " calls in groups that ended in "
                 "ncclGroupSimulateEnd or not at all ran nowhere and counted "
                 "for nothing",
                 n);
}

static void put_skipped(struct out *out, const struct ct_trace *trace)
{
    int copies = 0;

    out_list(out, "skipped");
    for (int i = 0; i < trace->nskipped; i++) {
        const char *line = trace->skipped[i];

        out_text(out, NULL, line);
        if (!view_is_copy(line) || copies++ < VIEW_COPIES_SHOWN)
            out_fact(out, "not read", "%s", line);
    }
    out_list_end(out);
    if (copies > VIEW_COPIES_SHOWN)
        out_fact(out, "not read", "%d copies more", copies - VIEW_COPIES_SHOWN);
}

void section_quality(struct out *out, const struct view *view)
{
    const struct view_times *t = &view->times;
    struct times_line times = {t->event, t->group, t->kernel, t->host, t->none};

    out_title(out, "DATA", NULL);
    out_object(out, "quality");
    out_record(out, "times", &times_table, &times);
    out_fact(out, "GPU times",
             "%" PRId64 " ops by their own events, %" PRId64 " by their "
             "group's",
             t->event, t->group);
    if (t->kernel)
        out_fact(out, "",
                 "%" PRId64 " ops by their kernels, as NCCL's profiler saw "
                 "them; of those in CUDA graphs the median of their runs",
                 t->kernel);
    if (t->host || t->none)
        out_fact(out, "not timed",
                 "%" PRId64 " ops have host times only, %" PRId64
                 " none (empty, captured or unfinished)",
                 t->host, t->none);
    section_met(out, view);
    section_clocks(out, view);
    section_graphs(out, view);
    section_choices(out, view);
    section_absences(out, view);
    if (view->job->missing)
        out_fact(out, "missing",
                 "%" PRId64 " members of communicators have "
                 "no trace: transfers they took part in are upper bounds",
                 view->job->missing);
    say_missing(out, view);
    say_losses(out, view);
    say_refused(out, view);
    say_simulated(out, view);
    say_one_sided(out, view);
    put_processes(out, view);
    put_skipped(out, view->trace);
    out_object_end(out);
}
