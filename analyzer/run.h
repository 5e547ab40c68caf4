/* `commtrace run`: a command with the recorder in front of it. */
#ifndef COMMTRACE_RUN_H
#define COMMTRACE_RUN_H

#include "report/cli.h"

int run_run(const struct cli *cli);

#endif
