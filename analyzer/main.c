/*
 * commtrace: explains the traces that libcommtrace.so recorded.
 */
#include <argp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "report/commands.h"
#include "run.h"

static const struct cli_command commands[] = {
    {"run", run_run, cli_run_options, "-- COMMAND [ARGUMENT...]",
     "Run a command with its NCCL calls recorded.",
     "  commtrace run -- torchrun --nproc-per-node 8 train.py\n"
     "  srun commtrace run --dir /scratch/trace -- python train.py",
     CLI_NEEDS_COMMAND},
    {"report", report_run, cli_report_options, "DIR|FILE...",
     "Say what a job's communication is for, costs, and should have cost.",
     "  commtrace report commtrace-4711\n"
     "  commtrace report --steps 100..199 --ranks 0-7 commtrace-4711\n"
     "  commtrace report --reference sweep-trace commtrace-4711\n"
     "  commtrace report --json commtrace-4711 | python3 -m json.tool",
     CLI_READS},
    {"ops", ops_run, cli_ops_options, "DIR|FILE...",
     "List operations, rank by rank, in the order of their calls.",
     "  commtrace ops --rank 3 --kind all_reduce --limit 20 commtrace-4711\n"
     "  commtrace ops --in-flight commtrace-4711",
     CLI_READS},
    {"groups", groups_run, cli_plain_options, "DIR|FILE...",
     "List communicators: their ranks, places, links and roles.",
     "  commtrace groups commtrace-4711", CLI_READS},
    {"stacks", stacks_run, cli_stacks_options, "DIR|FILE...",
     "Say which code calls NCCL, worst first, by its stacks.",
     "  commtrace stacks --limit 5 commtrace-4711\n"
     "  commtrace stacks --json --rank 0 commtrace-4711",
     CLI_READS},
    {"model", model_run, cli_model_options, "DIR|FILE...",
     "Fit T = alpha + S / bandwidth; show observed beside predicted.",
     "  commtrace model commtrace-4711\n"
     "  commtrace model --reference sweep-trace commtrace-4711",
     CLI_READS},
    {"merge", merge_run, cli_merge_options, "DIR|FILE...",
     "Write the traces of all ranks into one SQLite database, with views.",
     "  commtrace merge --db job.db commtrace-4711\n"
     "  sqlite3 job.db < samples/sql/tp_over_network.sql",
     CLI_READS},
    {"digest", digest_run, cli_digest_options, "DIR|FILE...",
     "Make small files of traces, which all commands read as well.",
     "  commtrace digest -o digests commtrace-4711\n"
     "  commtrace report digests",
     CLI_READS},
    {"doctor", doctor_run, cli_doctor_options, "[-- COMMAND [ARGUMENT...]]",
     "Say what would be recorded of a command, and what stands in the way.",
     "  commtrace doctor\n"
     "  commtrace doctor -- python train.py",
     CLI_MAY_HAVE_COMMAND},
};

#define NCOMMANDS (sizeof commands / sizeof commands[0])

const char *argp_program_version = "commtrace " COMMTRACE_VERSION;

static const struct cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < NCOMMANDS; i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    fprintf(stderr, "commtrace: unknown command '%s'; see commtrace --help\n",
            name);
    return CLI_EXIT_INPUT;
}

/* The first word that is no option ends the options of commtrace itself. */
static error_t parse_key(int key, char *arg, struct argp_state *state)
{
    const char **name_p = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->err_stream = NULL;
        return 0;
    case ARGP_KEY_ARG:
        *name_p = arg;
        state->next = state->argc;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void describe(char *doc, size_t size)
{
    size_t used;

    used = (size_t)snprintf(doc, size,
                            "Explain the NCCL traffic of a parallel job from "
                            "the traces of its processes.\vCommands:\n");
    for (size_t i = 0; i < NCOMMANDS; i++)
        used += (size_t)snprintf(doc + used, size - used, "  %-8s %s\n",
                                 commands[i].name, commands[i].meaning);
    snprintf(doc + used, size - used,
             "\nExample:\n"
             "  commtrace run --dir trace -- torchrun train.py\n"
             "  commtrace report trace\n"
             "\n`commtrace COMMAND --help` says more.");
}

/* `commtrace help`, `commtrace help report`. */
static int help(const struct argp *argp, char *program, const char *about)
{
    char *words[] = {program, (char *)(uintptr_t) "--help", NULL};
    const struct cli_command *command = about ? find_command(about) : NULL;

    if (command)
        return cli_run(command, 2, words);
    if (about)
        return unknown(about);
    return argp_parse(argp, 2, words, 0, NULL, NULL);
}

int main(int argc, char **argv)
{
    char doc[2000];
    const struct argp argp = {NULL, parse_key, "COMMAND DIR|FILE...", doc, NULL,
                              NULL, NULL};
    const struct cli_command *command;
    const char *name = NULL;
    int at = 1;

    describe(doc, sizeof doc);
    argp_err_exit_status = CLI_EXIT_INPUT;
    if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &name)) {
        fputs("Try 'commtrace --help'.\n", stderr);
        return CLI_EXIT_INPUT;
    }
    if (!name) {
        fputs("commtrace: no command given; see commtrace --help\n", stderr);
        return CLI_EXIT_INPUT;
    }
    while (argv[at] != name)
        at++;
    command = find_command(name);
    if (!command && !strcmp(name, "help"))
        return help(&argp, argv[0], argv[at + 1]);
    if (!command)
        return unknown(name);
    return cli_run(command, argc - at, argv + at);
}
