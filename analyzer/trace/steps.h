/*
 * Work area of step finding, shared by steps.c (which token ends a step) and
 * cut.c (steps from it, and what all processes agree on).
 */
#ifndef COMMTRACE_STEPS_H
#define COMMTRACE_STEPS_H

#include "trace/trace.h"

struct ct_token {
    int first, n; /* in positions */
    int sort;     /* tokens of one op on one communicator have one */
    bool collective;
    uint64_t hash;
};

/* The calls of one process as a sequence of tokens. */
struct ct_stream {
    struct ct_process *process;
    int *token_of; /* per class */
    int ntokens, nsorts;
    struct ct_token *tokens;
    int *positions;   /* of tokens in the sequence, token by token */
    uint64_t *hashes; /* [i]: sum of the hashes of tokens 0..i-1 */
    bool on_gpu;      /* times are the GPU's */
};

struct ct_anchor {
    int token;
    int skip;         /* occurrences before the steps begin */
    int length;       /* calls of the usual step */
    int64_t distance; /* median, in calls */
    uint64_t usual;   /* hash of its tokens */
};

void ct_stream_init(struct ct_stream *stream, struct ct_process *process);
void ct_stream_release(struct ct_stream *stream);

/* Finds the token that ends a step; steps: how many to look for, 0: any. */
bool ct_stream_anchor(const struct ct_stream *stream, int steps,
                      struct ct_anchor *anchor);

/* When op began and ended. */
int64_t ct_stream_begin(const struct ct_stream *stream, int op);
int64_t ct_stream_end(const struct ct_stream *stream, int op);

#endif
