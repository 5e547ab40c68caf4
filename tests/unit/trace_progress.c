/* The line on the terminal, and none elsewhere. */
#include "trace/progress.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Reads fd, a pipe or a terminal, until what came ends in last. */
static void read_until(int fd, char *text, size_t size, const char *last)
{
    size_t n = 0, m = strlen(last);

    do {
        const ssize_t more = read(fd, text + n, size - 1 - n);

        assert_true(more > 0);
        n += (size_t)more;
        text[n] = '\0';
    } while (n < m || strcmp(text + n - m, last) != 0);
}

static int replace_stderr(int fd)
{
    const int old = dup(STDERR_FILENO);

    assert_true(old >= 0);
    assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    close(fd);
    return old;
}

static void restore_stderr(int old)
{
    assert_int_equal(dup2(old, STDERR_FILENO), STDERR_FILENO);
    close(old);
}

static void test_terminal(void **state)
{
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    char text[1024];
    int old;

    (void)state;
    assert_true(terminal >= 0);
    assert_int_equal(grantpt(terminal) || unlockpt(terminal), 0);
    old = replace_stderr(open(ptsname(terminal), O_RDWR | O_NOCTTY));
    ct_progress_begin("commtrace report");
    ct_progress_stage("reading traces", 3);
    ct_progress_item();
    read_until(terminal, text, sizeof text, "traces, 1 of 3");
    ct_progress_stage("matching operations", 0);
    read_until(terminal, text, sizeof text, "report: matching operations");
    ct_progress_end();
    restore_stderr(old);
    /* The end is an empty line. */
    read_until(terminal, text, sizeof text, " \r");
    close(terminal);
}

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;

    assert_non_null(tasks);
    for (struct dirent *task; (task = readdir(tasks));)
        n += *task->d_name != '.';
    closedir(tasks);
    return n;
}

/* Nobody waits for the time to print. */
static void test_no_terminal(void **state)
{
    const int before = count_threads(); /* a sanitizer may have its own */
    int ends[2], old, threads;
    char text[8];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    old = replace_stderr(ends[1]);
    ct_progress_begin("commtrace report");
    ct_progress_stage("reading traces", 3);
    ct_progress_item();
    threads = count_threads();
    ct_progress_end();
    restore_stderr(old);
    assert_int_equal(threads, before);
    assert_int_equal(read(ends[0], text, sizeof text), 0);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_no_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
