/*
 * Work area of step finding:
 *   stream.c   the calls as tokens
 *   varied.c   kinds of calls whose sizes follow no pattern
 *   gaps.c     calls whose records are lost
 *   period.c   what happens at a regular distance
 *   segment.c  stretches of the sequence, compared
 *   level.c    which of that is a step
 *   anchor.c   where a step ends
 *   begin.c    where it begins
 *   cut.c      steps from it
 *   micro.c    what repeats inside a step
 *   train.c    whether it is one
 *   number.c   which steps of all processes are one
 *   edges.c    where a step begins that lacks records
 *   steps.c    what all processes agree on
 */
#ifndef COMMTRACE_STEPS_H
#define COMMTRACE_STEPS_H

#include "trace/intern.h"
#include "trace/trace.h"

/* Calls that differ in nothing but their size. */
struct ct_kind {
    uint64_t hash;
    int ntokens;
    bool collective;
    bool p2p;
    bool small; /* a handful of bytes: norm, loss, barrier */
    bool reduces;
    bool sums; /* as gradients are */
    bool gathers, scatters;
    bool floats;
    bool varied; /* its sizes follow no pattern: all are one token */
};

struct ct_token {
    int first, n; /* in positions */
    int kind;
    int sort; /* tokens of one op on one communicator have one */
    uint64_t hash;
};

/* A call whose record is lost. */
#define CT_LOST_CALL INT32_MIN

/* The calls of one process as a sequence of tokens: its ops or, where graphs
 * were launched, the ops that were not captured and the launches. Ops of a
 * launch that exchanges with many peers, as much as each needs, are one. */
struct ct_stream {
    struct ct_process *process;
    int n;           /* calls */
    int *calls;      /* op, ~launch or CT_LOST_CALL */
    int *token_at;   /* per call */
    int *token_of;   /* per class */
    int *kind_of;    /* per class */
    int *token_with; /* per graph; CT_NONE: holds no ops */
    int ntokens, nkinds, nsorts, token_capacity, kind_capacity;
    struct ct_token *tokens;
    struct ct_kind *kinds;
    struct ct_intern token_keys, kind_keys, sort_keys;
    int *sort_calls;       /* per sort: how many calls */
    int *positions;        /* of tokens in the sequence, token by token */
    uint64_t *hashes;      /* [i]: sum of the hashes of tokens 0..i-1 */
    uint64_t *kind_hashes; /* [i]: the same of their kinds */
    bool on_gpu;           /* times are the GPU's */
    bool lossy;            /* records are lost */
    bool unnamed;          /* of some nothing is known but that they are */
};

struct ct_anchor {
    int token;
    int skip;             /* occurrences before the steps begin */
    int after;            /* calls that follow it in its step */
    int length;           /* calls of the usual step */
    int at;               /* where it ends, once, not early */
    int64_t distance;     /* median, in calls */
    uint64_t usual;       /* hash of its tokens */
    uint64_t usual_kinds; /* hash of their kinds */
};

/* Something that happens at a regular distance. */
struct ct_level {
    struct ct_anchor anchor;
    int n;         /* how often */
    double equal;  /* share of it that is alike */
    double inside; /* of calls of its sorts, that are in it */
    int others;    /* tokens it was compared with */
    int *calls;    /* of each kind, each time */
    int sizes;     /* of sums that are no handful of bytes */
    bool scatters;
};

struct ct_levels {
    int n;
    struct ct_level *levels; /* the rarest first */
};

/* Confidences: hardly anything else fits; something else is as simple. */
#define CT_LIKELY 0.9
#define CT_PLAUSIBLE 0.75

/* How sure it is that a level is the steps. */
struct ct_period {
    struct ct_anchor anchor;
    double confidence;
    const char *doubt; /* what lowers it most; NULL: nothing */
};

/* Share of the steps that must be alike. */
#define CT_EQUAL_SHARE 0.8

/* Sizes of DDP's buckets: of the first, the last, the others. */
#define CT_DDP_SIZES 3

/* The norm, a loss. */
static inline bool ct_kind_is_scalar(const struct ct_kind *kind)
{
    return kind->small && kind->reduces && kind->floats;
}

static inline const struct ct_kind *ct_kind_at(const struct ct_stream *s,
                                               int at)
{
    return &s->kinds[s->tokens[s->token_at[at]].kind];
}

/* Where an anchor stands: at[0] .. at[n - 1]. */
struct ct_places {
    const int *at;
    int n;
};

struct ct_places ct_places_of(const struct ct_stream *stream,
                              const struct ct_anchor *anchor);

/* Sets distance and skip; whether most of the token's distances are that. */
bool ct_anchor_has(const struct ct_stream *stream, struct ct_anchor *anchor,
                   int64_t distance);
/* The same for any distance. */
bool ct_anchor_regular(const struct ct_stream *stream,
                       struct ct_anchor *anchor);
/* Sets usual, usual_kinds, length and at; whether enough segments are alike. */
bool ct_anchor_measure(const struct ct_stream *stream,
                       struct ct_anchor *anchor);

