/*
 * What a command that takes long is doing: one line on the terminal, from two
 * seconds on, gone when it is done. Nothing where stderr is no terminal.
 */
#ifndef COMMTRACE_PROGRESS_H
#define COMMTRACE_PROGRESS_H

/* command leads the line: "commtrace report". In pairs, from one thread; a pair
 * inside another adds nothing. Between them nothing else may be written to the
 * terminal. */
void ct_progress_begin(const char *command);
void ct_progress_end(void);

/* What is being done now, "reading traces", of how many items; 0: not counted.
 * Outside of a pair nothing happens. */
void ct_progress_stage(const char *doing, int total);
/* One item is done. By any thread. */
void ct_progress_item(void);

#endif
