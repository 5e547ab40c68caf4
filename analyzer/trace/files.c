#include "trace/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trace/arena.h"
#include "trace/digest.h"
#include "trace/ring.h"
#include "trace/unstored.h"

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

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n > m && !strcmp(name + n - m, end);
}

static int is_trace_name(const struct dirent *entry)
{
    return ends_in(entry->d_name, ".db") ||
           ends_in(entry->d_name, ".db" CT_DIGEST_SUFFIX);
}

/* Length of the name of the trace that name is, or is a digest of. */
static size_t trace_length(const char *name)
{
    return strlen(name) -
           (ends_in(name, CT_DIGEST_SUFFIX) ? strlen(CT_DIGEST_SUFFIX) : 0);
}

/* Digests come in the order of their traces, behind those. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    const size_t n = trace_length((*a)->d_name), m = trace_length((*b)->d_name);
    const int order = memcmp((*a)->d_name, (*b)->d_name, n < m ? n : m);

    if (order || n != m)
        return order ? order : n < m ? -1 : 1;
    return strcmp((*a)->d_name, (*b)->d_name);
}

struct folder {
    struct ct_files *files;
    const char *path;
};

static bool is_listed(const struct ct_files *files, const char *path)
{
    int i;

    for (i = 0; i < files->n && strcmp(files->files[i].path, path) != 0; i++)
        ;
    return i < files->n;
}

/* path is malloc()ed. */
static void add_if_unstored(struct ct_files *files, char *path)
{
    struct ct_ring ring = {0};
    struct stat st;

    if (stat(path, &st) && !is_listed(files, path))
        ct_unstored_read(&ring, path);
    if (ring.copy)
        add(files, path, false);
    else
        free(path);
    ct_ring_release(&ring);
}

static void add_unstored(void *context, const char *name)
{
    const struct folder *folder = context;

    add_if_unstored(folder->files, joined(folder->path, name));
}

static int is_moved_ring(const struct dirent *entry)
{
    return ends_in(entry->d_name, ".db.ring");
}

/* Rings without a database, still where they were written or beside where it
 * would be: in the order in which they may be moved while we look. */
static void add_rings(struct ct_files *files, const char *path)
{
    struct folder folder = {files, path};
    struct dirent **entries;
    int i, n;

    ct_unstored_each(path, add_unstored, &folder);
    n = scandir(path, &entries, is_moved_ring, by_name);
    for (i = 0; i < n; i++) {
        char *name = entries[i]->d_name;

        name[strlen(name) - strlen(".ring")] = 0;
        add_unstored(&folder, name);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

static int add_folder(struct ct_files *files, const char *folder, char *error,
                      size_t error_size)
{
    struct dirent **entries;
    int i, before = files->n;
    int n = scandir(folder, &entries, is_trace_name, by_name);

    if (n < 0) {
        snprintf(error, error_size, "%s: %s", folder, strerror(errno));
        return -1;
    }
    for (i = 0; i < n; i++) {
        add(files, joined(folder, entries[i]->d_name), false);
        free(entries[i]);
    }
    free(entries);
    add_rings(files, folder);
    if (files->n == before) {
        snprintf(error, error_size, "%s: no trace file (*.db) in this folder",
                 folder);
        return -1;
    }
    return 0;
}

int ct_files_add(struct ct_files *files, const char *path, char *error,
                 size_t error_size)
{
    int why, before = files->n;
    struct stat st;

    if (stat(path, &st)) {
        why = errno;
        if (why == ENOENT && ends_in(path, ".db"))
            add_if_unstored(files, copied(path));
        else if (why == ENOENT)
            add_rings(files, path);
        if (files->n > before)
            return 0;
        errno = why;
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