/* Leaves out of the usual step what is called before some steps only. */
void ct_anchor_begin(const struct ct_stream *stream, struct ct_anchor *anchor);

/* Calls of each kind among first..last, places in the sequence. */
int *ct_segment_kinds(const struct ct_stream *stream, int first, int last);
/* Whether first..last is what usually is a step, but for a few calls where
 * records are lost, and for a few of a handful of bytes. */
bool ct_segment_alike(const struct ct_stream *stream,
                      const struct ct_anchor *anchor, const int *usual,
                      int first, int last);

/* Where, from first on, a step begins that ends with last: so that it is most
 * alike. */
int ct_segment_start(const struct ct_stream *stream,
                     const struct ct_anchor *anchor, const int *usual,
                     int first, int last);

/* What is regular; steps: only what happens about so often, 0: any. */
void ct_levels_find(const struct ct_stream *stream, int steps,
                    struct ct_levels *levels);
void ct_levels_release(struct ct_levels *levels);

/* The level that is a step; false: there is none. */
bool ct_stream_period(const struct ct_stream *stream, int steps,
                      struct ct_period *period);

/* The same, with the anchor where steps end. */
bool ct_stream_anchor(const struct ct_stream *stream, int steps,
                      struct ct_period *period);

/* Whether what is regular can only be a step of training. */
bool ct_stream_trains(const struct ct_stream *stream,
                      const struct ct_anchor *anchor);

/* How sure it is by its calls that it is a step, not a micro-batch; *doubt_p:
 * why not, NULL. */
double ct_stream_ends(const struct ct_stream *stream,
                      const struct ct_anchor *anchor, const char **doubt_p);

/* Whether it can be a forward pass of inference: it sums what is no handful
 * of bytes. */
bool ct_stream_forwards(const struct ct_stream *stream,
                        const struct ct_anchor *anchor);

/* Micro-batches of a step by what its calls repeat; CT_NONE: they do not tell.
 * pipeline: by the messages of a pipeline, a multiple of their number. */
struct ct_micro {
    int n;
    bool pipeline;
    int64_t ns; /* median time from one to the next; CT_NO_TIME */
};

struct ct_micro ct_stream_micro(const struct ct_stream *stream,
                                const struct ct_anchor *anchor);

/* Numbers the steps of all processes of job: what ran together has one number.
 * Returns the share of the evidence that agrees; *certain_p: where steps begin
 * and end does not depend on records that are lost, nor on whom one asks. */
double ct_steps_number(struct ct_trace *trace, struct ct_job *job,
                       bool *certain_p);

/* Where steps that lack records begin and end, by what others say. numbers: per
 * instance, of the step it is part of; CT_NONE: nobody is sure. Returns false
 * where nobody can say. */
#define CT_BETWEEN (-2) /* an instance between steps */
bool ct_steps_settle_edges(const struct ct_trace *trace,
                           const struct ct_job *job, const int *numbers);

static inline bool ct_row_is_step(const struct ct_step_row *row)
{
    return row->kind == CT_STEP_STEADY || row->kind == CT_STEP_WARM_UP ||
           row->kind == CT_STEP_OTHER;
}

/* Rows of process->steps from the anchor's places, as far as they are timed;
 * kind: of the usual ones. Ops are not told their step yet. */
void ct_stream_cut(struct ct_stream *stream, const struct ct_anchor *anchor,
                   enum ct_step_kind kind);

/* Whether such a call may end a step after its anchor. */
bool ct_tail_kind(const struct ct_stream *stream, int at);

/* job: where to look for what is lost; sizes: calls of different sizes are
 * different. */
void ct_stream_init(struct ct_stream *stream, struct ct_process *process,
                    const struct ct_job *job, bool sizes);
void ct_stream_release(struct ct_stream *stream);

/* When the call at that place was entered, began and ended. */
int64_t ct_stream_enter(const struct ct_stream *stream, int at);
int64_t ct_stream_begin(const struct ct_stream *stream, int at);
int64_t ct_stream_end(const struct ct_stream *stream, int at);
bool ct_stream_timed(const struct ct_stream *stream, int at);

/* The first op at or after that place of the sequence. */
int ct_stream_op(const struct ct_stream *stream, int at);

/* The token of that key, of that kind and sort if it is new. */
int ct_stream_token(struct ct_stream *stream, const void *key, size_t size,
                    int kind, int sort);
/* A new kind, or that of the key. */
int ct_stream_kind(struct ct_stream *stream, const void *key, size_t size,
                   struct ct_kind kind);

/* Fills in calls, n and token_with, where graphs were launched; class tokens
 * are known. */
void ct_stream_add_graphs(struct ct_stream *stream);
/* Marks kinds whose sizes follow no pattern. */
void ct_stream_find_varied(struct ct_stream *stream);
/* Adds the calls whose records are lost. */
void ct_stream_fill_gaps(struct ct_stream *stream, const struct ct_job *job);

#endif
