/*
 * One rank of the job. The layers of a stage (train_layers.c) run in the
 * pipeline's schedule (train_pipeline.c), then the gradients are summed
 * (train_gradients.c).
 */
#ifndef JOBS_TRAIN_H
#define JOBS_TRAIN_H

#include <stdio.h>
#include <time.h>

#include <cuda_runtime.h>
#include <nccl.h>

#include "channel.h"
#include "job.h"
#include "layout.h"

/* Constant data that is sent again and again, so that nothing but traffic
 * needs the device; neighbouring micro-batches differ. */
#define VARIANTS 4

struct options {
    struct layout layout;
    const char *order;
    int layers;
    int micro_batches;
    int batch;
    int seq;
    int hidden;
    ncclDataType_t type;
    int steps;
    long compute_us;
    const char *log_dir;
    int summary;
};

/* Which pattern a buffer holds; the variant is added. */
enum salt {
    TP_SALT = 0,
    FORWARD_SALT = 8,
    BACKWARD_SALT = 16,
    GRAD_SALT = 24,
    PARAMETER_SALT = 32,
    NORM_SALT = 40
};

struct train {
    struct options options;
    struct job job;
    ncclComm_t world;
    struct channel tp;
    struct channel pp;
    struct channel dp;
    struct channel model; /* all ranks that hold one copy of the model */
    FILE *log;
    cudaStream_t stream;

    int stages;
    int stage;
    int layers;        /* of this stage */
    size_t activation; /* elements: batch * seq * hidden */
    size_t parameters; /* elements of this rank */
    int last_step;

    void *tp_in[VARIANTS];
    void *tp_out;
    void *forward_out[VARIANTS];
    void *forward_in;
    void *backward_out[VARIANTS];
    void *backward_in;
    void *grad_in;
    void *grad_out;
    void *weights;
    void *norm_in;
    void *norm_out;
    cudaEvent_t begin; /* of a step */
    cudaEvent_t end;
    struct timespec forward_delay;
    struct timespec backward_delay;
};

/* From the command line; ends the process where they make no sense. */
void train_options(struct options *options, int argc, char **argv);
void train_check_options(struct options *options, int world);

/* Communicators, buffers, stream; and their end. */
void train_set_up(struct train *train);
void train_tear_down(struct train *train);

/* The layers of this stage on one micro-batch. */
void train_forward(struct train *train, int micro_batch);
void train_backward(struct train *train, int micro_batch);

/* All micro-batches of a step, one forward, one backward. */
void train_pipeline(struct train *train);

void train_broadcast_parameters(struct train *train);
void train_reduce_gradients(struct train *train);
void train_reduce_norm(struct train *train);

#endif
