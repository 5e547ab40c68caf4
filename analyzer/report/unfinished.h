/* The file that is being written when the user ends the program. */
#ifndef COMMTRACE_REPORT_UNFINISHED_H
#define COMMTRACE_REPORT_UNFINISHED_H

/* From begin to end, SIGINT, SIGTERM and SIGHUP remove path (shorter than 4,096
 * bytes) before they do what they do. One file at a time. */
void unfinished_begin(const char *path);
void unfinished_end(void);

#endif
