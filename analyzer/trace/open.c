#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/db.h"
#include "trace/files.h"
#include "trace/intern.h"
#include "trace/lost.h"
#include "trace/parallel.h"
#include "trace/part.h"
#include "trace/progress.h"
#include "trace/stages.h"

#define MAX_REASON 1024

struct loading { /* of one file, by one thread */
    struct ct_arena *arena;
    struct ct_process process;
    struct ct_process *parts; /* NULL: it is one */
    int nparts;
    enum ct_load_result result;
    char error[MAX_REASON];
};

struct opening {
    const struct ct_files *files;
    const struct ct_load_only *only; /* NULL: all */
    struct loading *loads;
};

static void load_file(void *context, int i)
{
    struct opening *opening = context;
    struct loading *load = &opening->loads[i];
    const char *path = opening->files->files[i].path;

    load->arena = ct_arena_new();
    path = ct_arena_text(load->arena, path, strlen(path));
    load->result =
        ct_trace_load(path, opening->only, load->arena, &load->process,
                      load->error, sizeof(load->error));
    if (load->result == CT_LOADED)
        load->parts =
            ct_trace_parts(&load->process, load->arena, &load->nparts);
    ct_progress_item();
}

static void skip(struct ct_trace *trace, const char *reason)
{
    trace->skipped[trace->nskipped++] =
        ct_arena_text(trace->arena, reason, strlen(reason));
}

/* The same process may be named twice, or a folder and a copy of it, or a trace
 * and its digest: keys of processes, and of each the load that tells most. */
struct identities {
    struct ct_intern uuids;
    int *key_of; /* by load */
    int *best;   /* load, by key */
};

static bool tells_more(const struct ct_process *a, const struct ct_process *b)
{
    const bool closed = a->end_ns != CT_NO_TIME;

    if (closed != (b->end_ns != CT_NO_TIME))
        return closed;
    return a->nops != b->nops ? a->nops > b->nops : a->last_ns > b->last_ns;
}

static int key_of(struct ct_intern *uuids, const struct ct_process *p)
{
    const int n = uuids->n;

    if (*p->uuid)
        return ct_intern_add(uuids, p->uuid, strlen(p->uuid));
    return ct_intern_add(uuids, &n, sizeof(n)); /* a key that no uuid is */
}

static void identify(struct identities *ids, const struct loading *loads, int n)
{
    int i;

    ids->key_of = ct_alloc((size_t)n, sizeof(*ids->key_of));
    ids->best = ct_alloc((size_t)n, sizeof(*ids->best));
    for (i = 0; i < n; i++) {
        const int before = ids->uuids.n;
        int key;

        if (loads[i].result != CT_LOADED)
            continue;
        key = ids->key_of[i] = key_of(&ids->uuids, &loads[i].process);
        if (key == before ||
            tells_more(&loads[i].process, &loads[ids->best[key]].process))
            ids->best[key] = i;
    }
}

static void forget(struct identities *ids)
{
    ct_intern_release(&ids->uuids);
    free(ids->key_of);
    free(ids->best);
}

/* Digests of two files say what those would; else it is the digest that is
 * there too often. */
static void skip_double(struct ct_trace *trace, const struct ct_process *p,
                        const struct ct_process *taken)
{
    const bool of_two = p->file != p->path && taken->file != taken->path &&
                        strcmp(p->path, taken->path) != 0;
    char reason[MAX_REASON];

    snprintf(reason, sizeof(reason), "%s: same process as %s",
             of_two ? p->path : p->file, of_two ? taken->path : taken->file);
    skip(trace, reason);
    trace->ndoubles++;
}

static void take(struct ct_trace *trace, const struct loading *load)
{
    const struct ct_process *p = &load->process;
    char reason[MAX_REASON];

    memcpy(&trace->processes[trace->nprocesses], load->parts ? load->parts : p,
           (size_t)load->nparts * sizeof(*p));
    trace->nprocesses += load->nparts;
    if (p->ring_refused) {
        snprintf(reason, sizeof(reason),
                 "%s: the last operations of %s are in it", p->ring_refused,
                 p->path);
        skip(trace, reason);
    }
}

/* In the order of files, whatever thread was done first. */
static void collect(struct ct_trace *trace, const struct ct_files *files,
                    struct loading *loads)
{
    struct identities ids = {0};
    int i, best, n = 0;

    for (i = 0; i < files->n; i++)
        n += loads[i].nparts;
    identify(&ids, loads, files->n);
    trace->processes =
        ct_arena_alloc(trace->arena, (size_t)n, sizeof(*trace->processes));
    trace->skipped = ct_arena_alloc(trace->arena, 2 * (size_t)files->n,
                                    sizeof(*trace->skipped));
    for (i = 0; i < files->n; i++) {
        best = ids.best[ids.key_of[i]];
        if (loads[i].result == CT_LOADED && best == i)
            take(trace, &loads[i]);
        else if (loads[i].result == CT_LOADED)
            skip_double(trace, &loads[i].process, &loads[best].process);
        else if (loads[i].result == CT_FAILED || files->files[i].named)
            skip(trace, loads[i].error);
    }
    for (i = 0; i < files->n; i++)
        ct_arena_merge(trace->arena, loads[i].arena);
    forget(&ids);
}

static void load_all(struct ct_trace *trace, const struct ct_files *files,
                     const struct ct_load_only *only)
{
    struct opening opening = {
        .files = files,
        .only = only,
        .loads = ct_alloc((size_t)files->n, sizeof(*opening.loads))};

    ct_progress_stage("reading traces", files->n);
    ct_parallel_for(files->n, load_file, &opening);
    collect(trace, files, opening.loads);
    free(opening.loads);
}

