/* NCCL's table of predictions for a communicator: T = latency + S / bandwidth
 * for each collective, algorithm and protocol. */
#ifndef FABRIC_NCCL_TUNING_TABLE_H
#define FABRIC_NCCL_TUNING_TABLE_H

#include "nccl/tuning.h"

struct ncclComm;

enum function {
    FUNCTION_BROADCAST,
    FUNCTION_REDUCE,
    FUNCTION_ALL_GATHER,
    FUNCTION_REDUCE_SCATTER,
    FUNCTION_ALL_REDUCE,
    FUNCTIONS
};

struct entry {
    double latency_us;
    double GBps; /* 0: not to be used */
};

struct entry tuning_entry(struct ncclComm *comm, enum function function,
                          enum algorithm algorithm, enum protocol protocol);
int tuning_threads(struct ncclComm *comm, enum algorithm algorithm,
                   enum protocol protocol);

/* Algorithms that the release's table has, from the first. */
int tuning_algorithms(void);

/* As the table calls them: Tree, Simple, AllReduce. */
const char *tuning_algorithm_name(enum algorithm algorithm);
const char *tuning_protocol_name(enum protocol protocol);
const char *tuning_function_name(enum function function);
enum function tuning_function(const struct op *op);

/* Prints the table, on the first rank. */
void tuning_announce(struct ncclComm *comm);

#endif
