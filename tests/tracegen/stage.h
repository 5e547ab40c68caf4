/* What one rank does in a step, in pieces. */
#ifndef TRACEGEN_STAGE_H
#define TRACEGEN_STAGE_H

#include "tracegen.h"

struct stage {
    struct program *p;
    const struct layout *layout;
    const struct options *options;
    const struct job *job;
    int rank, step;
    int place, degree; /* in the pipeline */
    int layers;        /* of a chunk */
    int micro_batches;
    double slowness; /* of computing */
    bool trains;     /* not an evaluation */
};

struct stage stage_of(struct program *p, const struct layout *layout, int rank,
                      int step);
/* Ranks of the communicator of that kind; 1: none. */
int stage_size(const struct stage *s, enum comm_kind kind);
int stage_rank_in(const struct stage *s, enum comm_kind kind);
bool stage_is_first(const struct stage *s, int chunk);
bool stage_is_last(const struct stage *s, int chunk);
void stage_begin(const struct stage *s, enum segment_kind kind);
void stage_end(const struct stage *s);

/* A collective that computing waits for, on the stream that its communicator
 * has. */
struct instruction *stage_collective(const struct stage *s, enum ct_op op,
                                     enum comm_kind comm, int type,
                                     uint64_t count);
int stage_stream(const struct stage *s, enum comm_kind comm);

/* A micro-batch in bfloat16: the elements of an activation, and its tokens. */
uint64_t stage_activation(const struct stage *s, int micro_batch);
uint64_t stage_tokens(const struct stage *s, int micro_batch);
/* How long it computes, of the usual. */
double stage_work(const struct stage *s, int micro_batch);

/* pipeline.c: all micro-batches of a step or an evaluation. */
void stage_schedule(const struct stage *s);

/* pass.c: one micro-batch through the layers of a chunk. A backward pass may
 * leave the gradients of the weights for later. */
enum backward { BACKWARD_WHOLE, BACKWARD_INPUTS, BACKWARD_WEIGHTS };

void stage_forward(const struct stage *s, int chunk, int micro_batch);
void stage_backward(const struct stage *s, int chunk, int micro_batch,
                    enum backward part);

/* attention.c, experts.c: half a layer beside others of its kind, which take
 * us to compute. */
void stage_attention(const struct stage *s, int micro_batch, double us,
                     bool backward);
void stage_experts(const struct stage *s, int layer, int micro_batch, double us,
                   bool backward);
/* One message to each rank of comm, of as many elements as count says. */
void stage_all_to_all(const struct stage *s, enum comm_kind comm, int type,
                      uint64_t (*count)(const struct stage *s, int from, int to,
                                        const void *context),
                      const void *context);

/* gradients.c: what keeps the copies of the parameters alike. */
void gradients_before_step(const struct stage *s);
void gradients_before_layer(const struct stage *s, int chunk, int layer,
                            int micro_batch, bool backward);
void gradients_after_layer(const struct stage *s, int chunk, int layer,
                           int micro_batch);
void gradients_after_step(const struct stage *s);

#endif
