/* `commtrace doctor`: what would be seen of a command, before it runs. */
#ifndef COMMTRACE_DOCTOR_DOCTOR_H
#define COMMTRACE_DOCTOR_DOCTOR_H

#include "report/cli.h"

int doctor_run(const struct cli *cli);

#endif
