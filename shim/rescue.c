#include "rescue.h"

#include "clock.h"
#include "commtrace/ring.h"
#include "descriptor.h"
#include "nccl_file.h"
#include "process.h"
#include "writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool read_header(int fd, struct ct_ring_header *header)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
           st.st_uid == geteuid() && st.st_nlink == 1 &&
           pread(fd, header, sizeof(*header), 0) == (ssize_t)sizeof(*header) &&
           !memcmp(header->magic, CT_RING_MAGIC, sizeof(header->magic)) &&
           header->version >= 1 && header->version <= CT_RING_VERSION &&
           memchr(header->db_path, 0, sizeof(header->db_path)) &&
           memchr(header->boot_id, 0, sizeof(header->boot_id));
}

/* An owner holds a lock on its ring for life, which is seen from every pid
 * name space; the process table is asked as well, for programs that close all
 * their files. */
static bool is_orphan(int fd, const struct ct_ring_header *header)
{

    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char boot_id[40];
    if (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
        return false;
    process_boot_id(boot_id, sizeof(boot_id));
    if (strcmp(boot_id, header->boot_id) != 0 ||
        process_start_ticks(header->pid) != header->start_ticks)
        return true;
    /* Ours, but not the one in use: of a program that exec()ed into this. */
    return header->pid == (uint32_t)getpid();
}

static bool copy(int from, int to)
{
    static char block[16384];
    ssize_t n;
    off_t at = 0;
    while ((n = pread(from, block, sizeof(block), at)) > 0) {
        if (write(to, block, (size_t)n) != n)
            return false;
        at += n;
    }
    return n == 0;
}

static int create(const char *path)
{
    return descriptor_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW,
                           0600);
}

static bool make_folder_of(const char *path)
{
    char folder[2048];
    const char *end = strrchr(path, '/');
    snprintf(folder, sizeof(folder), "%.*s", end ? (int)(end - path) : 0, path);
    return *folder && writer_make_folder(folder) == 0;
}

/* True: the ring need not stay where it is. */
static bool move(int fd, const struct ct_ring_header *header)
{
    char target[2100], part[2140];
    snprintf(target, sizeof(target), "%s.ring", header->db_path);
    snprintf(part, sizeof(part), "%s.%d.part", target, (int)getpid());
    int to = create(part);
    if (to < 0 && errno == ENOENT) {
        if (atomic_load(&header->tail) > 0)
            return true; /* the trace has been deleted meanwhile */
        /* Its process died before it made the folder. */
        if (make_folder_of(header->db_path))
            to = create(part);
    }
    if (to < 0)
        return false;
    bool done = copy(fd, to);
    done = descriptor_close(to) == 0 && done && rename(part, target) == 0;
    if (!done)
        unlink(part);
    return done;
}

static bool is_still(int fd, const char *path)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

static void rescue(const char *path)
{
    struct ct_ring_header header;
    int fd = descriptor_open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return;
    /* One mover at a time; a dead one leaves the ring to the next. */
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_still(fd, path) &&
        read_header(fd, &header) && is_orphan(fd, &header) &&
        (atomic_load(&header.closed) || move(fd, &header)))
        unlink(path);
    descriptor_close(fd);
}

void rescue_set_aside(const char *path)
{
    char aside[160];
    snprintf(aside, sizeof(aside), "%s.%llx", path,
             (unsigned long long)clock_ns());
    rename(path, aside);
}

void rescue_rings(const char *own)
{
    char prefix[64];
    snprintf(prefix, sizeof(prefix), "commtrace.%u.", (unsigned)geteuid());
    DIR *shm = opendir(PROCESS_SHM);
    if (!shm)
        return;
    struct dirent *entry;
    while ((entry = readdir(shm))) {
        char path[320];
        snprintf(path, sizeof(path), PROCESS_SHM "/%s", entry->d_name);
        if (!strncmp(entry->d_name, prefix, strlen(prefix)) &&
            strcmp(path, own) != 0 && !nccl_file_sweep(entry->d_name))
            rescue(path);
    }
    closedir(shm);
}
