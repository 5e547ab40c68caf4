#include "trace/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trace/arena.h"

static void add(struct ct_files *files, char *path, bool named)
{
    files->files = ct_grow(files->files, &files->capacity, files->n,
                           sizeof(*files->files));
    files->files[files->n++] = (struct ct_file){path, named};
}

static char *copied(const char *text)
{
    size_t size = strlen(text) + 1;

    return memcpy(ct_alloc(size, 1), text, size);
}

static char *joined(const char *folder, const char *name)
{
    size_t n = strlen(folder), size = n + strlen(name) + 2;
    char *path = ct_alloc(size, 1);

    snprintf(path, size, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/",
             name);
    return path;
}

static int is_trace_name(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);

    return n > 3 && !strcmp(entry->d_name + n - 3, ".db");
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_folder(struct ct_files *files, const char *folder, char *error,
                      size_t error_size)
{
    struct dirent **entries;
    int i, n = scandir(folder, &entries, is_trace_name, by_name);

    if (n < 0) {
        snprintf(error, error_size, "%s: %s", folder, strerror(errno));
        return -1;
    }
    for (i = 0; i < n; i++) {
        add(files, joined(folder, entries[i]->d_name), false);
        free(entries[i]);
    }
    free(entries);
    if (n == 0) {
        snprintf(error, error_size, "%s: no trace file (*.db) in this folder",
                 folder);
        return -1;
    }
    return 0;
}

int ct_files_add(struct ct_files *files, const char *path, char *error,
                 size_t error_size)
{
    struct stat st;

    if (stat(path, &st)) {
        snprintf(error, error_size, "%s: %s", path, strerror(errno));
        return -1;
    }
    if (S_ISDIR(st.st_mode))
        return add_folder(files, path, error, error_size);
    add(files, copied(path), true);
    return 0;
}

void ct_files_release(struct ct_files *files)
{
    int i;

    for (i = 0; i < files->n; i++)
        free(files->files[i].path);
    free(files->files);
}
