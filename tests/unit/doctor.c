/* What `commtrace doctor` reads of files, commands and options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/command.h"
#include "doctor/elf.h"
#include "doctor/facts.h"
#include "doctor/options.h"
#include "doctor/trace_dir.h"

#define SELF "/proc/self/exe"

static void test_own_program(void **state)
{
    struct elf elf;
    char absent[64];

    (void)state;
    assert_int_equal(elf_open(&elf, SELF), 0);
    assert_int_equal(elf.kind, ELF_NATIVE);
    assert_int_equal(elf.bits, 64);
    assert_true(elf.is_program && elf.is_dynamic);
    assert_non_null(strstr(elf.interp, "ld-linux"));
    assert_int_equal(elf_symbol(&elf, "main"), ELF_DEFINED);
    assert_int_equal(elf_symbol(&elf, "symlink"), ELF_IMPORTED);
    assert_int_equal(elf_symbol(&elf, "no_such_symbol"), ELF_ABSENT);
    assert_true(elf_has_symbols(&elf));
    assert_true(elf_mentions(&elf, "a text that is only here"));
    snprintf(absent, sizeof absent, "%s, reversed", "a text that is only here");
    assert_false(elf_mentions(&elf, absent));
    elf_close(&elf);
}

static void test_no_elf(void **state)
{
    static const char script[] = "#!/bin/sh\nexit 0\n";
    struct elf elf;

    (void)state;
    elf_read(&elf, script, sizeof script);
    assert_int_equal(elf.kind, ELF_NOT);
    elf_read(&elf, "", 0);
    assert_int_equal(elf.kind, ELF_NOT);
    elf_read(&elf, ELFMAG, SELFMAG);
    assert_int_equal(elf.kind, ELF_NOT);
    assert_int_equal(elf_open(&elf, "/no/such/file"), -1);
    assert_int_equal(elf_open(&elf, "/"), -1);
    elf_close(&elf);
    assert_int_equal(elf_symbol(&elf, "main"), ELF_ABSENT);
    assert_false(elf_mentions(&elf, "main"));
}

static void test_other_machines(void **state)
{
    Elf64_Ehdr head = {.e_type = ET_EXEC, .e_machine = EM_S390};
    struct elf elf;

    (void)state;
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    elf_read(&elf, &head, sizeof head);
    assert_int_equal(elf.kind, ELF_FOREIGN);
    assert_string_equal(elf_machine_name(elf.machine), "s390");
    head.e_ident[EI_CLASS] = ELFCLASS32;
    head.e_machine = EM_386;
    elf_read(&elf, &head, sizeof head);
    assert_int_equal(elf.kind, ELF_FOREIGN);
    assert_int_equal(elf.bits, 32);
    head.e_ident[EI_CLASS] = 7;
    elf_read(&elf, &head, sizeof head);
    assert_int_equal(elf.kind, ELF_DAMAGED);
}

/* Asks a file everything; what matters is that nothing beyond it is read. */
static void ask_all(const unsigned char *bytes, size_t size)
{
    struct elf elf;

    elf_read(&elf, bytes, size);
    elf_symbol(&elf, "main");
    elf_has_symbols(&elf);
    elf_mentions(&elf, "a text");
    if (elf.interp)
        assert_true(strlen(elf.interp) < size);
}

static unsigned char *own_bytes(size_t *size)
{
    FILE *file = fopen(SELF, "rb");
    struct stat st;
    unsigned char *bytes;

    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &st), 0);
    *size = (size_t)st.st_size;
    bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

/* Each copy ends where its memory ends, so that a sanitizer sees the rest. */
static void ask_copy(const unsigned char *bytes, size_t size)
{
    unsigned char *copy = malloc(size ? size : 1);

    assert_non_null(copy);
    memcpy(copy, bytes, size);
    ask_all(copy, size);
    free(copy);
}

static void test_truncated(void **state)
{
    size_t size;
    unsigned char *bytes = own_bytes(&size);

    (void)state;
    for (size_t n = 0; n < 1200; n++)
        ask_copy(bytes, n);
    for (size_t n = 1200; n < size; n += size / 50)
        ask_copy(bytes, n);
    free(bytes);
}

