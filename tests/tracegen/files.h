/*
 * The files of a job's ranks, written in portions, so that memory does not grow
 * with the length of the job. Threads write files side by side, each file by
 * one of them at a time; a file is open only while a portion is added to it.
 */
#ifndef TRACEGEN_FILES_H
#define TRACEGEN_FILES_H

#include <stdbool.h>

struct simulation;
struct files;

/* NULL, and a line on stderr, when it cannot be. */
struct files *files_begin(struct simulation *s);

/* Writes what the ranks have recorded, once that is much, and forgets it. */
void files_add(struct files *files);

/* Writes the rest and frees files; -1: something could not be written. */
int files_end(struct files *files);

#endif
