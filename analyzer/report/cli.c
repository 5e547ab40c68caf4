#include "report/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/parallel.h"

enum {
    KEY_JSON = 256,
    KEY_REFERENCE,
    KEY_DB,
    KEY_DIR,
    KEY_DEBUG_DIR,
    KEY_RANK,
    KEY_STEP,
    KEY_KIND,
    KEY_COMM,
    KEY_ROLE,
    KEY_IN_FLIGHT,
    KEY_LIMIT,
    KEY_THREADS,
    KEY_SHARE,
    KEY_STEPS,
    KEY_RANKS,
    KEY_FROM,
    KEY_TO,
    KEY_OUT = 'o'
};

/* By argp it is EINVAL: an option that is none. */
#define SAID ECANCELED /* a message has told what is wrong */

#define OPTION_JSON                                                \
    {                                                              \
        "json", KEY_JSON, NULL, 0, "print JSON instead of text", 0 \
    }
#define OPTION_REFERENCE                                                   \
    {                                                                      \
        "reference", KEY_REFERENCE, "DIR", 0,                              \
            "trace of a sweep on the same machines: what operations cost " \
            "there",                                                       \
            0                                                              \
    }

#define OPTION_THREADS                                                        \
    {                                                                         \
        "threads", KEY_THREADS, "N", 0,                                       \
            "read with so many threads (default: COMMTRACE_THREADS, else as " \
            "many as cores); the result does not depend on it",               \
            0                                                                 \
    }

#define OPTIONS_SELECTION                                                        \
    {"steps", KEY_STEPS, "A..B", 0, "count only these steps", 0},                \
        {"ranks", KEY_RANKS, "LIST", 0, "count only these ranks, as 0-7,12", 0}, \
        {"from",                                                                 \
         KEY_FROM,                                                               \
         "TIME",                                                                 \
         0,                                                                      \
         "count only what was called from then on: since the job's start, "      \
         "as 12.5, 300ms or 2m, or as 2026-11-30T01:25:44 (UTC)",                \
         0},                                                                     \
    {                                                                            \
        "to", KEY_TO, "TIME", 0, "count only what was called before that", 0     \
    }

const struct argp_option cli_report_options[] = {
    OPTION_JSON,
    OPTION_THREADS,
    OPTION_REFERENCE,
    {"db", KEY_DB, "FILE", 0, "write everything into one SQLite database, too",
     0},
    OPTIONS_SELECTION,
    {0}};

const struct argp_option cli_ops_options[] = {
    OPTION_JSON,
    OPTION_THREADS,
    {"rank", KEY_RANK, "N", 0, "only this rank of the job", 0},
    {"ranks", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"step", KEY_STEP, "N", 0, "only this step", 0},
    {"steps", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"kind", KEY_KIND, "NAME", 0,
     "only this operation, as all_reduce, with its other forms (bcast is "
     "broadcast), or only this function, as ncclBcast",
     0},
    {"comm", KEY_COMM, "ID", 0,
     "only this communicator: its number or uid in `commtrace groups`", 0},
    {"role", KEY_ROLE, "NAME", 0, "only this role: TP, PP, DP, control", 0},
    {"in-flight", KEY_IN_FLIGHT, NULL, 0, "only those that never finished", 0},
    {"limit", KEY_LIMIT, "N", 0, "at most N lines", 0},
    {0}};

const struct argp_option cli_stacks_options[] = {
    OPTION_JSON,
    OPTION_THREADS,
    {"rank", KEY_RANK, "N", 0, "only calls of this rank of the job", 0},
    {"limit", KEY_LIMIT, "N", 0, "at most N stacks", 0},
    {"debug-dir", KEY_DEBUG_DIR, "DIR", 0,
     "where separate debug files are (default: /usr/lib/debug)", 0},
    {0}};

const struct argp_option cli_plain_options[] = {
    OPTION_JSON, OPTION_THREADS, {0}};

const struct argp_option cli_model_options[] = {
    OPTION_JSON, OPTION_THREADS, OPTION_REFERENCE, {0}};

const struct argp_option cli_merge_options[] = {
    OPTION_JSON,
    OPTION_THREADS,
    {"db", KEY_DB, "FILE", 0, "the database to write (replaced)", 0},
    OPTIONS_SELECTION,
    {0}};

const struct argp_option cli_digest_options[] = {
    OPTION_JSON,
    OPTION_THREADS,
    {"out", KEY_OUT, "DIR", 0,
     "folder of the digests, made if it is not there (default: the current "
     "one)",
     0},
    {"share", KEY_SHARE, "K/N", 0,
     "only each N-th file, from the K-th on (K from 0): the share of one of N "
     "processes that are given the same files",
     0},
    {0}};

#define OPTION_DIR                                                \
    {                                                             \
        "dir", KEY_DIR, "DIR", 0,                                 \
            "folder of the traces (default: COMMTRACE_DIR, else " \
            "commtrace-<job>)",                                   \
            0                                                     \
    }

const struct argp_option cli_run_options[] = {OPTION_DIR, {0}};

const struct argp_option cli_doctor_options[] = {OPTION_JSON, OPTION_DIR, {0}};

int cli_fail(const struct cli *cli, const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fprintf(stderr, "%s: ", cli->command);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return CLI_EXIT_INPUT;
}

/* A decimal number from least on; -1 after a message. */
static int64_t parse_number(const struct cli *cli, const char *option,
                            const char *text, int least, int64_t most)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < least || value > most) {
        cli_fail(cli, "--%s: '%s' is not a number from %d on", option, text,
                 least);
        return -1;
    }
    return value;
}

