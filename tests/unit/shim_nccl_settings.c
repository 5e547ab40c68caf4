/* What NCCL would find set: the environment first, then its files, each line
 * as NCCL reads it. */
#include "nccl_settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NEW = 23203, BEFORE_HOME = 22907, BEFORE_CONF_FILE = 22203 };

static char home[] = "/tmp/nccl-settings-XXXXXX";
static char home_conf[64], other_conf[64];
static struct nccl_setting setting;

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void expect(int version, enum setting_from from, const char *value)
{
    nccl_setting("NCCL_DEBUG", version, &setting);
    assert_int_equal(setting.from, from);
    if (from == SETTING_ENVIRONMENT || from == SETTING_FILE)
        assert_string_equal(setting.value, value);
}

static void test_environment(void **state)
{
    (void)state;
    expect(NEW, SETTING_NOWHERE, NULL);
    write_file(home_conf, "NCCL_DEBUG=WARN\n");
    setenv("NCCL_DEBUG", "", 1);
    expect(NEW, SETTING_ENVIRONMENT, "");
    setenv("NCCL_DEBUG", "INFO", 1);
    expect(NEW, SETTING_ENVIRONMENT, "INFO");
    unsetenv("NCCL_DEBUG");
    expect(NEW, SETTING_FILE, "WARN");
    assert_string_equal(setting.file, home_conf);
}

static void test_lines(void **state)
{
    static const struct {
        const char *text;
        enum setting_from from;
        const char *value;
    } files[] = {
        {"", SETTING_NOWHERE, NULL},
        {"NCCL_DEBUG", SETTING_NOWHERE, NULL},
        {"NCCL_DEBUG=", SETTING_FILE, ""},
        {"NCCL_DEBUG=INFO", SETTING_FILE, "INFO"},
        {"#NCCL_DEBUG=INFO\n\n=\nNCCL_DEBUG_FILE=x\n", SETTING_NOWHERE, NULL},
        {" NCCL_DEBUG=INFO\nXNCCL_DEBUG=INFO\n", SETTING_NOWHERE, NULL},
        {"NCCL_DEBUG=a=b c\nNCCL_DEBUG=d\n", SETTING_FILE, "a=b c"},
        {"NCCL_DEBU=1\nNCCL_DEBUG=INFO\r\n", SETTING_FILE, "INFO"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        write_file(home_conf, files[i].text);
        expect(NEW, files[i].from, files[i].value);
    }
}

static void test_long(void **state)
{
    FILE *file = fopen(home_conf, "w");
    (void)state;
    for (int i = 0; i < 100000; i++)
        fputc('x', file);
    fprintf(file, "\nNCCL_DEBUG=%02000d\n", 7);
    fclose(file);
    nccl_setting("NCCL_DEBUG", NEW, &setting);
    assert_int_equal(setting.from, SETTING_FILE);
    assert_int_equal(strlen(setting.value), sizeof(setting.value) - 1);
}

static void test_which_file(void **state)
{
    (void)state;
    write_file(home_conf, "NCCL_DEBUG=home\n");
    write_file(other_conf, "NCCL_DEBUG=other\n");
    setenv("NCCL_CONF_FILE", other_conf, 1);
    expect(NEW, SETTING_FILE, "other");
    nccl_setting("NCCL_DEBUG", BEFORE_CONF_FILE, &setting);
    assert_string_not_equal(setting.file, other_conf);
    setenv("NCCL_CONF_FILE", "/dev/null", 1);
    expect(NEW, SETTING_NOWHERE, NULL);
    unlink(other_conf);
    setenv("NCCL_CONF_FILE", other_conf, 1);
    expect(NEW, SETTING_NOWHERE, NULL);
    /* What is in a pipe is there once, and NCCL's. */
    assert_int_equal(mkfifo(other_conf, 0600), 0);
    expect(NEW, SETTING_SECRET, NULL);
    assert_string_equal(setting.file, other_conf);
    unsetenv("NCCL_CONF_FILE");
    /* The user's own home, whatever $HOME says. */
    nccl_setting("NCCL_DEBUG", BEFORE_HOME, &setting);
    assert_string_not_equal(setting.file, home_conf);
    unsetenv("HOME");
    expect(NEW, SETTING_NOWHERE, NULL);
    setenv("HOME", home, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_which_file),
    };
    if (access("/etc/nccl.conf", F_OK) == 0) {
        puts("skipped: this machine has /etc/nccl.conf");
        return 77;
    }
    if (!mkdtemp(home))
        return 1;
    snprintf(home_conf, sizeof(home_conf), "%s/.nccl.conf", home);
    snprintf(other_conf, sizeof(other_conf), "%s/other", home);
    setenv("HOME", home, 1);
    unsetenv("NCCL_DEBUG");
    unsetenv("NCCL_CONF_FILE");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(home_conf);
    unlink(other_conf);
    rmdir(home);
    return failed;
}
