/* A file of ours for NCCL to write into: made, opened by NCCL, and no more
 * written to where that would do harm. */
#include "nccl_file_parts.h"

#include "descriptor.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a new file holds, so that NCCL's opening it, which empties it, is seen.
 * No line of NCCL's begins so. */
static const char untouched[] = "#\n";
enum { UNTOUCHED = sizeof(untouched) - 1 };

static const char is_limited[] = "the size of files is limited (ulimit -f)";

/* Whether who writes too long a file is killed. */
static bool has_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
           limit.rlim_cur != RLIM_INFINITY;
}

bool file_has_room(struct nccl_file *file)
{
    enum { SPARE = 4 };
    int spare[SPARE], n = 0;
    if (has_limit()) {
        file_give_up(file, is_limited);
        return false;
    }
    while (n < SPARE &&
           (spare[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    bool has = n == SPARE;
    while (n > 0)
        close(spare[--n]);
    if (!has)
        file_give_up(file, "too few files may be opened");
    return has;
}

bool file_is_reachable(const struct nccl_file *file)
{
    struct stat named;
    return lstat(file->path, &named) == 0 && named.st_ino == file->ino &&
           named.st_dev == file->dev &&
           faccessat(AT_FDCWD, file->path, W_OK, AT_EACCESS) == 0;
}

bool file_make(struct nccl_file *file)
{
    const struct process *process = nccl_logs.process;
    char path[sizeof(process->shm_ring) + 8];
    snprintf(path, sizeof(path), "%s.nccl%d", process->shm_ring,
             (int)(file - nccl_files));
    memcpy(file->path, path, sizeof(path));
    snprintf(file->text, sizeof(file->text), "NCCL_DEBUG_FILE=%s", path);
    unlink(file->path); /* of a program that exec()ed into this */
    file->fd = descriptor_open(file->path,
                               O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file->fd < 0) {
        file_give_up(file, "no file in " PROCESS_SHM ": %s", strerror(errno));
        return false;
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    fcntl(file->fd, F_SETLK, &lock);
    struct stat st = {0};
    fstat(file->fd, &st);
    file->dev = st.st_dev;
    file->ino = st.st_ino;
    bool has_room = write(file->fd, untouched, UNTOUCHED) == UNTOUCHED;
    if (has_room && file_is_reachable(file))
        return true;
    unlink(file->path);
    descriptor_close(file->fd);
    file_give_up(file, has_room ? "a file in " PROCESS_SHM
                                  " cannot be opened again"
                                : "no room in " PROCESS_SHM);
    return false;
}

void file_drop(struct nccl_file *file)
{
    publish_end(&file->variables);
    unlink(file->path);
    descriptor_close(file->fd);
    set_stage(file, NEW);
}

/* For each descriptor that NCCL has of our file. */
static void each_descriptor(const struct nccl_file *file,
                            void (*act)(int fd, int with), int with)
{
    DIR *all = opendir("/proc/self/fd");
    struct dirent *entry;
    struct stat st;
    while (all && (entry = readdir(all))) {
        int fd = atoi(entry->d_name);
        if (isdigit((unsigned char)*entry->d_name) && fd != file->fd &&
            fstat(fd, &st) == 0 && st.st_ino == file->ino &&
            st.st_dev == file->dev)
            act(fd, with);
    }
    if (all)
        closedir(all);
}

/* Which fopen does not see to. */
static void close_in_children(int fd, int unused)
{
    (void)unused;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void lead(int fd, int to)
{
    dup3(to, fd, O_CLOEXEC);
}

void file_silence(const struct nccl_file *file)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0)
        return;
    each_descriptor(file, lead, null);
    close(null);
}

/* Written and not read yet. */
static off_t waiting(const struct nccl_file *file)
{
    struct stat st;
    return descriptor_is_ours(file->fd) && fstat(file->fd, &st) == 0
               ? st.st_size - file->at
               : 0;
}

static void cut(struct nccl_file *file, const char *why)
{
    lock_take(&nccl_logs.lock);
    if (stage_of(file) == OURS && !is_full(file)) {
        file_silence(file);
        snprintf(file->why, sizeof(file->why), "it ends early: %s", why);
        /* Release: with the reason. */
        atomic_store_explicit(&file->is_full, true, memory_order_release);
    }
    lock_give(&nccl_logs.lock);
}

void file_heed_limit(struct nccl_file *file)
{
    if (stage_of(file) == OURS && !is_full(file) && has_limit())
        cut(file, is_limited);
}

bool file_is_long(struct nccl_file *file)
{
    enum { LONG = 1 << 18, MOST = 8 << 20 };
    off_t n = stage_of(file) == OURS ? waiting(file) : 0;
    if (n > MOST && !is_full(file))
        cut(file, "it could not be read in time");
    return n > LONG;
}

static bool is_opened(const struct nccl_file *file)
{
    char first = *untouched;
    struct stat st;
    return descriptor_is_ours(file->fd) && fstat(file->fd, &st) == 0 &&
           (st.st_size != UNTOUCHED ||
            (pread(file->fd, &first, 1, 0) == 1 && first != *untouched));
}

void file_look(struct nccl_file *file)
{
    if (stage_of(file) != MADE || !is_opened(file))
        return;
    publish_end(&file->variables);
    unlink(file->path);
    each_descriptor(file, close_in_children, 0);
    set_stage(file, OURS);
}

bool nccl_file_sweep(const char *name)
{
    unsigned uid, number;
    long long pid;
    unsigned long long ticks;
    char path[300];
    int end = 0;
    if (sscanf(name, "commtrace.%u.%lld.%llx.nccl%u%n", &uid, &pid, &ticks,
               &number, &end) != 4 ||
        name[end])
        return false;
    snprintf(path, sizeof(path), PROCESS_SHM "/%s", name);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = -1;
    unsigned long long now = process_start_ticks(pid);
    if ((now && now == ticks) ||
        (fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) < 0)
        return true;
    /* In another name space of pids it may live. */
    if (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK)
        unlink(path);
    close(fd);
    return true;
}
