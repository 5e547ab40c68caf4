/* Jobs with and without a rank that computes more slowly than the others. What
 * it costs is known: the same job without it takes so much less. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "findings/findings.h"
#include "trace_files.h"

struct found {
    double step_ms;
    int n, rank;
    double low_ms, high_ms, confidence;
    char text[640];
};

static struct found judge(struct ct_trace *trace)
{
    const struct ct_job *job = &trace->jobs[0];
    struct ct_model *model = ct_model_build(trace, job);
    struct ct_roles *roles = ct_roles_build(trace, job);
    struct ct_findings *findings =
        ct_findings_build(trace, job, model, NULL, roles, NULL);
    struct found found = {.step_ms = (double)job->step_ns / 1e6, .rank = -1};

    for (int i = 0; i < findings->n; i++) {
        const struct ct_finding_row *row = &findings->rows[i];

        if (row->id != CT_FINDING_STRAGGLER)
            continue;
        found.n++;
        found.low_ms = row->loss_low_ms;
        found.high_ms = row->loss_high_ms;
        found.confidence = row->confidence;
        assert_true(row->loss_low_ms <= row->loss_ms &&
                    row->loss_ms <= row->loss_high_ms);
        snprintf(found.text, sizeof found.text, "%s", row->text);
        assert_int_equal(sscanf(row->text, "rank %d ", &found.rank), 1);
    }
    ct_findings_free(findings);
    ct_roles_free(roles);
    ct_model_free(model);
    return found;
}

/* Runs sql in each trace of folder. */
static void change(const char *folder, const char *sql)
{
    char pattern[300];
    glob_t files;

    snprintf(pattern, sizeof pattern, "%s/*.db", folder);
    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        sqlite3 *db;

        assert_int_equal(sqlite3_open(files.gl_pathv[i], &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
    }
    globfree(&files);
}

static struct found run_changed(const char *layout, const char *more,
                                const char *sql)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    struct found found;
    char command[512];

    snprintf(command, sizeof command,
             "%s --layers 4 --steps 12 --micro-batches 4 %s %s --out %s",
             TRACEGEN, layout, more, folder);
    assert_int_equal(system(command), 0);
    if (sql)
        change(folder, sql);
    trace = files_open(folder);
    found = judge(trace);
    files_close(trace, folder);
    return found;
}

static struct found run(const char *layout, const char *more)
{
    return run_changed(layout, more, NULL);
}

static const char *const layouts[] = {
    "--tp 8",
    "--dp 8",
    "--dp 8 --hosts 2",
    "--tp 4 --dp 2",
    "--pp 2 --dp 4",
    "--tp 2 --pp 2 --dp 2 --order tp,pp,dp",
    "--tp 2 --pp 4 --hosts 2",
};
#define LAYOUTS (int)(sizeof layouts / sizeof layouts[0])

/* Jitter alone makes ranks late as well, each time another. */
static void test_none(void **state)
{
    static const char *const jitters[] = {"--jitter 0", "--jitter 0.02",
                                          "--jitter 0.1 --seed 2"};

    (void)state;
    for (int i = 0; i < LAYOUTS; i++)
        for (int j = 0; j < 3; j++) {
            const struct found found = run(layouts[i], jitters[j]);

            if (found.n)
                fail_msg("%s %s: %s", layouts[i], jitters[j], found.text);
        }
}

static void check(const char *layout, const char *jitter, int rank,
                  double factor)
{
    const double without = run(layout, jitter).step_ms;
    char slow[80];
    struct found found;
    double truth;

    snprintf(slow, sizeof slow, "%s --slow %d,%g", jitter, rank, factor);
    found = run(layout, slow);
    truth = found.step_ms - without;
    if (found.n != 1 || found.rank != rank || found.confidence < .6)
        fail_msg("%s %s: %d found, sure %.2f: %s", layout, slow, found.n,
                 found.confidence, found.text);
    if (truth < .97 * found.low_ms || truth > 1.03 * found.high_ms)
        fail_msg("%s %s: %.3f ms in truth: %s", layout, slow, truth,
                 found.text);
}

static void test_one(void **state)
{
    (void)state;
    for (int i = 0; i < LAYOUTS; i++) {
        check(layouts[i], "--jitter 0.02", 2, 1.3);
        check(layouts[i], "--jitter 0.02", 5, 2);
        check(layouts[i], "--jitter 0.1 --seed 3", 7, 1.5);
    }
}

/* Where it is inside what others are late by, nothing is said. */
static void test_too_little(void **state)
{
    (void)state;
    for (int i = 0; i < LAYOUTS; i++)
        assert_int_equal(run(layouts[i], "--jitter 0.1 --slow 1,1.01").n, 0);
}

/* A rank that starts later than its peers, and for which nobody waits. */
static void test_skew(void **state)
{
    (void)state;
    for (int i = 0; i < LAYOUTS; i++) {
        const struct found found =
            run_changed(layouts[i], "--jitter 0.02",
                        "UPDATE process SET t0_ns = t0_ns + 1000000"
                        " WHERE rank = 1");

        if (found.n)
            fail_msg("%s: %s", layouts[i], found.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_too_little),
        cmocka_unit_test(test_skew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
