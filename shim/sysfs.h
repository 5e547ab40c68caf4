/*
 * Small facts from /sys, or from another root in its form. Whatever lies there
 * instead is taken for absent: what is no plain file is not read, and of a file
 * no more than a line.
 */
#ifndef SHIM_SYSFS_H
#define SHIM_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SYSFS_LINE = 256, SYSFS_PATH = 1024, SYSFS_NAME = 64 };

/* Copied; before anything is read. */
void sysfs_set_root(const char *root);

/* The first line, printable ASCII without blanks at its end. */
__attribute__((format(printf, 2, 3))) bool sysfs_line(char line[SYSFS_LINE],
                                                      const char *path, ...);

/* A file of one number; CT_NULL without. */
__attribute__((format(printf, 1, 2))) int64_t sysfs_number(const char *path,
                                                           ...);

/* What a link says, unresolved. */
__attribute__((format(printf, 2, 3))) bool sysfs_link(char target[SYSFS_PATH],
                                                      const char *path, ...);

struct sysfs_name {
    char text[SYSFS_NAME];
};

/* Names in a folder, in order of the numbers in them. -1 and errno when it
 * cannot be read; names too long are left out; *more is how many did not fit.
 */
int sysfs_list(const char *folder, struct sysfs_name *names, int room,
               int *more);

/* Replaces what is not printable ASCII. */
void sysfs_printable(char *text);

#endif
