/* Which files the command line names. */
#ifndef COMMTRACE_FILES_H
#define COMMTRACE_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct ct_file {
    char *path;
    bool named; /* by the user, not found in a folder */
};

struct ct_files {
    int n, capacity;
    struct ct_file *files;
};

/* Adds path, or each *.db in the folder path by name. Returns 0, or -1 with
 * "PATH: reason" in error. */
int ct_files_add(struct ct_files *files, const char *path, char *error,
                 size_t error_size);
void ct_files_release(struct ct_files *files);

#endif
