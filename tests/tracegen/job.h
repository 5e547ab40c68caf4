/*
 * What the job's model and its parallelism are, beside the degrees and sizes
 * of struct options. Numbers of 0 and flags of 0 leave a thing out.
 */
#ifndef TRACEGEN_JOB_H
#define TRACEGEN_JOB_H

#include <stdbool.h>
#include <stdint.h>

struct options;

enum schedule {
    SCHEDULE_1F1B,
    SCHEDULE_GPIPE,
    SCHEDULE_INTERLEAVED,
    SCHEDULE_ZERO_BUBBLE
};

enum context { CONTEXT_RING, CONTEXT_ULYSSES, CONTEXT_GATHER };

#define MAX_COUNTS 64

struct counts {
    int n;
    uint64_t values[MAX_COUNTS];
};

struct job {
    int schedule, chunks; /* chunks of a stage, where interleaved */
    int zero;             /* stage of ZeRO; 3: FSDP */
    int shard;            /* of FSDP, ranks that share one copy; 0: all */
    int overlap;          /* gradients travel beside the backward pass */
    int gather_ahead;     /* ZeRO's parameters, beside the next forward pass */
    int cp;               /* ranks that share a sequence */
    int twin;             /* all-gathers have a communicator of their own */
    int context;          /* how attention reaches over CP ranks */
    int experts;          /* ranks over which experts lie */
    int moe_every;        /* of the layers is one with experts */
    int native_alltoall;  /* ncclAlltoAll, not sends and recvs */
    int initialise;       /* objects and seeds are exchanged before the start */
    int batch;            /* is read by one rank of TP and broadcast */
    int over_world;  /* messages of the pipeline use the world's communicator */
    int coalesce;    /* buckets that are ready at once are one launch */
    int early_roots; /* of broadcasts that fit into buffers */
    int sequence, recompute;
    int vocabulary;  /* embedding and loss are tensor parallel as well */
    int tie;         /* first and last stage share the embedding */
    int norm_model;  /* the norm is summed over TP x PP, not over all ranks */
    int scalars;     /* all-reduces of one element at the end of a step */
    int loss;        /* is averaged over DP by the last stage */
    int own_streams; /* of each kind of communicator */
    int share_world; /* what spans all ranks needs no communicator of its own */
    int warm_up;     /* first steps, which compute for long */
    int checkpoint_every, ragged_every; /* steps */
    int eval_micro_batches;             /* 0: as many as a step */
    int serve;                          /* inference: forward passes */
    struct counts buckets;              /* elements; none: see options.bucket */
    struct counts buffers; /* DDP's, float32 but the last of several: int64 */
};

/* What is not asked for. */
extern const struct job job_default;

/* Takes an option; false: it is none of the job's. */
bool job_set(struct options *o, const char *name, const char *value);

/* Once all options are known; NULL, or why there cannot be such a job. */
const char *job_check(struct options *o);

const char *job_schedule(const struct job *job);

#endif