/* Every word of the head and of the tables behind it, set to what hurts. */
static void test_garbage(void **state)
{
    static const uint64_t bad[] = {
        0, 1, 0xffff, 0x7fffffff, UINT64_MAX, UINT64_MAX - 8, INT64_MAX};
    Elf64_Ehdr head;
    size_t size, places[3][2] = {{0, sizeof head}};
    unsigned char *bytes = own_bytes(&size);

    (void)state;
    memcpy(&head, bytes, sizeof head);
    places[1][0] = head.e_phoff;
    places[1][1] = head.e_phoff + head.e_phnum * sizeof(Elf64_Phdr);
    places[2][0] = head.e_shoff;
    places[2][1] = head.e_shoff + head.e_shnum * sizeof(Elf64_Shdr);
    for (size_t p = 0; p < 3; p++) {
        for (size_t i = places[p][0]; i + 8 <= places[p][1]; i += 8) {
            for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
                uint64_t before;

                memcpy(&before, bytes + i, 8);
                memcpy(bytes + i, &bad[b], 8);
                ask_all(bytes, size);
                memcpy(bytes + i, &before, 8);
            }
        }
    }
    free(bytes);
}

static char folder[] = "/tmp/commtrace-doctor-XXXXXX";

static void make_script(const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
}

static int resolve(struct command *command, const char *word)
{
    char *argv[] = {(char *)(uintptr_t)word, NULL};

    return command_resolve(command, argv);
}

static void resolves(const char *word, const char *second, const char *program)
{
    struct command command;
    char *argv[] = {(char *)(uintptr_t)word, (char *)(uintptr_t)second, NULL};

    assert_int_equal(command_resolve(&command, argv), 0);
    assert_string_equal(command.program, program);
}

static void test_scripts(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("PATH", folder, 1), 0);
    make_script("plain", "#!/bin/sh\n");
    make_script("argument", "#! /bin/sh -e\n");
    make_script("by_env", "#!/usr/bin/env plain\n");
    make_script("by_env_s", "#!/usr/bin/env -S A=1 plain -u\n");
    resolves("plain", NULL, "/bin/sh");
    resolves("argument", NULL, "/bin/sh");
    resolves("by_env", NULL, "/bin/sh");
    resolves("by_env_s", NULL, "/bin/sh");
    resolves("/usr/bin/env", "plain", "/bin/sh");
    resolves("/usr/bin/env", NULL, "/usr/bin/env");
}

static void test_no_commands(void **state)
{
    struct command command;
    char path[128], text[256];

    (void)state;
    make_script("broken", "#!/no/such/interpreter\n");
    assert_int_equal(resolve(&command, "broken"), ENOENT);
    snprintf(path, sizeof path, "%s/loop", folder);
    snprintf(text, sizeof text, "#!%s\n", path);
    make_script("loop", text);
    assert_int_equal(resolve(&command, path), ELOOP);
    assert_int_equal(setenv("PATH", "/usr/bin:/bin", 1), 0);
    assert_int_equal(resolve(&command, "no-such-program"), ENOENT);
    assert_int_equal(resolve(&command, ""), ENOENT);
    assert_int_equal(resolve(&command, "/etc/passwd"), EACCES);
    snprintf(text, sizeof text, "rm -r %s", folder);
    assert_int_equal(system(text), 0);
}

/* What a line of words comes down to. */
static void line(struct command *command, const char *text)
{
    static char copy[256];
    char *argv[16] = {NULL}, *save = NULL;
    int n = 0;

    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &save); word;
         word = strtok_r(NULL, " ", &save)) {
        /* "_" is a blank within a word, "." is "_". */
        for (char *c = word; *c; c++)
            *c = *c == '_' ? ' ' : *c == '.' ? '_' : *c;
        argv[n++] = word;
    }
    assert_int_equal(command_resolve(command, argv), 0);
}

static void preloads(const char *text, const char *preload)
{
    struct command command;

    line(&command, text);
    assert_string_equal(command.program, "/bin/sh");
    if (preload)
        assert_string_equal(command.preload, preload);
    else
        assert_null(command.preload);
}

static void test_env(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct { const char *line, *rest; } cases[] = {
        {"-u A B=1", NULL},
        {"-u A LD.PRELOAD=xso B=1", "xso"},
        {"LD.PRELOAD=xso LD.PRELOAD=yso", "yso"},
        {"LD.PRELOAD=", ""},
        {"-u LD.PRELOAD", ""},
        {"-uLD.PRELOAD", ""},
        {"-vuLD.PRELOAD", ""},
        {"--unset=LD.PRELOAD", ""},
        {"--unset LD.PRELOAD", ""},
        {"-u LD.PRELOAD LD.PRELOAD=xso", "xso"},
        {"-i", ""},
        {"-", ""},
        {"-iC /", ""},
        {"-C / --", NULL},
        {"--chdir=/ --argv0 x --block-signal=INT", NULL},
        {"--ignore-environment", ""},
        {"-i A=1 /usr/bin/env LD.PRELOAD=xso", "xso"},
        {"A=1 /usr/bin/env -i", ""},
        {"-S A=1_LD.PRELOAD=xso", "xso"},
        {"-vS-u_LD.PRELOAD", ""},
        {"--split-string=-i_A=1 B=2", ""},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];

        snprintf(text, sizeof text, "env %s /bin/sh -c x", cases[i].line);
        preloads(text, cases[i].rest);
    }
}

