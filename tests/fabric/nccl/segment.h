/*
 * The shared memory of one communicator: a seat per rank, and a pipe per
 * ordered pair of ranks.
 *
 * It is a System V segment, since that needs no file: neither a small
 * /dev/shm nor a file size limit of the job can break it, and the last rank to
 * attach marks it for removal, so that nothing outlives the job.
 */
#ifndef FABRIC_NCCL_SEGMENT_H
#define FABRIC_NCCL_SEGMENT_H

#include <stdatomic.h>
#include <stdint.h>

/* A rank's vote in its n-th split of the communicator. */
#define SEGMENT_BALLOTS 256

struct ballot {
    int color;
    int key;
};

/* Who sits there, as the others see it. */
struct peer {
    uint64_t host_id;
    int pid;
    int device; /* the rank's own number of it */
    int gpu;    /* the host's */
};

struct seat {
    _Atomic uint32_t bell;     /* a futex: counts what others did for us */
    _Atomic uint32_t sleepers; /* threads of this rank that wait for it */
    struct peer peer;
    _Atomic uint32_t voted;   /* splits this rank has voted in */
    _Atomic uint32_t counted; /* splits whose votes it has read */
    struct ballot ballot[SEGMENT_BALLOTS];
};

/* As NCCL's, a send is over without its receiver while it fits in here. */
#define PIPE_BYTES ((uint64_t)4 << 20)
#define PIPE_MESSAGES 128

struct envelope {
    uint64_t bytes;
    uint64_t at;      /* its first byte in the pipe's count */
    int64_t ready_ns; /* when all of it is over the link */
};

/* One writer, the source; one reader, the destination. Counts only grow. */
struct pipe {
    _Atomic uint64_t written;
    uint64_t restart; /* the writer's own: all before it has been read */
    _Atomic uint32_t sent;
    char writer_line[40];
    _Atomic uint64_t read;
    _Atomic int64_t taken_ns; /* when the reader made room */
    _Atomic uint32_t received;
    _Atomic uint32_t hungry; /* the writer wants to hear of room */
    char reader_line[40];
    struct envelope envelope[PIPE_MESSAGES];
    char pad[4096 - 128 - PIPE_MESSAGES * sizeof(struct envelope)];
    char data[PIPE_BYTES];
};

/* What a rank has put into another's windows and that one has not taken. One
 * writer, one reader; counts only grow. */
#define MAILBOX_BYTES ((uint64_t)1 << 20)

struct mailbox {
    _Atomic uint64_t written;
    char writer_line[56];
    _Atomic uint64_t read;
    _Atomic uint32_t hungry; /* the writer wants to hear of room */
    char reader_line[52];
    char pad[4096 - 128];
    char data[MAILBOX_BYTES];
};

struct segment {
    _Atomic uint64_t id;
    _Atomic int nranks;
    _Atomic int attached;
};

/* Takes the rank's seat; NULL with errno set, EEXIST for a clash of ids. */
struct segment *segment_attach(uint64_t id, int nranks, int rank,
                               const struct peer *peer);
void segment_detach(struct segment *segment);

struct seat *segment_seat(struct segment *segment, int rank);
struct pipe *segment_pipe(struct segment *segment, int src, int dst);
struct mailbox *segment_mailbox(struct segment *segment, int src, int dst);

/* To wait: read the bell, look whether there is something to do, sleep. */
uint32_t seat_listen(struct seat *seat);
void seat_sleep(struct seat *seat, uint32_t heard);
void seat_ring(struct seat *seat);
void segment_ring_all(struct segment *segment);

/* Removes what jobs left behind that were killed while they set up. */
void segment_sweep(void);

#endif