/* Of a part of the job those are asked whose calls are all there. */
static void find_steps(struct ct_trace *trace, struct ct_job *job,
                       const bool *whole)
{
    struct ct_job asked = *job;
    int i;

    asked.nprocesses = 0;
    asked.processes =
        ct_alloc((size_t)job->nprocesses, sizeof(*asked.processes));
    for (i = 0; i < job->nprocesses; i++)
        if (!whole || whole[job->processes[i]])
            asked.processes[asked.nprocesses++] = job->processes[i];
    ct_trace_steps(trace, &asked);
    free(asked.processes);
    asked.processes = job->processes;
    asked.nprocesses = job->nprocesses;
    *job = asked;
}

/* whole, per process: its ops are all there; NULL: of all they are. */
static void derive(struct ct_trace *trace, const bool *whole)
{
    int i;

    ct_progress_stage("matching operations", 0);
    ct_trace_join(trace);
    for (i = 0; i < trace->njobs; i++) {
        struct ct_job *job = &trace->jobs[i];

        ct_trace_cut(trace, job);
        ct_trace_match(trace, job);
        ct_trace_choices(trace, job);
        ct_trace_locate(trace, job);
        ct_trace_replays(trace, job);
        ct_trace_settle(trace, job);
        find_steps(trace, job, whole);
        ct_trace_usage(trace, job);
    }
}

static int fail(char *error, size_t error_size, const char *path,
                const char *reason)
{
    snprintf(error, error_size, "%s: %s", path, reason);
    return -1;
}

static int fail_empty(const struct ct_trace *trace, char *error,
                      size_t error_size)
{
    const struct ct_process *worst = &trace->processes[0];
    int64_t lost = 0;
    int i, processes = 0;

    for (i = 0; i < trace->nprocesses; i++) {
        const struct ct_process *p = &trace->processes[i];

        lost = ct_add_time(lost, p->lost);
        processes += p->lost > 0;
        if (p->lost > worst->lost)
            worst = p;
    }
    if (!lost)
        return fail(error, error_size, worst->path,
                    "no operation was recorded");
    snprintf(error, error_size,
             "%s: no operation was recorded: all %" PRId64
             ", of %d process%s, were lost, most by %.40s; %s and trace again",
             worst->path, lost, processes, processes == 1 ? "" : "es",
             ct_lost_cause(worst), ct_lost_remedy(ct_lost_cause(worst)));
    return -1;
}

static int check(const struct ct_trace *trace, char *const *paths, char *error,
                 size_t error_size)
{
    int64_t nops = 0;
    int i;

    if (!trace->nprocesses && trace->nskipped) {
        snprintf(error, error_size, "%s", trace->skipped[0]);
        return -1;
    }
    if (!trace->nprocesses)
        return fail(error, error_size, paths[0], "no trace file in it");
    for (i = 0; i < trace->nprocesses; i++)
        nops += trace->processes[i].nops;
    for (i = 0; i < trace->nprocesses && !nops; i++)
        if (trace->processes[i].ring_refused) {
            snprintf(error, error_size,
                     "%s: no operation was recorded but in its ring, %s",
                     trace->processes[i].path,
                     trace->processes[i].ring_refused);
            return -1;
        }
    return nops ? 0 : fail_empty(trace, error, error_size);
}

static int find_files(struct ct_files *files, char *const *paths, int npaths,
                      char *error, size_t error_size)
{
    int i, rc = npaths ? 0
                       : fail(error, error_size, "commtrace",
                              "no trace was named");

    ct_db_setup();
    for (i = 0; i < npaths && !rc; i++)
        rc = ct_files_add(files, paths[i], error, error_size);
    return rc;
}

static struct ct_trace *begin(void)
{
    struct ct_arena *arena = ct_arena_new();
    struct ct_trace *trace = ct_arena_alloc(arena, 1, sizeof(*trace));

    trace->arena = arena;
    return trace;
}

/* False: it takes all of the job. */
static bool open_part(const struct ct_files *files, const struct ct_part *part,
                      struct ct_trace **trace_p)
{
    const struct ct_load_only comms = {.comms = true};
    struct ct_trace *trace = begin();
    bool *whole = NULL;

    load_all(trace, files, &comms);
    whole = ct_alloc((size_t)trace->nprocesses, sizeof(*whole));
    if (!ct_part_load(trace, part, whole)) {
        free(whole);
        ct_trace_free(trace);
        return false;
    }
    derive(trace, whole);
    free(whole);
    *trace_p = trace;
    return true;
}

static int open_all(const struct ct_files *files, char *const *paths,
                    struct ct_trace **trace_p, char *error, size_t error_size)
{
    struct ct_trace *trace = begin();
    int rc;

    load_all(trace, files, NULL);
    rc = check(trace, paths, error, error_size);
    if (rc) {
        ct_trace_free(trace);
        return rc;
    }
    derive(trace, NULL);
    *trace_p = trace;
    return 0;
}

int ct_trace_open_part(char *const *paths, int npaths,
                       const struct ct_part *part, struct ct_trace **trace_p,
                       char *error, size_t error_size)
{
    struct ct_files files = {0};
    int rc = find_files(&files, paths, npaths, error, error_size);

    if (!rc && !(part && open_part(&files, part, trace_p)))
        rc = open_all(&files, paths, trace_p, error, error_size);
    ct_files_release(&files);
    return rc;
}

int ct_trace_open(char *const *paths, int npaths, struct ct_trace **trace_p,
                  char *error, size_t error_size)
{
    return ct_trace_open_part(paths, npaths, NULL, trace_p, error, error_size);
}

void ct_trace_free(struct ct_trace *trace)
{
    if (trace)
        ct_arena_free(trace->arena);
}
