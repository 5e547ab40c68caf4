/*
 * What the tests of the recorder share: a scenario runs in a child process,
 * which records itself since it is linked with the recorder, and its trace is
 * read afterwards with nothing but SQLite.
 */
#ifndef SHIM_TEST_H
#define SHIM_TEST_H

#include "commtrace/nccl_abi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, count_, \
           type_, redop_, peer_, send_, recv_, params_, args_)           \
    ncclResult_t fn_ params_;
#define COMM(fn_, since_, ret_, params_, args_) ret_ fn_ params_;
#include "commtrace/nccl_ops.def"

struct scenario {
    char dir[64];
    sqlite3 *db;
};

/* Runs steps in a child that ends in exit(), and opens its only trace. */
static inline void scenario_run(struct scenario *scenario, void (*steps)(void))
{
    snprintf(scenario->dir, sizeof(scenario->dir), "/tmp/shim-test-XXXXXX");
    assert_non_null(mkdtemp(scenario->dir));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("COMMTRACE_DIR", scenario->dir, 1);
        steps();
        exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    char pattern[96];
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s/*.db", scenario->dir);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    assert_int_equal(sqlite3_open(found.gl_pathv[0], &scenario->db), SQLITE_OK);
    globfree(&found);
}

static inline void scenario_end(struct scenario *scenario)
{
    char command[128];
    sqlite3_close(scenario->db);
    snprintf(command, sizeof(command), "rm -rf '%s'", scenario->dir);
    assert_int_equal(system(command), 0);
}

/* Rows of a query as text: columns by '|', rows by newlines. */
static inline const char *scenario_ask(struct scenario *scenario,
                                       const char *sql)
{
    static char text[65536];
    sqlite3_stmt *ask;
    size_t used = 0;
    text[0] = 0;
    int rc = sqlite3_prepare_v2(scenario->db, sql, -1, &ask, NULL);
    if (rc != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(scenario->db));
    while (sqlite3_step(ask) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(ask); i++) {
            const char *value = (const char *)sqlite3_column_text(ask, i);
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
                                     i      ? "|"
                                     : used ? "\n"
                                            : "",
                                     value ? value : "-");
            assert_true(used < sizeof(text));
        }
    }
    sqlite3_finalize(ask);
    return text;
}

/* For a group of tests that record in this process and look at no trace. */
static inline int traces_set_up(void **state)
{
    static char dir[] = "/tmp/shim-traces-XXXXXX";
    *state = mkdtemp(dir);
    return *state ? setenv("COMMTRACE_DIR", dir, 1) : -1;
}

static inline int traces_tear_down(void **state)
{
    char command[64];
    snprintf(command, sizeof(command), "rm -rf '%s'", (const char *)*state);
    return system(command);
}

#define assert_answer(scenario_, sql_, answer_) \
    assert_string_equal(scenario_ask(scenario_, sql_), answer_)

static inline ncclUniqueId some_id(int n)
{
    ncclUniqueId id = {{0}};
    memcpy(id.internal, &n, sizeof(n));
    id.internal[100] = 1;
    return id;
}

#endif