static void test_env_options(void **state)
{
    struct command command;

    (void)state;
    setenv("COMMTRACE_DISABLE", "1", 1);
    line(&command, "env COMMTRACE.DISABLE=0 COMMTRACE.DIR=/x /bin/sh");
    assert_string_equal(getenv("COMMTRACE_DISABLE"), "0");
    assert_string_equal(getenv("COMMTRACE_DIR"), "/x");
    assert_string_equal(command.dir, "/x");
    line(&command, "env -u COMMTRACE.DIR /bin/sh");
    assert_null(getenv("COMMTRACE_DIR"));
    assert_string_equal(command.dir, "");
    line(&command, "env -i /bin/sh");
    assert_null(getenv("COMMTRACE_DISABLE"));
    line(&command, "env A=1 /bin/sh");
    assert_null(command.dir);
}

/* What doctor says of one variable; NULL: nothing. */
static const char *said(const char *variable, const char *value)
{
    static struct facts facts;
    struct options options;

    facts.n = 0;
    setenv(variable, value, 1);
    options_read(&options, &facts);
    unsetenv(variable);
    assert_true(facts.n <= 1);
    return facts.n ? facts.fact[0].status : NULL;
}

static void test_options(void **state)
{
    struct options options;

    (void)state;
    options_read(&options, NULL);
    assert_string_equal(options.flush_ms, "500");
    assert_null(said("COMMTRACE_FLUSH_MS", ""));
    assert_string_equal(said("COMMTRACE_FLUSH_MS", "10"), "good");
    assert_string_equal(said("COMMTRACE_FLUSH_MS", "9"), "bad");
    assert_string_equal(said("COMMTRACE_FLUSH_MS", "10s"), "bad");
    assert_string_equal(said("COMMTRACE_FLUSH_MS", "99999999999999999999"),
                        "bad");
    assert_string_equal(said("COMMTRACE_TIMING", "auto"), "good");
    assert_string_equal(said("COMMTRACE_TIMING", "sample:64"), "good");
    assert_string_equal(said("COMMTRACE_TIMING", "sample:"), "bad");
    assert_string_equal(said("COMMTRACE_TIMING", "sample:0"), "bad");
    assert_string_equal(said("COMMTRACE_TIMING", "sample:N"), "bad");
    assert_string_equal(said("COMMTRACE_TIMING", "aut"), "bad");
    assert_string_equal(said("COMMTRACE_TIMING", "autos"), "bad");
    assert_string_equal(said("COMMTRACE_QUIET", "2"), "bad");
    assert_string_equal(said("COMMTRACE_DIR", "any where"), "good");
    assert_string_equal(said("COMMTRACE_TIMNG", "all"), "note");
}

static void test_trace_dir(void **state)
{
    char dir[4096], long_name[5000];

    (void)state;
    assert_int_equal(trace_dir_name(dir, sizeof dir, "/a/b", "7"), 0);
    assert_string_equal(dir, "/a/b");
    assert_int_equal(chdir("/"), 0);
    setenv("SLURM_JOB_ID", "12", 1);
    setenv("SLURM_STEP_ID", "3", 1);
    assert_int_equal(trace_dir_name(dir, sizeof dir, "", "7"), 0);
    assert_string_equal(dir, "//commtrace-12.3");
    unsetenv("SLURM_JOB_ID");
    assert_int_equal(trace_dir_name(dir, sizeof dir, NULL, "7"), 0);
    assert_string_equal(strrchr(dir, '-'), "-7");
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    assert_int_equal(trace_dir_name(dir, sizeof dir, long_name, "7"), -1);
    assert_int_equal(errno, ENAMETOOLONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_program),    cmocka_unit_test(test_no_elf),
        cmocka_unit_test(test_other_machines), cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_garbage),        cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_no_commands),    cmocka_unit_test(test_env),
        cmocka_unit_test(test_env_options),    cmocka_unit_test(test_options),
        cmocka_unit_test(test_trace_dir),
    };

    if (getpid() == 0) /* never: these have to be in the file */
        return symlink("a text that is only here", "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
