#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_FREE = STDERR_FILENO + 1, HIGHEST = 1024, KEPT_ABOVE = 32 };
enum { ENOUGH = 64 };

static struct {
    pthread_mutex_t lock;
    struct known {
        int fd; /* 0: free */
        bool sqlite;
        dev_t dev;
        ino_t ino;
    } known[DESCRIPTORS];
} ours = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Leaves the topmost numbers to those who look for the end. */
static int high_number(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return FIRST_FREE;
    int end = limit.rlim_cur < HIGHEST ? (int)limit.rlim_cur : HIGHEST;
    return end - KEPT_ABOVE > FIRST_FREE ? end - KEPT_ABOVE : FIRST_FREE;
}

static int move_up(int low)
{
    int fd = fcntl(low, F_DUPFD_CLOEXEC, high_number());
    if (fd < 0)
        fd = fcntl(low, F_DUPFD_CLOEXEC, FIRST_FREE);
    if (fd < 0 && low >= FIRST_FREE)
        return low;
    int why = errno;
    close(low);
    errno = why;
    return fd;
}

static struct known *find(int fd)
{
    for (int i = 0; i < DESCRIPTORS; i++)
        if (ours.known[i].fd == fd)
            return &ours.known[i];
    return NULL;
}

static struct known *find_room(void)
{
    int i = 0;
    while (i < DESCRIPTORS && ours.known[i].fd)
        i++;
    return i < DESCRIPTORS ? &ours.known[i] : NULL;
}

/* The number of one that was taken away may come to us again: not while its
 * owner has still to close it. */
static int evade(int fd)
{
    while (fd >= 0 && find(fd)) {
        int next = fcntl(fd, F_DUPFD_CLOEXEC, fd + 1);
        int why = errno;
        close(fd);
        errno = why;
        fd = next;
    }
    return fd;
}

static bool remember(int fd, bool sqlite)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return false;
    struct known *known = find_room();
    if (known)
        *known = (struct known){fd, sqlite, st.st_dev, st.st_ino};
    else
        errno = EMFILE;
    return known != NULL;
}

static int enlist(int fd, bool sqlite)
{
    fd = evade(fd);
    if (fd < 0 || remember(fd, sqlite))
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static int open_high(const char *path, int flags, mode_t mode, bool sqlite)
{
    int fd = open(path, flags | O_CLOEXEC, mode);
    /* What others find by its name, whatever the program's umask takes. */
    if (fd >= 0 && !sqlite && flags & O_CREAT)
        fchmod(fd, mode);
    if (fd >= 0)
        fd = move_up(fd);
    if (fd < 0)
        return -1;
    pthread_mutex_lock(&ours.lock);
    fd = enlist(fd, sqlite);
    pthread_mutex_unlock(&ours.lock);
    return fd;
}

int descriptor_open(const char *path, int flags, mode_t mode)
{
    return open_high(path, flags, mode, false);
}

/* The file that we opened, and not one that has its number now. */
static bool is_still(const struct known *known, struct stat *st)
{
    return fstat(known->fd, st) == 0 && st->st_dev == known->dev &&
           st->st_ino == known->ino;
}

bool descriptor_is_ours(int fd)
{
    struct stat st;
    pthread_mutex_lock(&ours.lock);
    const struct known *known = find(fd);
    bool is_ours = known && is_still(known, &st);
    pthread_mutex_unlock(&ours.lock);
    if (!is_ours)
        errno = EBADF;
    return is_ours;
}

bool descriptor_sqlite_robbed(void)
{
    bool robbed = false;
    pthread_mutex_lock(&ours.lock);
    for (int i = 0; i < DESCRIPTORS; i++) {
        const struct known *known = &ours.known[i];
        struct stat st;
        robbed |= known->fd && known->sqlite && !is_still(known, &st);
    }
    pthread_mutex_unlock(&ours.lock);
    return robbed;
}

bool descriptor_sqlite_removed(void)
{
    bool removed = false;
    pthread_mutex_lock(&ours.lock);
    for (int i = 0; i < DESCRIPTORS; i++) {
        const struct known *known = &ours.known[i];
        struct stat st;
        removed |= known->fd && known->sqlite && is_still(known, &st) &&
                   st.st_nlink == 0;
    }
    pthread_mutex_unlock(&ours.lock);
    return removed;
}

bool descriptor_has_room(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= ENOUGH;
}

int descriptor_close(int fd)
{
    bool is_ours = descriptor_is_ours(fd);
    pthread_mutex_lock(&ours.lock);
    struct known *known = find(fd);
    if (known)
        known->fd = 0;
    pthread_mutex_unlock(&ours.lock);
    return is_ours ? close(fd) : 0;
}

static int guarded_open(const char *path, int flags, int mode)
{
    return open_high(path, flags, (mode_t)mode, true);
}

static int guarded_fstat(int fd, struct stat *st)
{
    return descriptor_is_ours(fd) ? fstat(fd, st) : -1;
}

static int guarded_ftruncate(int fd, off_t size)
{
    return descriptor_is_ours(fd) ? ftruncate(fd, size) : -1;
}

/* SQLite asks for nothing but locks. */
static int guarded_fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *lock = va_arg(args, void *);
    va_end(args);
    return descriptor_is_ours(fd) ? fcntl(fd, command, lock) : -1;
}

