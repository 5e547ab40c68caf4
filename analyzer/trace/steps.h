/*
 * Work area of step finding:
 *   stream.c  the calls as tokens
 *   period.c  a token that occurs once per step
 *   anchor.c  the token that ends a step
 *   steps.c   steps from it, and what all processes agree on
 */
#ifndef COMMTRACE_STEPS_H
#define COMMTRACE_STEPS_H

#include "trace/trace.h"

struct ct_intern;

struct ct_token {
    int first, n; /* in positions */
    int sort;     /* tokens of one op on one communicator have one */
    bool collective;
    uint64_t hash;
};

/* The calls of one process as a sequence of tokens: its ops or, where graphs
 * were launched, the ops that were not captured and the launches. */
struct ct_stream {
    struct ct_process *process;
    int n;           /* calls */
    int *calls;      /* op, or ~launch; NULL: call i is op i */
    int *token_of;   /* per class */
    int *token_with; /* per graph; CT_NONE: holds no ops */
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

/* Share of the steps that must be alike. */
#define CT_EQUAL_SHARE 0.8

static inline int ct_token_at(const struct ct_stream *stream, int at)
{
    const struct ct_process *p = stream->process;
    const int call = stream->calls ? stream->calls[at] : at;

    return call >= 0 ? stream->token_of[p->ops[call].cls]
                     : stream->token_with[p->graph_launches[~call].graph];
}

/* Where an anchor stands: at[0] .. at[n - 1]. */
struct ct_places {
    const int *at;
    int n;
};

struct ct_places ct_places_of(const struct ct_stream *stream,
                              const struct ct_anchor *anchor);

/* Sets distance and skip; whether the token's distances are regular. */
bool ct_anchor_regular(const struct ct_stream *stream,
                       struct ct_anchor *anchor);
/* Sets usual and length; *equal_p: how many segments are the usual one. */
void ct_anchor_measure(const struct ct_stream *stream, struct ct_anchor *anchor,
                       int *equal_p);
/* Finds a token that occurs once per step; steps as in ct_stream_anchor. */
bool ct_stream_period(const struct ct_stream *stream, int steps,
                      struct ct_anchor *anchor);

void ct_stream_init(struct ct_stream *stream, struct ct_process *process);
void ct_stream_release(struct ct_stream *stream);

/* Finds the token that ends a step; steps: how many to look for, 0: any. */
bool ct_stream_anchor(const struct ct_stream *stream, int steps,
                      struct ct_anchor *anchor);

/* When the call at that place was entered, began and ended. */
int64_t ct_stream_enter(const struct ct_stream *stream, int at);
int64_t ct_stream_begin(const struct ct_stream *stream, int at);
int64_t ct_stream_end(const struct ct_stream *stream, int at);
bool ct_stream_timed(const struct ct_stream *stream, int at);

/* The first op at or after that place of the sequence. */
int ct_stream_op(const struct ct_stream *stream, int at);

/* Fills in calls, n and token_with, where graphs were launched; class tokens
 * are known. */
void ct_stream_add_graphs(struct ct_stream *stream, struct ct_intern *tokens);

#endif
