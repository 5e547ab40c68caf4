/*
 * Steps of generated jobs of every layout, against their truth files: where
 * each begins and ends, what stands between them, micro-batches; also with
 * ranks that left no trace and with records that are lost. A job whose steps
 * are not exact must not be called sure.
 *   steps_jobs OPTIONS [MISSING [LOST]]   that job alone, and what is wrong
 *   steps_jobs random SEED N              N jobs by chance
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "steps_random.h"
#include "trace_files.h"

#define SURE 0.8
#define SEED 1
#define RANDOM_JOBS 60
#define MOST_SEGMENTS 4096

static const char *const kinds[] = {
    [CT_STEP_STEADY] = "step",           [CT_STEP_WARM_UP] = "warm_up",
    [CT_STEP_EVALUATION] = "evaluation", [CT_STEP_CHECKPOINT] = "checkpoint",
    [CT_STEP_FORWARD] = "forward",       [CT_STEP_OTHER] = "other"};

struct job {
    const char *options;
    int missing; /* every so many-th rank left no trace; 0: all did */
    int lost;    /* one of so many records is lost; 0: none */
};

struct segment {
    enum ct_step_kind kind;
    int first, last, micro_batches;
};

struct verdict {
    bool steps, kinds; /* are right */
    int micro_batches; /* 1 right, 0 not known, -1 wrong */
    double confidence;
    bool verbose;
};

static bool is_lost(const struct job *job, int rank, int op)
{
    const unsigned draw =
        ((unsigned)op * 2654435761u ^ (unsigned)rank * 40503u) >> 7;

    return job->lost && draw % (unsigned)job->lost == 0;
}

/* Records that are left of those before op. */
static int left_before(const struct job *job, int rank, int op)
{
    int i, n = op;

    for (i = 0; i < op && job->lost; i++)
        n -= is_lost(job, rank, i);
    return n;
}

static FILE *open_truth(const char *folder)
{
    char path[256], line[256] = "";
    FILE *f;

    snprintf(path, sizeof(path), "%s/truth.json", folder);
    f = fopen(path, "r");
    assert_non_null(f);
    while (strcmp(line, " \"segments\": [\n") != 0)
        assert_non_null(fgets(line, sizeof(line), f));
    return f;
}

static enum ct_step_kind kind_named(const char *name)
{
    int kind = CT_STEP_STEADY;

    while (strcmp(kinds[kind], name) != 0)
        kind++;
    return (enum ct_step_kind)kind;
}

/* Of the next rank. */
static int read_segments(FILE *f, struct segment *segments)
{
    struct segment *s = segments;
    char name[32];

    assert_int_equal(fscanf(f, " ["), 0);
    while (fscanf(f, "[\"%31[a-z_]\",%d,%d,%d]", name, &s->first, &s->last,
                  &s->micro_batches) == 4) {
        s++->kind = kind_named(name);
        assert_true(s - segments < MOST_SEGMENTS);
        if (fscanf(f, ",") == EOF)
            break;
    }
    assert_int_equal(fscanf(f, "],"), 0);
    return (int)(s - segments);
}

enum scope { STEPS, ALL };

static bool is_step(enum ct_step_kind kind)
{
    return kind == CT_STEP_STEADY || kind == CT_STEP_WARM_UP;
}

/* Whether all rows are those of the truth; STEPS: where steps, those that warm
 * up too, begin and end. */
static bool same(const struct job *job, const struct ct_process *p,
                 const struct segment *segments, int n, enum scope scope,
                 bool verbose)
{
    int i = 0, row = 0;

    for (;; i++, row++) {
        const struct segment *s = &segments[i];
        const struct ct_step_row *found = &p->steps[row];
        int first, last;

        while (scope == STEPS && i < n && !is_step(segments[i].kind))
            s = &segments[++i];
        while (scope == STEPS && row < p->nsteps &&
               !is_step(p->steps[row].kind))
            found = &p->steps[++row];
        if (i == n && row == p->nsteps)
            return true;
        first = i < n ? left_before(job, p->rank, s->first) : -1;
        last = i < n ? left_before(job, p->rank, s->last + 1) - 1 : -1;
        if (i < n && row < p->nsteps && found->first_op == first &&
            found->last_op == last &&
            (scope == STEPS || found->kind == s->kind))
            continue;
        if (verbose)
            printf("rank %d: %s %d..%d is %s %d..%d\n", p->rank,
                   i < n ? kinds[s->kind] : "nothing", first, last,
                   row < p->nsteps ? kinds[found->kind] : "nothing",
                   row < p->nsteps ? found->first_op : -1,
                   row < p->nsteps ? found->last_op : -1);
        return false;
    }
}

