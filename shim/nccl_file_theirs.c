/* The file that the user has NCCL write: which it is of what NCCL has open. */
#include "nccl_file_parts.h"

#include "descriptor.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether a path is what NCCL makes of `pattern`, where %h is a host's name in
 * NCCL's eyes and so anything. */
static bool is_expanded(const char *pattern, const char *path, long pid)
{
    while (*pattern) {
        if (pattern[0] != '%' || !pattern[1]) {
            if (*pattern++ != *path++)
                return false;
            continue;
        }
        char number[24] = "%";
        char kind = pattern[1];
        pattern += 2;
        if (kind == 'h') {
            for (; *path && *path != '/'; path++)
                if (is_expanded(pattern, path, pid))
                    return true;
            return is_expanded(pattern, path, pid);
        }
        if (kind == 'p')
            snprintf(number, sizeof(number), "%ld", pid);
        else if (kind != '%')
            snprintf(number, sizeof(number), "%%%c", kind);
        if (strncmp(path, number, strlen(number)) != 0)
            return false;
        path += strlen(number);
    }
    return !*path;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* NCCL's descriptor leads to its file, whatever was meant by the name. */
static bool open_theirs(struct nccl_file *file, const char *fd)
{
    char link[64], target[1024];
    struct stat st;
    snprintf(link, sizeof(link), "/proc/self/fd/%.20s", fd);
    ssize_t n = readlink(link, target, sizeof(target) - 1);
    if (n <= 0)
        return false;
    target[n] = 0;
    int mode = fcntl(atoi(fd), F_GETFL);
    if (!is_expanded(last_part(file->path), last_part(target),
                     (long)nccl_logs.process->pid) ||
        mode < 0 || (mode & O_ACCMODE) != O_WRONLY || stat(link, &st) != 0 ||
        !S_ISREG(st.st_mode))
        return false;
    file->fd = descriptor_open(link, O_RDONLY | O_NONBLOCK, 0);
    if (file->fd < 0)
        return false;
    snprintf(file->path, sizeof(file->path), "%s", target);
    return true;
}

void file_find_theirs(struct nccl_file *file)
{
    enum { MOST = 40 };
    DIR *all = opendir("/proc/self/fd");
    struct dirent *entry;
    bool found = false;
    while (all && !found && (entry = readdir(all)))
        found = isdigit((unsigned char)*entry->d_name) &&
                open_theirs(file, entry->d_name);
    if (all)
        closedir(all);
    if (found)
        set_stage(file, THEIRS);
    else if (++file->tries == MOST)
        file_give_up(file,
                     "NCCL_DEBUG_FILE=%s is set, and NCCL has not opened "
                     "such a file",
                     file->path);
}
