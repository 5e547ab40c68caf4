#include "trace/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commtrace/ring.h"
#include "trace/arena.h"

#define MAX_RING_BYTES ((off_t)1 << 30)
#define MAX_PATH 4096

static bool is_locked(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return !fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK;
}

/* Read, not mapped: a file that shrinks under a mapping would kill us. */
static void *read_whole(int fd, size_t size)
{
    char *copy = ct_alloc(size, 1);
    size_t done = 0;
    ssize_t n;

    while (done < size &&
           (n = pread(fd, copy + done, size - done, (off_t)done)) > 0)
        done += (size_t)n;
    if (done == size)
        return copy;
    free(copy);
    return NULL;
}

static bool is_ring(const struct ct_ring_header *header, size_t size)
{
    uint64_t n = header->nslots;

    return !memcmp(header->magic, CT_RING_MAGIC, sizeof(header->magic)) &&
           header->version >= 1 && header->version <= CT_RING_VERSION && n &&
           !(n & (n - 1)) &&
           size >= CT_RING_HEADER_BYTES + n * CT_RING_SLOT_BYTES &&
           memchr(header->db_path, 0, sizeof(header->db_path)) &&
           memchr(header->uuid, 0, sizeof(header->uuid)) &&
           memchr(header->boot_id, 0, sizeof(header->boot_id));
}

static void accept_copy(struct ct_ring *ring, void *copy)
{
    struct ct_ring_header *header = copy;

    ring->copy = copy;
    ring->nslots = header->nslots;
    ring->version = header->version;
    ring->head = atomic_load_explicit(&header->head, memory_order_relaxed);
    ring->tail = atomic_load_explicit(&header->tail, memory_order_relaxed);
    ring->closed = atomic_load_explicit(&header->closed, memory_order_relaxed);
    ring->uuid = header->uuid;
    ring->boot_id = header->boot_id;
    ring->pid = header->pid;
    ring->rank = header->rank;
    ring->t0_ns = header->t0_ns;
    ring->t0_real_ns = header->t0_real_ns;
    ring->db_path = header->db_path;
    ring->start_ticks = header->start_ticks;
}

bool ct_ring_adopt(struct ct_ring *ring, void *copy, size_t size)
{
    if (size >= CT_RING_HEADER_BYTES && is_ring(copy, size))
        accept_copy(ring, copy);
    else
        free(copy);
    return ring->copy != NULL;
}

static bool read_from(struct ct_ring *ring, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    void *copy = NULL;

    if (fd < 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            snprintf(ring->refused, sizeof(ring->refused), "%s: %s", path,
                     strerror(errno));
        return false;
    }
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) &&
        st.st_size >= CT_RING_HEADER_BYTES && st.st_size <= MAX_RING_BYTES)
        copy = read_whole(fd, (size_t)st.st_size);
    if (copy && ct_ring_adopt(ring, copy, (size_t)st.st_size))
        ring->owner_lives = is_locked(fd);
    close(fd);
    return ring->copy != NULL;
}

void ct_ring_read(struct ct_ring *ring, const char *db_path, const char *path)
{
    char beside[MAX_PATH];
    size_t n = strlen(db_path);

    if (path && *path && read_from(ring, path))
        return;
    snprintf(beside, sizeof(beside), "%s.ring", db_path);
    if (read_from(ring, beside))
        return;
    if (n > 3 && n < MAX_PATH - 8 && !strcmp(db_path + n - 3, ".db")) {
        snprintf(beside, sizeof(beside), "%.*s.ring", (int)n - 3, db_path);
        read_from(ring, beside);
    }
}

void ct_ring_release(struct ct_ring *ring)
{
    free(ring->copy);
    ring->copy = NULL;
}

void *ct_ring_cut(const struct ct_ring *ring, uint64_t from, size_t *size_p)
{
    const char *slots = (const char *)ring->copy + CT_RING_HEADER_BYTES;
    struct ct_ring_header *header;
    uint64_t n = 1, p;
    char *copy;

    if (from > ring->head)
        from = ring->head;
    if (ring->head - from > ring->nslots)
        from = ring->head - ring->nslots;
    while (n < ring->head - from)
        n *= 2;
    *size_p = CT_RING_HEADER_BYTES + n * CT_RING_SLOT_BYTES;
    copy = ct_alloc(*size_p, 1);
    memcpy(copy, ring->copy, CT_RING_HEADER_BYTES);
    header = (void *)copy;
    header->nslots = (uint32_t)n;
    header->start_ticks = 0;
    for (p = from; p < ring->head; p++)
        memcpy(copy + CT_RING_HEADER_BYTES + (p & (n - 1)) * CT_RING_SLOT_BYTES,
               slots + (p & (ring->nslots - 1)) * CT_RING_SLOT_BYTES,
               CT_RING_SLOT_BYTES);
    return copy;
}

const struct ct_slot *ct_ring_slot(const struct ct_ring *ring,
                                   uint64_t position)
{
    const struct ct_slot *slots =
        (const void *)((const char *)ring->copy + CT_RING_HEADER_BYTES);
    const struct ct_slot *slot = &slots[position & (ring->nslots - 1)];
    uint64_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);

    /* A slot of zeros is one that was never used, not position 0. */
    return state >> 2 == position && state ? slot : NULL;
}

static bool ran_on_this_boot(const char *boot_id)
{
    char id[64] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, id, sizeof(id) - 1);

    if (fd >= 0)
        close(fd);
    id[n > 0 ? n : 0] = 0;
    id[strcspn(id, "\n")] = 0;
    return *id && !strcmp(id, boot_id);
}

/* Field 22 of /proc/PID/stat; 0: there is no such process. */
static uint64_t start_ticks_of(uint32_t pid)
{
    char name[32], stat[1024], *field;
    ssize_t n;
    int fd, i;

    snprintf(name, sizeof(name), "/proc/%u/stat", pid);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, stat, sizeof(stat) - 1);
    close(fd);
    stat[n > 0 ? n : 0] = 0;
    field = strrchr(stat, ')'); /* ends field 2, which may hold blanks */
    for (i = 2; field && i < 22; i++)
        field = strchr(field + 1, ' ');
    return field ? strtoull(field, NULL, 10) : 0;
}

bool ct_ring_alive(const struct ct_ring *ring)
{
    if (!ring->copy)
        return false;
    return ring->owner_lives ||
           (ran_on_this_boot(ring->boot_id) && ring->start_ticks &&
            start_ticks_of(ring->pid) == ring->start_ticks);
}