static const struct ct_process *process_of(const struct ct_trace *trace,
                                           int rank)
{
    int i;

    for (i = 0; i < trace->nprocesses; i++)
        if (trace->processes[i].rank == rank)
            return &trace->processes[i];
    return NULL;
}

static void compare(const struct job *job, const struct ct_trace *trace,
                    FILE *truth, struct verdict *v)
{
    static struct segment segments[MOST_SEGMENTS];
    const int world = trace->processes[0].world_size;
    int r, n, micro_batches = 0;

    v->steps = v->kinds = trace->njobs == 1;
    v->confidence = trace->jobs[0].step_confidence;
    for (r = 0; r < world; r++) {
        const struct ct_process *p = process_of(trace, r);
        int i;

        n = read_segments(truth, segments);
        if (!p)
            continue;
        v->steps &= same(job, p, segments, n, STEPS, v->verbose);
        v->kinds &= same(job, p, segments, n, ALL, v->verbose);
        for (i = 0; i < n; i++)
            if (segments[i].kind == CT_STEP_STEADY)
                micro_batches = segments[i].micro_batches;
    }
    if (trace->jobs[0].step_micro_batches == CT_NONE)
        v->micro_batches = 0;
    else
        v->micro_batches =
            trace->jobs[0].step_micro_batches == micro_batches ? 1 : -1;
    if (v->verbose)
        printf("%d steps, %d forwards, %d micro-batches (%d), confidence %.2f "
               "%s\n",
               trace->jobs[0].nsteps, trace->jobs[0].nforwards,
               trace->jobs[0].step_micro_batches, micro_batches, v->confidence,
               trace->jobs[0].no_steps ? trace->jobs[0].no_steps : "");
}

static int int_of(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *row;
    int value;

    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    value = sqlite3_column_int(row, 0);
    sqlite3_finalize(row);
    return value;
}

static void lose(const struct job *job, sqlite3 *db, int rank)
{
    sqlite3_stmt *ids, *gone;
    int i;

    files_sql(db, "BEGIN; CREATE TEMP TABLE lost (id)");
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT id FROM op ORDER BY id", -1, &ids, NULL),
        SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "INSERT INTO lost VALUES (?)", -1, &gone, NULL),
        SQLITE_OK);
    for (i = 0; sqlite3_step(ids) == SQLITE_ROW; i++)
        if (is_lost(job, rank, i)) {
            sqlite3_bind_int64(gone, 1, sqlite3_column_int64(ids, 0));
            assert_int_equal(sqlite3_step(gone), SQLITE_DONE);
            sqlite3_reset(gone);
        }
    sqlite3_finalize(ids);
    sqlite3_finalize(gone);
    files_sql(db, "DELETE FROM op WHERE id IN (SELECT id FROM lost); COMMIT");
}

/* Files of ranks that left no trace; records that are lost. */
static void disturb(const struct job *job, const char *folder)
{
    char path[512];
    struct dirent *entry;
    DIR *dir = opendir(folder);

    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        sqlite3 *db;
        int rank;

        if (!strstr(entry->d_name, ".db"))
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        rank = int_of(db, "SELECT rank FROM process");
        if (job->lost)
            lose(job, db, rank);
        sqlite3_close(db);
        if (job->missing && rank % job->missing == job->missing - 1)
            remove(path);
    }
    closedir(dir);
}

static struct verdict judge(const struct job *job, bool verbose)
{
    const char *folder = files_folder();
    struct verdict v = {.verbose = verbose};
    struct ct_trace *trace;
    char command[1024];
    FILE *truth;

