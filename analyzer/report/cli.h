/*
 * The command line: every subcommand is one row of the table in main.c. Its
 * options are understood here, once for all commands.
 */
#ifndef COMMTRACE_REPORT_CLI_H
#define COMMTRACE_REPORT_CLI_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "report/out.h"
#include "report/selection.h"

#define CLI_EXIT_INPUT 2

/* What the words after the options are. */
enum cli_words {
    CLI_READS,         /* folders and files of traces, at least one */
    CLI_NEEDS_COMMAND, /* a command of its own */
    CLI_MAY_HAVE_COMMAND
};

struct cli {
    const char *command; /* "commtrace ops" */
    char **paths;        /* folders and files to read; `run`: the command */
    int npaths;
    enum cli_words words;
    bool json;
    const char *reference; /* NULL: none */
    const char *db;        /* job.db to write; NULL: none */
    const char *dir;       /* where traces or digests go; NULL: chosen */
    const char *debug_dir; /* of separate debug files; NULL: the usual one */
    int share, shares;     /* of the files of `digest` */
    /* Filters of `ops`; CT_NONE or NULL: all. */
    int rank, step;
    const char *kind, *comm, *role;
    bool in_flight;
    int64_t limit;              /* rows at most; negative: all */
    struct selection selection; /* of `report` and `merge` */
};

struct cli_command {
    const char *name;
    int (*run)(const struct cli *cli); /* the exit status */
    const struct argp_option *options;
    const char *arguments; /* after the options, in `--help` */
    const char *meaning;   /* one line */
    const char *example;   /* command lines with what they do */
    enum cli_words words;
};

extern const struct argp_option cli_report_options[], cli_ops_options[],
    cli_plain_options[], cli_model_options[], cli_merge_options[],
    cli_run_options[], cli_doctor_options[], cli_stacks_options[],
    cli_digest_options[];

/* Parses the words after the command's name and runs it. */
int cli_run(const struct cli_command *command, int argc, char **argv);

/* One line on stderr, "commtrace ops: ..."; returns CLI_EXIT_INPUT. */
__attribute__((format(printf, 2, 3))) int cli_fail(const struct cli *cli,
                                                   const char *format, ...);

/* stdout in the format that was asked for; NULL after a message. */
struct out *cli_out(const struct cli *cli);

/* Ends the report; returns the exit status. */
int cli_done(const struct cli *cli, struct out *out);

#endif
