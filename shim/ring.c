#include "ring.h"

#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static uint64_t power_of_two(uint64_t n)
{
    uint64_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

static size_t ring_bytes(uint64_t nslots)
{
    return CT_RING_HEADER_BYTES + nslots * CT_RING_SLOT_BYTES;
}

uint64_t ring_fit(const char *folder, uint64_t nslots)
{
    struct statvfs fs;
    nslots = power_of_two(nslots);
    if (statvfs(folder, &fs) != 0)
        return nslots;
    uint64_t room = (uint64_t)fs.f_blocks * fs.f_frsize / 64;
    while (nslots > 64 && ring_bytes(nslots) > room)
        nslots /= 2;
    return nslots;
}

/* A limit on file sizes answers with a signal that kills by default. */
static int allocate(int fd, size_t bytes)
{
    sigset_t limit, before, pending;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &limit, &before);
    int failed = posix_fallocate(fd, 0, (off_t)bytes);
    if (failed && !sigismember(&pending, SIGXFSZ)) {
        const struct timespec now = {0};
        sigtimedwait(&limit, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? -1 : 0;
}

static void lock_for_life(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    fcntl(fd, F_SETLK, &lock);
}

static int map_file(struct ring *ring, const char *path)
{
    int fd =
        descriptor_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    lock_for_life(fd);
    void *memory = MAP_FAILED;
    if (allocate(fd, ring->bytes) == 0)
        memory = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED) {
        unlink(path);
        descriptor_close(fd);
        return -1;
    }
    ring->header = memory;
    ring->fd = fd;
    snprintf(ring->path, sizeof(ring->path), "%s", path);
    return 0;
}

static int map_anonymous(struct ring *ring)
{
    void *memory = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    ring->header = memory;
    return 0;
}

static int map_somewhere(struct ring *ring, const char *first,
                         const char *second)
{
    if (map_file(ring, first) == 0)
        return 0;
    if (*second && map_file(ring, second) == 0)
        return 0;
    return map_anonymous(ring);
}

int ring_open(struct ring *ring, const char *first, const char *second,
              uint64_t nslots)
{
    int saved = errno;
    *ring = (struct ring){.fd = -1};
    nslots = power_of_two(nslots);
    ring->mask = nslots - 1;
    ring->bytes = ring_bytes(nslots);
    int failed = map_somewhere(ring, first, second);
    errno = saved;
    if (failed)
        return -1;
    memcpy(ring->header->magic, CT_RING_MAGIC, sizeof(ring->header->magic));
    ring->header->version = CT_RING_VERSION;
    ring->header->nslots = (uint32_t)nslots;
    ring->slots = (void *)((char *)ring->header + CT_RING_HEADER_BYTES);
    return 0;
}

void ring_close(struct ring *ring)
{
    ring_remove(ring);
    munmap(ring->header, ring->bytes);
    ring->header = NULL;
}

void ring_remove(struct ring *ring)
{
    if (*ring->path)
        unlink(ring->path);
    if (ring->fd >= 0)
        descriptor_close(ring->fd);
    ring->fd = -1;
}
