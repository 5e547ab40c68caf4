/* Variables in the environment for a while: what others do to it meanwhile
 * stays, what it was before comes back, and readers never notice. */
#include "publish.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct publication log_file = {
    .texts = {"NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=/dev/shm/x"}};
static struct publication plugin = {
    .texts = {"NCCL_PROFILER_PLUGIN=STATIC_PLUGIN"}};

static bool has(const char *name, const char *value)
{
    const char *is = getenv(name);
    return is && !strcmp(is, value);
}

static bool is_clean(void)
{
    for (char **at = environ; at && *at; at++)
        if (!strncmp(*at, "NCCL_", 5) || !strncmp(*at, "COMMTRACE_", 10))
            return false;
    return true;
}

static void test_comes_and_goes(void **state)
{
    char **before = environ;
    (void)state;
    assert_true(publish(&log_file));
    assert_ptr_not_equal(environ, before);
    assert_true(has("NCCL_DEBUG", "INFO"));
    assert_true(has("NCCL_DEBUG_FILE", "/dev/shm/x"));
    assert_true(has("HOME", "/home/x"));
    assert_true(publish(&log_file)); /* it is there */
    publish_end(&log_file);
    assert_ptr_equal(environ, before);
    assert_true(is_clean());
    publish_end(&log_file);
    assert_ptr_equal(environ, before);
}

static void test_no_environment(void **state)
{
    char **before = environ;
    (void)state;
    environ = NULL;
    assert_true(publish(&log_file));
    assert_true(has("NCCL_DEBUG", "INFO"));
    publish_end(&log_file);
    assert_null(environ);
    environ = before;
}

static void test_not_over_the_users(void **state)
{
    char **before;
    (void)state;
    setenv("NCCL_DEBUG_FILE", "", 1);
    before = environ;
    assert_false(publish(&log_file));
    assert_ptr_equal(environ, before);
    assert_null(getenv("NCCL_DEBUG"));
    publish_end(&log_file);
    assert_true(has("NCCL_DEBUG_FILE", ""));
    unsetenv("NCCL_DEBUG_FILE");
    assert_true(publish(&log_file));
    publish_end(&log_file);
    assert_true(is_clean());
}

static void test_two(void **state)
{
    char **before = environ;
    (void)state;
    for (int first = 0; first < 2; first++) {
        assert_true(publish(&log_file));
        assert_true(publish(&plugin));
        publish_end(first ? &log_file : &plugin);
        assert_int_equal(has("NCCL_DEBUG", "INFO"), !first);
        assert_int_equal(has("NCCL_PROFILER_PLUGIN", "STATIC_PLUGIN"), first);
        publish_end(first ? &plugin : &log_file);
        assert_ptr_equal(environ, before);
    }
}

/* What a program does to its environment while something is published. */
static void add(void)
{
    setenv("NEW", "1", 1);
}
static void change(void)
{
    setenv("OLD", "changed", 1);
}
static void take_away(void)
{
    unsetenv("OLD");
}
static void clear(void)
{
    clearenv();
}
static void copy_pointers(void)
{
    static char *mine[256];
    size_t n = 0;
    for (; environ[n]; n++)
        mine[n] = environ[n];
    environ = mine;
}
static void copy_all(void)
{
    static char *mine[256];
    size_t n = 0;
    for (; environ[n]; n++)
        mine[n] = strdup(environ[n]);
    environ = mine;
}
static void set_theirs(void)
{
    setenv("NCCL_DEBUG", "INFO", 1);
}

