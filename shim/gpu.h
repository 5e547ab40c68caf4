/* What gputime.c and gputie.c share: a device and context with its events. */
#ifndef SHIM_GPU_H
#define SHIM_GPU_H

#include "gputime.h"
#include "pairs.h"

enum { GPUS = 64 };

struct gpu {
    int index;
    int device;
    void *ctx;
    unsigned long long life; /* the context's id: a reset gives it another */
    struct pairs pairs;
    _Atomic bool broken;
    /* The writer's, once others can see it. */
    void *tie_stream;
    void *tie_event[2]; /* in force, and the next */
    int64_t tie_ns;     /* the middle of the bracket */
    int64_t tie_width_ns;
    int64_t tied_ns; /* when we last tried; 0: never */
    bool told;       /* the anchor in force */
};

/* False once the driver is being torn down. */
bool gpu_is_there(void);

/* False once it, or the driver, has been given up. */
bool gpu_is_usable(struct gpu *gpu);

/* Whether its context is still the one that the events were made in: what ended
 * with that must not be touched. For good it is unusable if not. */
bool gpu_lives(struct gpu *gpu);

/* Of a new one, whose context is current and captures left alone (capture.h),
 * before anything is recorded on it: without an anchor no pair can be read, and
 * the pool would run dry. */
void gpu_tie_first(struct gpu *gpu);

/* All of them, at most GPUS. */
int gpu_all(struct gpu **gpus);

#endif
