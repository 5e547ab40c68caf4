/*
 * job.db: the traces of all ranks and what was derived from them in one SQLite
 * database, made to be asked.
 */
#ifndef COMMTRACE_REPORT_JOBDB_H
#define COMMTRACE_REPORT_JOBDB_H

#include "report/view.h"

/* Writes path, replacing an older job.db but nothing else. Returns 0, or -1
 * after a message. */
int jobdb_write(const char *path, const struct view_input *input,
                const struct cli *cli);

#endif
