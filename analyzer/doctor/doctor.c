#include "doctor/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commtrace/nccl_settings.h"
#include "commtrace/unwind_abi.h"
#include "doctor/child.h"
#include "doctor/facts.h"
#include "doctor/machine.h"
#include "doctor/nccl_log.h"
#include "doctor/nccl_profiler.h"
#include "doctor/options.h"
#include "doctor/places.h"
#include "doctor/verdict.h"
#include "report/out.h"

#define NOTHING_SEEN 1

/* The answer itself, as programs read it. */
struct summary {
    const char *seen; /* yes, maybe, no */
    const char *how;
    const char *why;
    const char *program;
    const char *nccl;
    int nccl_version, driver, runtime, gpus;
    const char *recorder;
    const char *dir;
    uint64_t dir_free, ring_bytes, ring_free;
};

static const struct out_column columns[] = {
    OUT_COL(struct summary, seen, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct summary, how, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct summary, why, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct summary, program, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct summary, nccl, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct summary, nccl_version, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct summary, driver, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct summary, runtime, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct summary, gpus, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct summary, recorder, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct summary, dir, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct summary, dir_free, "", OUT_SIZE, 0, OUT_DATA),
    OUT_COL(struct summary, ring_bytes, "", OUT_SIZE, 0, OUT_DATA),
    OUT_COL(struct summary, ring_free, "", OUT_SIZE, 0, OUT_DATA),
};

static const struct out_table table = OUT_TABLE(struct summary, columns);

struct checkup {
    struct facts facts;
    struct verdict verdict;
    struct machine machine;
    struct places places;
    struct options options;
    char library[PATH_MAX];
    bool has_command;
    int nccl_version, runtime; /* -1: unknown */
    const char *seen;
};

/* 2.4.8 is 2408, 2.12.12 is 21212. */
static void version_text(char text[24], int code)
{
    int major = code >= 10000 ? 10000 : 1000;

    snprintf(text, 24, "%d.%d.%d", code / major, code % major / 100,
             code % 100);
}

/* Which NCCL: what the command links, or what dlopen would find. */
static void check_nccl(struct checkup *c)
{
    struct answer answer;
    bool linked = *c->verdict.nccl;
    const char *file = linked ? c->verdict.nccl : "libnccl.so.2";
    char version[24];

    if (!linked && (c->verdict.sight == SIGHT_NO || c->verdict.inside.told))
        return; /* another one is of no concern */
    child_ask(file, "ncclGetVersion", &answer);
    if (!answer.loaded || !answer.has_symbol) {
        facts_add(&c->facts, "NCCL", FACT_NOTE,
                  linked ? "%s cannot be loaded" : "no %s in the library path",
                  file);
        return;
    }
    c->nccl_version = answer.value;
    if (!linked)
        snprintf(c->verdict.nccl, sizeof c->verdict.nccl, "%s", answer.path);
    version_text(version, answer.value);
    facts_add(&c->facts, "NCCL", FACT_GOOD, "%s, %s%s", version, answer.path,
              linked ? "" : ", by the library path");
}

static void check_runtime(struct checkup *c)
{
    struct answer answer;

    if (!*c->verdict.runtime) {
        if (c->verdict.sight == SIGHT_YES)
            facts_add(&c->facts, "CUDA runtime", FACT_GOOD,
                      "not linked: static, or loaded at run time");
        return;
    }
    child_ask(c->verdict.runtime, "cudaRuntimeGetVersion", &answer);
    if (!answer.has_symbol || answer.status)
        return;
    c->runtime = answer.value;
    facts_add(&c->facts, "CUDA runtime", FACT_GOOD, "%d.%d, %s",
              answer.value / 1000, answer.value % 1000 / 10, answer.path);
    if (c->machine.driver && answer.value / 1000 > c->machine.driver / 1000)
        facts_add(&c->facts, "CUDA runtime", FACT_NOTE,
                  "newer than the driver: the program may not start");
}

static void check_launcher(struct checkup *c, const char *name)
{
    static const struct {
        const char *name, *hint;
    } launchers[] = {
#define LAUNCHER(name_, hint_) {name_, hint_},
#include "doctor/launchers.def"
    };
    const char *base = strrchr(name, '/');

    base = base ? base + 1 : name;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (!strcmp(launchers[i].name, base))
            facts_add(&c->facts, "command", FACT_NOTE, "%s", launchers[i].hint);
}

static void check_command(struct checkup *c, const char *name)
{
    const struct command *command = &c->verdict.command;

    facts_add(&c->facts, "command", FACT_GOOD, "%.600s", command->via);
    check_launcher(c, name);
    if (command->preload && *command->preload)
        facts_add(&c->facts, "command", FACT_GOOD, "env sets LD_PRELOAD=%.200s",
                  command->preload);
}

static bool is_off(const char *option)
{
    return !strcmp(option, "off");
}

/* What a trace would lack, as far as the machine and the options decide. */
static void say_missing(struct checkup *c)
{
    const struct machine *m = &c->machine;
    struct facts *facts = &c->facts;

    if (is_off(c->options.timing))
        facts_add(facts, "not seen", FACT_GOOD, "GPU times: COMMTRACE_TIMING");
    else if (!m->driver)
        facts_add(facts, "not seen", FACT_NOTE, "GPU times: no driver");
    if (m->driver && !m->has_nvml)
        facts_add(facts, "not seen", FACT_NOTE,
                  "NVLinks: no libnvidia-ml.so.1");
    if (c->verdict.sight == SIGHT_YES && !*c->verdict.runtime)
        facts_add(facts, "not seen", FACT_NOTE,
                  "launches of CUDA graphs, unless the CUDA runtime is a "
                  "library when they happen");
    if (is_off(c->options.stacks))
        facts_add(facts, "not seen", FACT_GOOD,
                  "stacks of callers: COMMTRACE_STACKS");
    else if (!m->has_unwind)
        facts_add(facts, "not seen", FACT_NOTE,
                  "stacks of callers: no " UNW_LIBRARY);
}

