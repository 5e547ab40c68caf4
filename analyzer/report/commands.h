/* What the subcommands do. Each returns the exit status. */
#ifndef COMMTRACE_REPORT_COMMANDS_H
#define COMMTRACE_REPORT_COMMANDS_H

#include "report/cli.h"

int report_run(const struct cli *cli);
int ops_run(const struct cli *cli);
int groups_run(const struct cli *cli);
int stacks_run(const struct cli *cli);
int model_run(const struct cli *cli);
int merge_run(const struct cli *cli);
int digest_run(const struct cli *cli);

#endif
