/* Options: values, defaults, and the one line about a bad value. */
#include "config.h"
#include "policy.h"
#include "shim_test.h"
#include "start.h"

static void read_options(struct config *config, const char *variable,
                         const char *value)
{
    setenv(variable, value, 1);
    config_read(config);
    unsetenv(variable);
}

static void test_defaults(void **state)
{
    struct config config;
    (void)state;
    config_read(&config);
    assert_string_equal(config.dir, "");
    assert_int_equal(config.timing.mode, TIMING_AUTO);
    assert_int_equal(config.flush_ms, 500);
    assert_int_equal(config.ring_slots, 8192);
    assert_int_equal(config.max_mb, 1024);
    assert_int_equal(config.disable, 0);
}

static void test_values(void **state)
{
    struct config config;
    (void)state;
    read_options(&config, "COMMTRACE_TIMING", "off");
    assert_int_equal(config.timing.mode, TIMING_OFF);
    read_options(&config, "COMMTRACE_TIMING", "sample:5");
    assert_int_equal(config.timing.mode, TIMING_SAMPLE);
    assert_int_equal(config.timing.shift, 3);
    read_options(&config, "COMMTRACE_TIMING", "sample:1");
    assert_int_equal(config.timing.shift, 0);
    read_options(&config, "COMMTRACE_MAX_MB", "7");
    assert_int_equal(config.max_mb, 7);
    read_options(&config, "COMMTRACE_DIR", "x/y");
    assert_string_equal(config.dir, "x/y");
}

/* stderr of a child that reads one bad value. */
static void complaint(const char *variable, const char *value, char *text,
                      size_t size)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct config config;
        dup2(pipes[1], STDERR_FILENO);
        read_options(&config, variable, value);
        config_read(&config);
        _exit(config.flush_ms == 500 ? 0 : 1);
    }
    close(pipes[1]);
    ssize_t n = read(pipes[0], text, size - 1);
    text[n > 0 ? n : 0] = 0;
    close(pipes[0]);
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

