/* The parts of the textbook section; see sections.h. */
#ifndef COMMTRACE_REPORT_SEED_H
#define COMMTRACE_REPORT_SEED_H

#include "report/family.h"

/* Tensor-parallel volume per GPU, layer and micro-batch. */
void seed_volume(struct out *out, const struct view *view,
                 const struct families *families);

/* Idle time of the pipeline. */
void seed_idle(struct out *out, const struct view *view);

/* Measured bus bandwidth of each role beside what it needs. */
void seed_bandwidth(struct out *out, const struct view *view,
                    const struct families *families);

#endif
