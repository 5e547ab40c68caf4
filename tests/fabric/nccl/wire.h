/*
 * Messages between ranks, in real bytes and in the machine's time.
 *
 * Bytes move as fast as the host can; time is computed: a message is over
 * its link at max(start, link free) + bytes / bandwidth + alpha. A rank's own
 * time is handed from message to message, and only the end of an op sleeps
 * until it has come; so a busy host does not add its noise at every step.
 */
#ifndef FABRIC_NCCL_WIRE_H
#define FABRIC_NCCL_WIRE_H

#include <stddef.h>
#include <stdint.h>

struct ncclComm;

enum direction { WIRE_OUT, WIRE_IN };

struct message {
    int peer;
    enum direction direction;
    char *data;
    size_t bytes;

    /* The transfer's own. */
    size_t moved;
    int started;
    int waited;
    int refused;
    int64_t end_ns;
    struct message *next;
};

/* Books the link for a message: when its last byte has left; and has come. */
int64_t wire_book(struct ncclComm *comm, int peer, size_t bytes,
                  int64_t start_ns, int64_t *ready_ns);

/*
 * Moves all messages at once, those of one peer and direction in order.
 * *time_ns is their start, then the end of the last; -1 when aborted.
 */
int wire_transfer(struct ncclComm *comm, struct message *messages, int n,
                  int64_t *time_ns);

#endif