static void test_bad_values(void **state)
{
    static const char *const bad[][2] = {
        {"COMMTRACE_FLUSH_MS", "soon"},
        {"COMMTRACE_FLUSH_MS", "-1"},
        {"COMMTRACE_FLUSH_MS", "12x"},
        {"COMMTRACE_RING_SLOTS", "1"},
        {"COMMTRACE_TIMING", "often"},
        {"COMMTRACE_TIMING", "sample:0"},
        {"COMMTRACE_TIMING", "sample:"},
        {"COMMTRACE_DISABLE", "2"},
        {"COMMTRACE_MAX_MB", "99999999999999999999"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char text[400], start[100];
        complaint(bad[i][0], bad[i][1], text, sizeof(text));
        snprintf(start, sizeof(start), "commtrace: %s=%s is not understood",
                 bad[i][0], bad[i][1]);
        assert_memory_equal(text, start, strlen(start));
        assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    }
}

static void test_all_bad_values(void **state)
{
    char text[400];
    (void)state;
    setenv("COMMTRACE_TIMING", "often", 1);
    setenv("COMMTRACE_MAX_MB", "much", 1);
    complaint("COMMTRACE_FLUSH_MS", "soon", text, sizeof(text));
    assert_string_equal(
        text,
        "commtrace: COMMTRACE_TIMING=often is not understood; using \"auto\"; "
        "COMMTRACE_FLUSH_MS=soon is not understood; using \"500\"; "
        "COMMTRACE_MAX_MB=much is not understood; using \"1024\"\n");
    setenv("COMMTRACE_QUIET", "1", 1);
    complaint("COMMTRACE_FLUSH_MS", "soon", text, sizeof(text));
    assert_string_equal(text, "");
    unsetenv("COMMTRACE_QUIET");
    unsetenv("COMMTRACE_MAX_MB");
    unsetenv("COMMTRACE_TIMING");
}

static void test_describe(void **state)
{
    char text[200];
    (void)state;
    setenv("COMMTRACE_MAX_MB", "7", 1);
    setenv("COMMTRACE_TIMING", "off", 1);
    config_describe(text, sizeof(text));
    assert_string_equal(text, "COMMTRACE_TIMING=off COMMTRACE_MAX_MB=7");
    config_describe(text, 10);
    assert_int_equal(strlen(text), 9);
    unsetenv("COMMTRACE_MAX_MB");
    unsetenv("COMMTRACE_TIMING");
}

/* Must come last: what is noted stays. */
static void test_start(void **state)
{
    static char set[][32] = {
        "COMMTRACE_DIR=x/y",         "COMMTRACE_DIR=second",
        "COMMTRACE_DIRECTORY=other", "COMMTRACE_MAX_MB=7",
        "COMMTRACE_TIMING=often",    "COMMTRACE_DISABLE=1"};
    char *env[] = {set[0], set[1], set[2], set[3], set[4], set[5], NULL};
    char here[1000], there[1100], text[400];
    struct config config;
    (void)state;
    assert_non_null(getcwd(here, sizeof(here)));
    snprintf(there, sizeof(there), "%s/x/y", here);
    start_note(NULL);
    start_note(env);
    memset(set, 'x', sizeof(set)); /* as programs show a title */
    assert_int_equal(chdir("/"), 0);

    /* Nothing else is left. */
    config_read(&config);
    assert_string_equal(config.dir, there);
    assert_int_equal(config.disable, 1);
    assert_int_equal(config.max_mb, 7);
    assert_int_equal(config.flush_ms, 500);
    config_describe(text, sizeof(text));
    assert_non_null(strstr(text, there));
    assert_non_null(strstr(text, "COMMTRACE_DISABLE=1"));

    /* The same is still set, or the program has set another. */
    read_options(&config, "COMMTRACE_DIR", "x/y");
    assert_string_equal(config.dir, there);
    read_options(&config, "COMMTRACE_DIR", "z");
    assert_string_equal(config.dir, "z");
    read_options(&config, "COMMTRACE_DIR", "");
    assert_string_equal(config.dir, "");
    read_options(&config, "COMMTRACE_DISABLE", "0");
    assert_int_equal(config.disable, 0);
    read_options(&config, "COMMTRACE_MAX_MB", "9");
    assert_int_equal(config.max_mb, 9);
}

static void test_sampling(void **state)
{
    (void)state;
    for (unsigned shift = 0; shift < 7; shift++) {
        int chosen = 0;
        for (uint64_t i = 0; i < 100000; i++) {
            policy_set((struct timing){TIMING_SAMPLE, shift});
            bool wanted = policy_wants(77, i);
            chosen += wanted;
            /* A larger shift chooses a subset, so ranks that adapted
             * differently still have common samples. */
            policy_set((struct timing){TIMING_SAMPLE, shift + 1});
            if (policy_wants(77, i))
                assert_true(wanted);
        }
        double expected = 100000.0 / (1 << shift);
        assert_true(chosen > 0.9 * expected && chosen < 1.1 * expected);
    }
    policy_set((struct timing){TIMING_OFF, 0});
    assert_false(policy_wants(77, 0));
}

static unsigned shift_now(void)
{
    return atomic_load(&policy_shift);
}

static void test_auto(void **state)
{
    const struct timing automatic = {TIMING_AUTO, 0};
    const int64_t second = 1000000000;
    (void)state;
    policy_set(automatic);
    assert_false(policy_adapt(automatic, 3999, second));
    assert_int_equal(shift_now(), 0);
    assert_true(policy_adapt(automatic, 30000, second));
    assert_int_equal(shift_now(), 3);
    /* Not down at once: 30000 / 2^2 is still more than the bound. */
    assert_false(policy_adapt(automatic, 20000, second));
    assert_false(policy_adapt(automatic, 8000, second));
    assert_true(policy_adapt(automatic, 500, second));
    assert_int_equal(shift_now(), 0);
    assert_false(policy_adapt((struct timing){TIMING_ALL, 0}, 1000000, second));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_all_bad_values),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
