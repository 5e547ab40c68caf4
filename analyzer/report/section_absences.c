/* What the traces lack, and why: those that are alike in one line. */
#include <stdlib.h>
#include <string.h>

#include "report/sections.h"

#define ABSENCES_SHOWN 4 /* of each kind */

struct absence_line {
    const char *what, *why;
    int processes;
};

static const struct out_column columns[] = {
    OUT_COL(struct absence_line, what, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct absence_line, why, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct absence_line, processes, "", OUT_INT, 0, OUT_BOTH),
};

static const struct out_table table = OUT_TABLE(struct absence_line, columns);

/* Those that make the report poorer. A host without RDMA is none of them. */
static const struct {
    const char *what, *label;
} told[] = {
    {"nvml", "NVML"},
    {"nccl_log", "NCCL's log"},
    {"profiler", "its profiler"},
    {"calls", "some calls"},
};

static int compare(const void *left, const void *right)
{
    const struct ct_absence_row *a = left, *b = right;
    const int order = strcmp(a->what, b->what);

    return order ? order : strcmp(a->why, b->why);
}

/* All rows of the job, sorted. */
static struct ct_absence_row *collect(const struct view *view, int *n_p)
{
    const struct ct_job *job = view->job;
    struct ct_absence_row *rows;
    int n = 0;

    for (int i = 0; i < job->nprocesses; i++)
        n += view->trace->processes[job->processes[i]].nabsences;
    *n_p = 0;
    rows = malloc(((size_t)n + 1) * sizeof *rows);
    for (int i = 0; rows && i < job->nprocesses; i++) {
        const struct ct_process *p = &view->trace->processes[job->processes[i]];

        for (int k = 0; k < p->nabsences && p->part == 0; k++)
            rows[(*n_p)++] = p->absences[k];
    }
    if (*n_p)
        qsort(rows, (size_t)*n_p, sizeof *rows, compare);
    return rows;
}

/* One that holds several ranks is one. */
static int count_processes(const struct view *view)
{
    const struct ct_job *job = view->job;
    int n = 0;

    for (int i = 0; i < job->nprocesses; i++)
        n += view->trace->processes[job->processes[i]].part == 0;
    return n;
}

static void say(struct out *out, const struct view *view,
                const struct absence_line *line, int nth)
{
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        if (strcmp(line->what, told[i].what) != 0)
            continue;
        if (nth < ABSENCES_SHOWN)
            out_fact(out, told[i].label, "not had by %d of %d processes: %s",
                     line->processes, count_processes(view), line->why);
    }
}

/* Told of communicators, not only of what is wrong. */
static bool names_comms(const struct ct_process *p)
{
    for (int i = 0; i < p->nccl.ncomms; i++)
        if (!p->nccl.comms[i].plugin)
            return true;
    return p->nccl.nconns > 0;
}

/* The first of its parts stands for a process; they lie side by side. */
static bool has_log(const struct ct_process *first)
{
    bool has = false;

    for (int i = 0; i < first->nparts; i++)
        has |= names_comms(&first[i]);
    return has;
}

static bool gave_reason(const struct ct_process *p)
{
    for (int i = 0; i < p->nabsences; i++)
        if (!strcmp(p->absences[i].what, "nccl_log"))
            return true;
    return false;
}

/* Without a reason: as where the user's own NCCL_DEBUG asks for less, or the
 * recorder was old. */
static void say_silent(struct out *out, const struct view *view)
{
    const struct ct_job *job = view->job;
    int guessed = 0, silent = 0;

    for (int i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = &view->trace->processes[job->processes[i]];

        if (p->part > 0)
            continue;
        guessed += !has_log(p);
        silent += !has_log(p) && !gave_reason(p);
    }
    if (silent)
        out_fact(out, "NCCL's log",
                 "names no communicator in %d of %d processes", silent,
                 count_processes(view));
    if (guessed)
        out_fact(out, "links",
                 "where the evidence is topology or host, LINKS show what the "
                 "machine has, not what NCCL uses");
}

void section_absences(struct out *out, const struct view *view)
{
    int n, nth = 0;
    struct ct_absence_row *rows = collect(view, &n);

    out_list(out, "absences");
    for (int i = 0, same; i < n; i += same) {
        struct absence_line line = {rows[i].what, rows[i].why, 0};

        for (same = 1; i + same < n && !compare(&rows[i], &rows[i + same]);)
            same++;
        line.processes = same;
        nth = i > 0 && !strcmp(rows[i - 1].what, line.what) ? nth + 1 : 0;
        out_record(out, NULL, &table, &line);
        say(out, view, &line, nth);
    }
    out_list_end(out);
    say_silent(out, view);
    free(rows);
}
