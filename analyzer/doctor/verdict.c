#include "doctor/verdict.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "doctor/closure.h"
#include "doctor/elf.h"
#include "doctor/options.h"
#include "doctor/python.h"

#define LIBRARY "libcommtrace.so"

int verdict_library(char *path, size_t size)
{
    static const char *const places[] = {"", "../lib/", "../lib64/"};
    char here[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);

    snprintf(path, size, LIBRARY);
    if (n <= 0)
        return -1;
    here[n] = 0;
    *strrchr(here, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if ((size_t)snprintf(path, size, "%s/%s" LIBRARY, here, places[i]) >=
            size)
            break;
        if (access(path, R_OK) == 0)
            return 0;
    }
    snprintf(path, size, "%s/" LIBRARY, here);
    return -1;
}

static void say(struct verdict *v, enum sight sight, const char *how,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

static void say(struct verdict *v, enum sight sight, const char *how,
                const char *format, ...)
{
    va_list args;

    v->sight = sight;
    v->how = how;
    va_start(args, format);
    vsnprintf(v->why, sizeof v->why, format, args);
    va_end(args);
}

/* Why the loader would take no orders from the environment, or NULL. Root
 * gains nothing by capabilities, nobody by becoming himself. */
static const char *gains_rights(const char *path)
{
    struct statvfs fs;
    struct stat file;

    if (stat(path, &file) || (statvfs(path, &fs) == 0 && fs.f_flag & ST_NOSUID))
        return NULL;
    if (file.st_mode & S_ISUID && file.st_uid != getuid())
        return "setuid";
    if ((file.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
        file.st_gid != getgid())
        return "setgid";
    if (getuid() && getxattr(path, "security.capability", NULL, 0) > 0)
        return "given capabilities";
    return NULL;
}

static bool starts_programs(const struct elf *elf)
{
    return elf_symbol(elf, "execve") == ELF_DEFINED ||
           elf_symbol(elf, "posix_spawn") == ELF_DEFINED ||
           elf_mentions(elf, "syscall.forkExec"); /* Go's */
}

static void judge_static(struct verdict *v, const struct elf *elf)
{
    const char *program = v->command.program;

    if (elf_symbol(elf, "ncclAllReduce") == ELF_DEFINED ||
        !starts_programs(elf)) {
        say(v, SIGHT_NO, "static",
            "%s is linked statically: it loads no library, so nothing can be "
            "put before its NCCL",
            program);
        v->cannot_work = elf_has_symbols(elf); /* else who knows */
        return;
    }
    say(v, SIGHT_MAYBE, "children",
        "%s is linked statically and is not seen itself; NCCL calls of "
        "programs that it starts would be",
        program);
}

static bool is_musl(const char *interp)
{
    return strstr(interp, "/ld-musl") != NULL;
}

/* What rules the program out, whatever it links; false: nothing. */
static bool is_out_of_reach(struct verdict *v, const struct elf *elf)
{
    const char *program = v->command.program;
    const char *rights = gains_rights(program);

    v->cannot_work = true;
    if (rights)
        say(v, SIGHT_NO, "secure",
            "%s is %s: the loader preloads nothing into a program that has "
            "more rights than its user",
            program, rights);
    else if (elf->kind == ELF_FOREIGN)
        say(v, SIGHT_NO, "foreign",
            "%s is of %d bits for %s: %s cannot be loaded into it", program,
            elf->bits, elf_machine_name(elf->machine), LIBRARY);
    else if (elf->kind == ELF_DAMAGED)
        say(v, SIGHT_NO, "damaged", "%s is a damaged ELF file", program);
    else if (elf->kind == ELF_NATIVE && elf->interp && is_musl(elf->interp))
        say(v, SIGHT_NO, "musl",
            "%s runs on musl, and %s needs glibc: the program would not start",
            program, LIBRARY);
    else
        v->cannot_work = false;
    return v->cannot_work;
}

/* Hooks see none of its calls. whose: "", or the beginning of a word on it. */
static void judge_inside(struct verdict *v, const char *whose, const char *file,
                         bool speaks)
{
    v->inside = inside_judge(speaks);
    say(v, v->inside.told ? SIGHT_MAYBE : SIGHT_NO, "static",
        "%sNCCL is linked statically into %s, where no hook sees its calls; %s",
        whose, file, v->inside.why);
}

static void judge_closure(struct verdict *v, const struct closure *c)
{
    const char *program = v->command.program;

    snprintf(v->nccl, sizeof v->nccl, "%s", c->nccl);
    snprintf(v->runtime, sizeof v->runtime, "%s", c->runtime);
    snprintf(v->driver, sizeof v->driver, "%s", c->driver);
    if (*c->broken) {
        say(v, SIGHT_NO, "broken", "%s would not start: %s", program,
            c->broken);
        v->cannot_work = c->preload_breaks;
    } else if (*c->inside && !*c->nccl) {
        judge_inside(v, "", c->inside, c->inside_speaks);
        v->cannot_work = !v->inside.told && !strcmp(c->inside, program);
    } else if (*c->nccl) {
        say(v, SIGHT_YES, "linked", "%s links %s", program, c->nccl);
    } else if (*c->names_it) {
        say(v, SIGHT_YES, "dlopened", "%s loads libnccl.so at run time",
            c->names_it);
    } else if (c->loads) {
        say(v, SIGHT_MAYBE, "dlopened",
            "%s links no NCCL; one that it loads at run time would be seen%s",
            program, c->starts ? ", and those of programs that it starts" : "");
    } else if (c->starts) {
        say(v, SIGHT_MAYBE, "children",
            "%s links no NCCL; NCCL calls of programs that it starts would be "
            "seen",
            program);
    } else {
        say(v, SIGHT_NO, "none",
            "%s links no NCCL, loads none and starts no other program",
            program);
    }
}

/* The interpreter, also where a script of its name chooses one (pyenv). */
static const char *interpreter_of(const struct command *command)
{
    if (python_is(command->program))
        return command->program;
    return python_is(command->script) ? command->script : NULL;
}

static void judge_python(struct verdict *v, const char *interpreter,
                         const char *library)
{
    struct python python;

    if (python_ask(&python, interpreter, library) < 0)
        return; /* then it is a program like any other */
    snprintf(v->nccl, sizeof v->nccl, "%s", python.nccl);
    snprintf(v->runtime, sizeof v->runtime, "%s", python.runtime);
    snprintf(v->driver, sizeof v->driver, "%s", python.driver);
    if (*python.inside)
        judge_inside(v, "torch's ", python.inside, python.inside_speaks);
    else if (*python.nccl)
        say(v, SIGHT_YES, "python", "%s of %s uses %s", python.package,
            interpreter, python.nccl);
    else if (*python.package)
        say(v, SIGHT_MAYBE, "python",
            "%s of %s has no NCCL (built for the CPU?); any other that is "
            "loaded would be seen",
            python.package, interpreter);
    else
        say(v, SIGHT_MAYBE, "python",
            "%s has neither torch nor nvidia-nccl; an NCCL that it loads, or a "
            "program that it starts, would be seen",
            interpreter);
}

static void judge_dynamic(struct verdict *v, const char *library, bool deep)
{
    static struct closure closure;
    const char *interpreter = interpreter_of(&v->command);

    if (closure_of(&closure, v->command.program, library, deep) < 0) {
        say(v, SIGHT_MAYBE, "unknown",
            "the loader does not say what %s would load", v->command.program);
        return;
    }
    judge_closure(v, &closure);
    if (deep && v->sight == SIGHT_MAYBE && interpreter)
        judge_python(v, interpreter, library);
}

static void judge_program(struct verdict *v, const char *library, bool deep)
{
    struct elf elf;
    int error;

    if (elf_open(&elf, v->command.program)) {
        error = errno;
        if (!is_out_of_reach(v, &elf))
            say(v, SIGHT_MAYBE, "unknown", "%s cannot be read (%s)",
                v->command.program, strerror(error));
        return;
    }
    if (is_out_of_reach(v, &elf))
        ;
    else if (elf.kind == ELF_NOT)
        /* What the kernel refuses, shells take for a script of theirs. */
        say(v, SIGHT_MAYBE, "children",
            "%s is a script without a first line that names its interpreter",
            v->command.program);
    else if (elf_symbol(&elf, "_rtld_global") == ELF_DEFINED)
        say(v, SIGHT_MAYBE, "children",
            "%s is the loader; ask for what it "
            "starts",
            v->command.program);
    else if (!elf.interp)
        judge_static(v, &elf);
    else
        judge_dynamic(v, library, deep);
    elf_close(&elf);
}

/* What keeps the recorder out or quiet, whatever the program is. */
static void judge_environment(struct verdict *v)
{
    const char *preload = v->command.preload;
    struct options options;

    options_read(&options, NULL);
    if (v->cannot_work)
        return;
    v->cannot_work = true;
    if (options_number(options.disable))
        say(v, SIGHT_NO, v->how, "COMMTRACE_DISABLE is set");
    else if (preload && !*preload)
        say(v, SIGHT_NO, v->how,
            "env takes LD_PRELOAD away, and the recorder with it");
    else if (preload && !strstr(preload, LIBRARY))
        say(v, SIGHT_NO, v->how,
            "env sets LD_PRELOAD=%.200s, which replaces the recorder", preload);
    else
        v->cannot_work = false;
}

int verdict_of(struct verdict *v, char *const argv[], const char *library,
               bool deep)
{
    int error;

    *v = (struct verdict){.how = "unknown"};
    error = command_resolve(&v->command, argv);
    if (error)
        return error;
    judge_program(v, library, deep);
    judge_environment(v);
    return 0;
}
