#include "nccl/segment.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The key's first byte says that a segment is the fabric's. */
#define KEY_TAG 0xfau
#define KEY_BITS 24
#define STALE_S 60
#define PAGE 4096u

static size_t seats_offset(void)
{
    return PAGE;
}

static size_t seat_stride(void)
{
    return (sizeof(struct seat) + 63) / 64 * 64;
}

static size_t pipes_offset(int nranks)
{
    size_t end = seats_offset() + (size_t)nranks * seat_stride();

    return (end + PAGE - 1) / PAGE * PAGE;
}

static size_t mailboxes_offset(int nranks)
{
    return pipes_offset(nranks) +
           (size_t)nranks * (size_t)nranks * sizeof(struct pipe);
}

static size_t segment_bytes(int nranks)
{
    return mailboxes_offset(nranks) +
           (size_t)nranks * (size_t)nranks * sizeof(struct mailbox);
}

struct seat *segment_seat(struct segment *segment, int rank)
{
    char *base = (char *)segment;

    return (struct seat *)(base + seats_offset() +
                           (size_t)rank * seat_stride());
}

struct pipe *segment_pipe(struct segment *segment, int src, int dst)
{
    char *base = (char *)segment;
    int nranks = atomic_load_explicit(&segment->nranks, memory_order_relaxed);
    size_t index = (size_t)src * (size_t)nranks + (size_t)dst;

    return (struct pipe *)(base + pipes_offset(nranks)) + index;
}

struct mailbox *segment_mailbox(struct segment *segment, int src, int dst)
{
    char *base = (char *)segment;
    int nranks = atomic_load_explicit(&segment->nranks, memory_order_relaxed);
    size_t index = (size_t)src * (size_t)nranks + (size_t)dst;

    return (struct mailbox *)(base + mailboxes_offset(nranks)) + index;
}

static key_t key_of(uint64_t id)
{
    uint32_t low = (uint32_t)(id ^ (id >> 32)) & ((1u << KEY_BITS) - 1);

    return (key_t)(KEY_TAG << KEY_BITS | low);
}

/* All ranks write the same; whoever comes second compares. */
static int agree(struct segment *segment, uint64_t id, int nranks)
{
    uint64_t no_id = 0;
    int none = 0;

    if (!atomic_compare_exchange_strong(&segment->id, &no_id, id) &&
        no_id != id)
        return -1;
    if (!atomic_compare_exchange_strong(&segment->nranks, &none, nranks) &&
        none != nranks)
        return -1;
    return 0;
}

struct segment *segment_attach(uint64_t id, int nranks, int rank,
                               const struct peer *peer)
{
    int shm = shmget(key_of(id), segment_bytes(nranks),
                     IPC_CREAT | SHM_NORESERVE | 0600);
    struct segment *segment;

    if (shm < 0)
        return NULL;
    segment = shmat(shm, NULL, 0);
    if (segment == (void *)-1)
        return NULL;
    if (agree(segment, id, nranks)) {
        shmdt(segment);
        errno = EEXIST;
        return NULL;
    }
    segment_seat(segment, rank)->peer = *peer;
    if (atomic_fetch_add(&segment->attached, 1) + 1 == nranks)
        shmctl(shm, IPC_RMID, NULL);
    segment_ring_all(segment);
    return segment;
}

void segment_detach(struct segment *segment)
{
    shmdt(segment);
}

uint32_t seat_listen(struct seat *seat)
{
    return atomic_load(&seat->bell);
}

/* Sleeper counts itself, then the kernel compares the bell; ringer raises the
 * bell, then looks for sleepers: in one total order, no ring is missed. */
void seat_sleep(struct seat *seat, uint32_t heard)
{
    atomic_fetch_add(&seat->sleepers, 1);
    syscall(SYS_futex, &seat->bell, FUTEX_WAIT, heard, NULL, NULL, 0);
    atomic_fetch_sub(&seat->sleepers, 1);
}

void seat_ring(struct seat *seat)
{
    atomic_fetch_add(&seat->bell, 1);
    if (atomic_load(&seat->sleepers))
        syscall(SYS_futex, &seat->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void segment_ring_all(struct segment *segment)
{
    int nranks = atomic_load(&segment->nranks);

    for (int i = 0; i < nranks; i++)
        seat_ring(segment_seat(segment, i));
}

static int is_stale(const struct shmid_ds *ds)
{
    time_t touched = ds->shm_ctime;

    if (touched < ds->shm_dtime)
        touched = ds->shm_dtime;
    return (uint32_t)ds->shm_perm.__key >> KEY_BITS == KEY_TAG &&
           !ds->shm_nattch && ds->shm_perm.uid == geteuid() &&
           time(NULL) - touched > STALE_S;
}

void segment_sweep(void)
{
    struct shmid_ds ds;
    int last = shmctl(0, SHM_INFO, &ds);

    for (int i = 0; i <= last; i++) {
        int shm = shmctl(i, SHM_STAT, &ds);

        if (shm >= 0 && is_stale(&ds))
            shmctl(shm, IPC_RMID, NULL);
    }
}