static error_t set_number(const struct cli *cli, const char *option,
                          const char *text, int *value_p)
{
    *value_p = (int)parse_number(cli, option, text, 0, INT_MAX);
    return *value_p < 0 ? SAID : 0;
}

/* "K/N" with K below N. */
static error_t set_share(struct cli *cli, const char *text)
{
    char rest;

    if (sscanf(text, "%d/%d%c", &cli->share, &cli->shares, &rest) == 2 &&
        cli->share >= 0 && cli->share < cli->shares)
        return 0;
    cli_fail(cli, "--share: '%s' is not K/N with K from 0 to N-1", text);
    return SAID;
}

static error_t set_threads(const struct cli *cli, char *text)
{
    if (parse_number(cli, "threads", text, 1, INT_MAX) < 0)
        return SAID;
    return setenv(CT_THREADS_VARIABLE, text, 1) ? errno : 0;
}

static error_t set_path(struct cli *cli, char *path)
{
    cli->paths[cli->npaths++] = path;
    return 0;
}

static error_t parse_selection(int key, char *arg, struct cli *cli)
{
    struct selection *s = &cli->selection;
    int rc;

    switch (key) {
    case KEY_STEPS:
        rc = selection_set_steps(s, cli, arg);
        break;
    case KEY_RANKS:
        rc = selection_set_ranks(s, cli, arg);
        break;
    case KEY_FROM:
        rc = selection_set_moment(&s->from, cli, "from", arg);
        break;
    case KEY_TO:
        rc = selection_set_moment(&s->to, cli, "to", arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return rc < 0 ? SAID : 0;
}

static error_t parse_filter(int key, char *arg, struct cli *cli)
{
    switch (key) {
    case KEY_RANK:
        return set_number(cli, "rank", arg, &cli->rank);
    case KEY_STEP:
        return set_number(cli, "step", arg, &cli->step);
    case KEY_LIMIT:
        cli->limit = parse_number(cli, "limit", arg, 0, INT64_MAX);
        return cli->limit < 0 ? SAID : 0;
    case KEY_KIND:
        cli->kind = arg;
        return 0;
    case KEY_COMM:
        cli->comm = arg;
        return 0;
    case KEY_ROLE:
        cli->role = arg;
        return 0;
    case KEY_IN_FLIGHT:
        cli->in_flight = true;
        return 0;
    default:
        return parse_selection(key, arg, cli);
    }
}

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
    struct cli *cli = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        /* getopt has said what is wrong, which argp would do in other words. */
        state->err_stream = NULL;
        return 0;
    case KEY_JSON:
        cli->json = true;
        return 0;
    case KEY_THREADS:
        return set_threads(cli, arg);
    case KEY_REFERENCE:
        cli->reference = arg;
        return 0;
    case KEY_DB:
        cli->db = arg;
        return 0;
    case KEY_DEBUG_DIR:
        cli->debug_dir = arg;
        return 0;
    case KEY_DIR:
    case KEY_OUT:
        cli->dir = arg;
        return 0;
    case KEY_SHARE:
        return set_share(cli, arg);
    case ARGP_KEY_ARG:
        if (cli->words != CLI_READS)
            break;
        return set_path(cli, arg);
    case ARGP_KEY_ARGS:
        for (int i = state->next; i < state->argc; i++)
            set_path(cli, state->argv[i]);
        return 0;
    default:
        return parse_filter(key, arg, cli);
    }
    return ARGP_ERR_UNKNOWN; /* ARGP_KEY_ARGS comes with all of them */
}

int cli_run(const struct cli_command *command, int argc, char **argv)
{
    char name[64], doc[1200];
    struct argp argp = {
        command->options, parse_key, command->arguments, doc, NULL, NULL, NULL};
    struct cli cli = {.command = name,
                      .words = command->words,
                      .rank = -1,
                      .step = -1,
                      .limit = -1,
                      .shares = 1};
    int status = CLI_EXIT_INPUT;
    error_t rc;

    snprintf(name, sizeof name, "commtrace %s", command->name);
    snprintf(doc, sizeof doc, "%s\vExample:\n%s", command->meaning,
             command->example);
    cli.paths = calloc((size_t)argc + 1, sizeof *cli.paths);
    if (!cli.paths)
        return cli_fail(&cli, "out of memory");
    argv[0] = name;
    rc =
        argp_parse(&argp, argc, argv,
                   command->words == CLI_READS ? 0 : ARGP_IN_ORDER, NULL, &cli);
    if (rc == EINVAL)
        fprintf(stderr, "Try '%s --help'.\n", name);
    if (!rc) {
        if (cli.npaths || command->words == CLI_MAY_HAVE_COMMAND)
            status = command->run(&cli);
        else
            cli_fail(&cli, command->words == CLI_NEEDS_COMMAND
                               ? "no command given"
                               : "no folder or file of traces given");
    }
    selection_release(&cli.selection);
    free(cli.paths);
    return status;
}

struct out *cli_out(const struct cli *cli)
{
    struct out *out = out_open(stdout, cli->json ? OUT_AS_JSON : OUT_AS_TEXT);

    if (!out)
        cli_fail(cli, "out of memory");
    return out;
}

int cli_done(const struct cli *cli, struct out *out)
{
    if (out_close(out) < 0)
        return cli_fail(cli, "standard output: %s", strerror(errno));
    return 0;
}