static ssize_t guarded_read(int fd, void *to, size_t n)
{
    return descriptor_is_ours(fd) ? read(fd, to, n) : -1;
}

static ssize_t guarded_pread(int fd, void *to, size_t n, off_t at)
{
    return descriptor_is_ours(fd) ? pread(fd, to, n, at) : -1;
}

static ssize_t guarded_write(int fd, const void *from, size_t n)
{
    return descriptor_is_ours(fd) ? write(fd, from, n) : -1;
}

static ssize_t guarded_pwrite(int fd, const void *from, size_t n, off_t at)
{
    return descriptor_is_ours(fd) ? pwrite(fd, from, n, at) : -1;
}

static int guarded_fallocate(int fd, off_t at, off_t n)
{
    return descriptor_is_ours(fd) ? posix_fallocate(fd, at, n) : EBADF;
}

static int guarded_fchmod(int fd, mode_t mode)
{
    return descriptor_is_ours(fd) ? fchmod(fd, mode) : -1;
}

static int guarded_fchown(int fd, uid_t user, gid_t group)
{
    return descriptor_is_ours(fd) ? fchown(fd, user, group) : -1;
}

static void *guarded_mmap(void *at, size_t n, int protection, int flags, int fd,
                          off_t from)
{
    return descriptor_is_ours(fd) ? mmap(at, n, protection, flags, fd, from)
                                  : MAP_FAILED;
}

void descriptor_guard_sqlite(void)
{
#define GUARD(name_, function_)                 \
    {                                           \
        name_, (sqlite3_syscall_ptr)(function_) \
    }
    static const struct {
        const char *name;
        sqlite3_syscall_ptr function;
    } calls[] = {
        GUARD("open", guarded_open),
        GUARD("close", descriptor_close),
        GUARD("fstat", guarded_fstat),
        GUARD("ftruncate", guarded_ftruncate),
        GUARD("fcntl", guarded_fcntl),
        GUARD("read", guarded_read),
        GUARD("pread", guarded_pread),
        GUARD("pread64", guarded_pread),
        GUARD("write", guarded_write),
        GUARD("pwrite", guarded_pwrite),
        GUARD("pwrite64", guarded_pwrite),
        GUARD("fallocate", guarded_fallocate),
        GUARD("fchmod", guarded_fchmod),
        GUARD("fchown", guarded_fchown),
        GUARD("mmap", guarded_mmap),
    };
#undef GUARD
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    if (!vfs || vfs->iVersion < 3)
        return;
    /* SQLite ignores the names that it was built without. */
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
        vfs->xSetSystemCall(vfs, calls[i].name, calls[i].function);
}