    snprintf(command, sizeof(command), "%s %s --out %s", TRACEGEN, job->options,
             folder);
    assert_int_equal(system(command), 0);
    if (job->missing || job->lost)
        disturb(job, folder);
    trace = files_open(folder);
    truth = open_truth(folder);
    compare(job, trace, truth, &v);
    fclose(truth);
    files_close(trace, folder);
    return v;
}

static const struct job jobs[] = {
#define JOB(options_, ...) {options_, __VA_ARGS__},
#include "steps_jobs.def"
};

static const struct job doubts[] = {
#define JOB(options_, ...) {options_, __VA_ARGS__},
#include "steps_doubts.def"
};

struct tally {
    int n, exact, all, sure, told, micro[3];
};

static void add(struct tally *tally, const struct job *job)
{
    const struct verdict v = judge(job, false);

    tally->n++;
    tally->exact += v.steps;
    tally->all += v.kinds;
    tally->micro[1 + v.micro_batches]++;
    tally->sure += !v.steps && v.confidence >= SURE;
    tally->told += v.steps && v.confidence >= SURE;
    if (!v.steps || !v.kinds || v.micro_batches < 0)
        printf("%s, %s, micro-batches %s, confidence %.2f: '%s' %d %d\n",
               v.steps ? "steps exact" : "steps NOT exact",
               v.kinds ? "all exact" : "not all",
               v.micro_batches > 0   ? "right"
               : v.micro_batches < 0 ? "WRONG"
                                     : "unknown",
               v.confidence, job->options, job->missing, job->lost);
    fflush(stdout);
}

static void check(const struct tally *t)
{
    printf("of %d jobs: steps exact in %d, surely so in %d, with warm-up, "
           "evaluations and checkpoints in %d; wrong and sure %d; "
           "micro-batches right in %d, not told in %d, wrong in %d\n",
           t->n, t->exact, t->told, t->all, t->sure, t->micro[2], t->micro[1],
           t->micro[0]);
    assert_int_equal(t->sure, 0);
    assert_int_equal(t->micro[0], 0);
    assert_true(t->exact * 10 >= t->n * 9);
    assert_true(t->all * 10 >= t->n * 9);
    assert_true(t->told * 10 >= t->n * 6); /* doubting all is no way out */
}

static struct tally tally_of(const struct job *job, size_t n)
{
    struct tally tally = {0};
    size_t i;

    for (i = 0; i < n; i++)
        add(&tally, &job[i]);
    return tally;
}

static void test_jobs(void **state)
{
    const struct tally tally = tally_of(jobs, sizeof(jobs) / sizeof(*jobs));

    (void)state;
    check(&tally);
}

static void test_doubts(void **state)
{
    const struct tally tally =
        tally_of(doubts, sizeof(doubts) / sizeof(*doubts));

    (void)state;
    assert_int_equal(tally.sure, 0);
}

static void by_chance(struct tally *tally, unsigned long first, int n)
{
    char options[1024];
    int i;

    for (i = 0; i < n; i++) {
        struct job job = {.options = options};

        steps_random(first + (unsigned long)i, options, sizeof(options),
                     &job.missing, &job.lost);
        add(tally, &job);
    }
}

static void test_random(void **state)
{
    struct tally tally = {0};

    (void)state;
    printf("seeds %d..%d\n", SEED, SEED + RANDOM_JOBS - 1);
    by_chance(&tally, SEED, RANDOM_JOBS);
    check(&tally);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_jobs),
                                       cmocka_unit_test(test_doubts),
                                       cmocka_unit_test(test_random)};

    if (argc == 4 && !strcmp(argv[1], "random")) {
        struct tally tally = {0};

        by_chance(&tally, strtoul(argv[2], NULL, 10), atoi(argv[3]));
        check(&tally);
        return 0;
    }
    if (argc > 1) {
        const struct job job = {argv[1], argc > 2 ? atoi(argv[2]) : 0,
                                argc > 3 ? atoi(argv[3]) : 0};

        judge(&job, true);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