/* In a child, since it ends with another environment. */
static void check_meddling(void (*meddle)(void), const char *name,
                           const char *value)
{
    pid_t pid = fork();
    if (pid == 0) {
        bool well = publish(&log_file) && publish(&plugin);
        meddle();
        publish_end(&plugin);
        publish_end(&log_file);
        const char *is = getenv(name);
        well &= value ? is && !strcmp(is, value) : !is;
        if (meddle != set_theirs)
            well &= is_clean();
        else
            unsetenv("NCCL_DEBUG");
        /* And once more on top of it. */
        well &= publish(&log_file) && has("NCCL_DEBUG", "INFO");
        publish_end(&log_file);
        _exit(well && is_clean() ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

static void test_meddling(void **state)
{
    (void)state;
    check_meddling(add, "NEW", "1");
    check_meddling(change, "OLD", "changed");
    check_meddling(take_away, "OLD", NULL);
    check_meddling(take_away, "HOME", "/home/x");
    check_meddling(clear, "OLD", NULL);
    check_meddling(copy_pointers, "OLD", "old");
    check_meddling(copy_all, "OLD", "old");
    check_meddling(set_theirs, "NCCL_DEBUG", "INFO");
}

static char *self; /* path of this program */

static int child(bool runs)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (runs)
            execl(self, self, "look", NULL);
        _exit(is_clean() && has("OLD", "old") ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    return status;
}

static void test_children(void **state)
{
    (void)state;
    assert_true(publish(&log_file));
    assert_true(publish(&plugin));
    assert_int_equal(child(false), 0);
    assert_int_equal(child(true), 0);
    assert_true(has("NCCL_DEBUG", "INFO"));
    /* Not fork()ed, so that it inherits what is published. */
    char command[PATH_MAX + 16];
    snprintf(command, sizeof(command), "exec '%s' look", self);
    assert_int_equal(system(command), 0);
    publish_end(&plugin);
    publish_end(&log_file);
    assert_true(is_clean());
}

enum { READERS = 16, TIMES = 1000 };
static _Atomic int reading, wrong;
static _Atomic bool over;

static void *read_all_the_time(void *unused)
{
    (void)unused;
    atomic_fetch_add(&reading, 1);
    while (!atomic_load(&over)) {
        const char *home = getenv("HOME"), *debug = getenv("NCCL_DEBUG");
        if (!home || strcmp(home, "/home/x") != 0 ||
            (debug && strcmp(debug, "INFO") != 0) || getenv("NOBODY"))
            atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

static void start_readers(pthread_t *threads)
{
    for (int i = 0; i < READERS; i++)
        pthread_create(&threads[i], NULL, read_all_the_time, NULL);
    while (atomic_load(&reading) < READERS)
        sched_yield();
}

static int stop_readers(const pthread_t *threads)
{
    atomic_store(&over, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&over, false);
    atomic_store(&reading, 0);
    return atomic_load(&wrong);
}

static void test_readers(void **state)
{
    pthread_t threads[READERS];
    char **before = environ;
    (void)state;
    start_readers(threads);
    for (int i = 0; i < TIMES; i++) {
        assert_true(publish(&log_file));
        assert_true(has("NCCL_DEBUG", "INFO"));
        publish_end(&log_file);
        assert_ptr_equal(environ, before);
    }
    assert_int_equal(stop_readers(threads), 0);
}

/* The first time in a process, again and again. RUNS: how often. */
static void test_processes(void **state)
{
    const char *runs = getenv("RUNS");
    int n = runs ? atoi(runs) : 60;
    (void)state;
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            pthread_t threads[READERS];
            start_readers(threads);
            bool well = publish(&log_file);
            sched_yield();
            publish_end(&log_file);
            _exit(stop_readers(threads) == 0 && well && is_clean() ? 0 : 1);
        }
        int status;
        waitpid(pid, &status, 0);
        assert_int_equal(status, 0);
    }
}

/* Each time another environment: it ends, and in order. */
static void test_bounded(void **state)
{
    bool refused = false;
    (void)state;
    for (int i = 0; i < 200; i++) {
        char value[16];
        snprintf(value, sizeof(value), "%d", i);
        setenv("OLD", value, 1);
        refused |= !publish(&log_file);
        publish_end(&log_file);
        assert_true(has("OLD", value));
        assert_true(is_clean());
    }
    assert_true(refused);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comes_and_goes),
        cmocka_unit_test(test_no_environment),
        cmocka_unit_test(test_not_over_the_users),
        cmocka_unit_test(test_two),
        cmocka_unit_test(test_meddling),
        cmocka_unit_test(test_children),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_readers),
        cmocka_unit_test(test_bounded),
    };
    if (argc > 1 && !strcmp(argv[1], "look"))
        return is_clean() && has("OLD", "old") ? 0 : 1;
    self = realpath(argv[0], NULL);
    const char *runs = getenv("RUNS");
    clearenv();
    if (runs)
        setenv("RUNS", runs, 1);
    setenv("HOME", "/home/x", 1);
    setenv("OLD", "old", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
