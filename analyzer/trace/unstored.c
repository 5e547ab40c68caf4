#include "trace/unstored.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commtrace/ring.h"
#include "trace/arena.h"
#include "trace/ring.h"

#define SHM "/dev/shm"
#define PREFIX "commtrace."

/* Without links and the like where it exists, else as it is written. */
static void absolute(const char *path, char *name, size_t size)
{
    char real[PATH_MAX], here[PATH_MAX / 2];
    size_t n;

    if (realpath(path, real))
        snprintf(name, size, "%s", real);
    else if (*path == '/' || !getcwd(here, sizeof(here)))
        snprintf(name, size, "%s", path);
    else
        snprintf(name, size, "%s/%s", here, path);
    for (n = strlen(name); n > 1 && name[n - 1] == '/';)
        name[--n] = 0;
}

/* Anyone may leave a file in /dev/shm: those of the user count, and of the one
 * who owns the traces. */
static bool is_trusted(const struct stat *ring, const char *folder)
{
    struct stat st;

    return S_ISREG(ring->st_mode) &&
           (ring->st_uid == geteuid() ||
            (!stat(folder, &st) && st.st_uid == ring->st_uid));
}

static bool read_header(const char *path, const char *folder,
                        struct ct_ring_header *header)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    bool good;

    if (fd < 0)
        return false;
    good = !fstat(fd, &st) && is_trusted(&st, folder) &&
           pread(fd, header, sizeof(*header), 0) == (ssize_t)sizeof(*header) &&
           !memcmp(header->magic, CT_RING_MAGIC, sizeof(header->magic)) &&
           memchr(header->db_path, 0, sizeof(header->db_path));
    close(fd);
    return good;
}

static bool is_unstored(uint64_t head, uint64_t tail, bool closed)
{
    return head && !tail && !closed;
}

/* Name of the database in folder that the ring at path belongs to, if it has
 * stored nothing there; NULL: otherwise. */
static const char *name_in(const char *path, const char *folder,
                           struct ct_ring_header *header)
{
    char own[PATH_MAX];
    char *slash;

    if (!read_header(path, folder, header) ||
        !is_unstored(atomic_load(&header->head), atomic_load(&header->tail),
                     atomic_load(&header->closed)))
        return NULL;
    slash = strrchr(header->db_path, '/');
    if (!slash || slash == header->db_path)
        return NULL;
    *slash = 0;
    absolute(header->db_path, own, sizeof(own));
    return strcmp(own, folder) ? NULL : slash + 1;
}

struct wanted { /* the database that a ring is looked for */
    const char *name;
    struct ct_ring *ring;
};

static void each(const char *folder, const struct wanted *wanted,
                 void (*found)(void *context, const char *name), void *context)
{
    struct ct_ring_header *header = ct_alloc(1, sizeof(*header));
    char real[PATH_MAX], path[PATH_MAX];
    DIR *shm = opendir(SHM);
    struct dirent *entry;
    const char *name;

    absolute(folder, real, sizeof(real));
    while (shm && (entry = readdir(shm))) {
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        snprintf(path, sizeof(path), SHM "/%s", entry->d_name);
        name = name_in(path, real, header);
        if (name && found)
            found(context, name);
        if (name && wanted && !strcmp(name, wanted->name) &&
            !wanted->ring->copy)
            ct_ring_read(wanted->ring, "", path);
    }
    if (shm)
        closedir(shm);
    free(header);
}

void ct_unstored_each(const char *folder,
                      void (*found)(void *context, const char *name),
                      void *context)
{
    each(folder, NULL, found, context);
}

void ct_unstored_read(struct ct_ring *ring, const char *db_path)
{
    const char *slash = strrchr(db_path, '/');
    struct wanted wanted = {slash ? slash + 1 : db_path, ring};
    char folder[PATH_MAX];

    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - db_path) : 1,
             slash ? db_path : ".");
    ct_ring_read(ring, db_path, NULL);
    if (!ring->copy)
        each(*folder ? folder : "/", &wanted, NULL, NULL);
    if (!ring->copy) /* moved between the two looks */
        ct_ring_read(ring, db_path, NULL);
    if (ring->copy && !is_unstored(ring->head, ring->tail, ring->closed))
        ct_ring_release(ring);
}