/* What a trace would hold where NCCL's profiler alone tells of its calls. */
static void say_told(struct checkup *c)
{
    const bool kernels = !strcmp(c->options.profiler, "kernel");

    facts_add(&c->facts, "seen", FACT_GOOD,
              "calls as NCCL's profiler tells of them, with what NCCL "
              "chooses%s%s",
              kernels ? " and when kernels run" : "",
              c->machine.has_nvml ? "; links by NVML" : "");
    if (c->verdict.inside.unset)
        facts_add(&c->facts, "NCCL's profiler", FACT_NOTE,
                  "set " CT_NCCL_PROFILER_VARIABLE "=STATIC_PLUGIN, which "
                  "`commtrace run` does where the program itself has NCCL in "
                  "it: nothing is recorded without");
    facts_add(&c->facts, "not seen", FACT_NOTE,
              "results, reduction operators, callers, NCCL's log, calls that "
              "move nothing or are of one rank; before NCCL 2.28 streams, "
              "groups and times of calls%s",
              kernels ? "" : "; GPU times: COMMTRACE_PROFILER=kernel");
}

/* What a trace would hold, and what not. */
static void say_sight(struct checkup *c)
{
    const struct machine *m = &c->machine;
    bool times = m->driver && !is_off(c->options.timing);
    bool stacks = m->has_unwind && !is_off(c->options.stacks);

    if (c->verdict.inside.told) {
        say_told(c);
        return;
    }

    facts_add(&c->facts, "seen", FACT_GOOD,
              "NCCL calls, linked or found by dlsym, with their host "
              "times%s%s%s",
              times ? "; GPU times by events" : "",
              m->has_nvml ? "; links by NVML" : "",
              stacks ? "; stacks of callers by libunwind" : "");
    nccl_log_check(c->options.nccl_log, c->nccl_version, &c->facts);
    nccl_profiler_check(c->options.profiler, c->nccl_version, &c->facts);
    say_missing(c);
    facts_add(&c->facts, "not seen", FACT_GOOD,
              "kernels that communicate by themselves (NCCL's device API, "
              "NVSHMEM, custom all-reduces)");
}

static void judge(struct checkup *c, bool recorder_works)
{
    static const char *const words[] = {
        [SIGHT_YES] = "yes", [SIGHT_MAYBE] = "maybe", [SIGHT_NO] = "no"};
    struct verdict *v = &c->verdict;
    const char *why = NULL;

    if (!recorder_works)
        why = "the recorder cannot be loaded";
    else if (options_number(c->options.disable))
        why = "COMMTRACE_DISABLE is set";
    else if (c->places.nowhere)
        why = "there is nowhere to write traces to";
    if (why && v->sight != SIGHT_NO) {
        v->sight = SIGHT_NO;
        snprintf(v->why, sizeof v->why, "%s", why);
    }
    c->seen = words[v->sight];
}

static int print(const struct cli *cli, const struct checkup *c)
{
    static const char *const titles[] = {
        [SIGHT_YES] = "NCCL calls of this command would be recorded",
        [SIGHT_MAYBE] = "NCCL calls would be recorded if there are any",
        [SIGHT_NO] = "nothing would be recorded"};
    const struct verdict *v = &c->verdict;
    struct summary summary = {.seen = c->seen,
                              .how = c->has_command ? v->how : NULL,
                              .why = v->why,
                              .program = v->command.program,
                              .nccl = v->nccl,
                              .nccl_version = c->nccl_version,
                              .driver =
                                  c->machine.driver ? c->machine.driver : -1,
                              .runtime = c->runtime,
                              .gpus = c->machine.gpus,
                              .recorder = c->library,
                              .dir = c->places.dir,
                              .dir_free = c->places.dir_free,
                              .ring_bytes = c->places.ring_bytes,
                              .ring_free = c->places.ring_free};
    struct out *out = cli_out(cli);

    if (!out)
        return CLI_EXIT_INPUT;
    out_text(out, "command", "doctor");
    out_title(out, titles[v->sight], NULL);
    if (*v->why)
        out_say(out, 2, "%s.", v->why);
    out_fields(out, &table, &summary);
    facts_print(out, &c->facts);
    if (cli_done(cli, out))
        return CLI_EXIT_INPUT;
    return v->sight == SIGHT_NO ? NOTHING_SEEN : 0;
}

int doctor_run(const struct cli *cli)
{
    static struct checkup c = {.nccl_version = -1, .runtime = -1};
    bool found = verdict_library(c.library, sizeof c.library) == 0;
    bool works;
    int error;

    c.has_command = cli->npaths > 0;
    if (c.has_command) {
        error =
            verdict_of(&c.verdict, cli->paths, found ? c.library : NULL, true);
        if (error)
            return cli_fail(cli, "%s: %s", c.verdict.command.program,
                            strerror(error));
        check_command(&c, cli->paths[0]);
    } else {
        c.verdict.sight = SIGHT_MAYBE;
    }
    check_nccl(&c);
    machine_check(&c.machine, c.verdict.driver, &c.facts);
    check_runtime(&c);
    works = machine_check_recorder(c.library, found, &c.facts) == 0;
    options_read(&c.options, &c.facts);
    if (cli->dir && !c.verdict.command.dir)
        c.options.dir = cli->dir;
    places_check(&c.places, &c.options, &c.facts);
    machine_check_environment(c.library, &c.facts);
    judge(&c, works);
    if (c.verdict.sight != SIGHT_NO)
        say_sight(&c);
    return print(cli, &c);
}
