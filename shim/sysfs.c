#include "sysfs.h"

#include "rows.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a folder no more entries are looked at. */
enum { ENTRIES = 4096 };

static char root[SYSFS_PATH / 2] = "/sys";

void sysfs_set_root(const char *path)
{
    if (*path)
        snprintf(root, sizeof(root), "%s", path);
}

static bool set_path(char *full, const char *path, va_list rest)
{
    int n = snprintf(full, SYSFS_PATH, "%s/", root);
    int more = vsnprintf(full + n, SYSFS_PATH - (size_t)n, path, rest);
    return more >= 0 && n + more < SYSFS_PATH;
}

void sysfs_printable(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

static void tidy(char *line)
{
    line[strcspn(line, "\n")] = 0;
    size_t n = strlen(line);
    while (n && line[n - 1] == ' ')
        line[--n] = 0;
    sysfs_printable(line);
}

/* The program may close all that is open, and get the number for a file of its
 * own: which is neither read from its place nor closed. */
static bool is_still(int fd, const struct stat *ours)
{
    struct stat now;
    return fstat(fd, &now) == 0 && now.st_dev == ours->st_dev &&
           now.st_ino == ours->st_ino;
}

static ssize_t read_start(const char *path, char *text, size_t size)
{
    struct stat st;
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0)
        return -1;
    if (S_ISREG(st.st_mode))
        n = pread(fd, text, size, 0);
    if (is_still(fd, &st))
        close(fd);
    return n;
}

static bool read_line(char *line, const char *path, va_list rest)
{
    char full[SYSFS_PATH];
    if (!set_path(full, path, rest))
        return false;
    ssize_t n = read_start(full, line, SYSFS_LINE - 1);
    line[n > 0 ? n : 0] = 0;
    tidy(line);
    return *line != 0;
}

bool sysfs_line(char line[SYSFS_LINE], const char *path, ...)
{
    va_list rest;
    va_start(rest, path);
    bool found = read_line(line, path, rest);
    va_end(rest);
    return found;
}

int64_t sysfs_number(const char *path, ...)
{
    char line[SYSFS_LINE], *end;
    va_list rest;
    va_start(rest, path);
    bool found = read_line(line, path, rest);
    va_end(rest);
    errno = 0;
    long long number = found ? strtoll(line, &end, 10) : 0;
    return found && end != line && !*end && !errno ? number : CT_NULL;
}

bool sysfs_link(char target[SYSFS_PATH], const char *path, ...)
{
    char full[SYSFS_PATH];
    va_list rest;
    va_start(rest, path);
    bool fits = set_path(full, path, rest);
    va_end(rest);
    ssize_t n = fits ? readlink(full, target, SYSFS_PATH - 1) : -1;
    target[n > 0 ? n : 0] = 0;
    return n > 0;
}

static int by_number(const void *a, const void *b)
{
    const struct sysfs_name *left = a, *right = b;
    return strverscmp(left->text, right->text);
}

int sysfs_list(const char *folder, struct sysfs_name *names, int room,
               int *more)
{
    char full[SYSFS_PATH];
    struct stat st;
    int n = 0;
    *more = 0;
    snprintf(full, sizeof(full), "%s/%s", root, folder);
    DIR *dir = opendir(full);
    if (!dir || fstat(dirfd(dir), &st) != 0)
        return -1;
    const struct dirent *entry;
    for (int i = 0; i < ENTRIES && (entry = readdir(dir)); i++) {
        size_t size = strlen(entry->d_name) + 1;
        if (*entry->d_name == '.' || size > SYSFS_NAME)
            continue;
        if (n < room)
            memcpy(names[n++].text, entry->d_name, size);
        else
            ++*more;
    }
    if (is_still(dirfd(dir), &st))
        closedir(dir);
    qsort(names, (size_t)n, sizeof(*names), by_number);
    return n;
}
