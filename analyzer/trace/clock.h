/*
 * Work area of the clock stage.
 *
 *   clock.c           the stage: which ops to watch, their ends
 *   clock_group.c     which processes read one clock
 *   clock_ties.c      ends of collectives -> samples of how clocks are apart
 *   clock_messages.c  messages both ways -> such samples
 *   clock_waited.c    those that were waited for -> better ones
 *   clock_clusters.c  messages between clusters of clocks -> such samples
 *   clock_fit.c       samples -> lines
 *   clock_tree.c      lines -> the common time of each group
 *   clock_check.c     messages that contradict it
 *   clock_pairs.c     ties that common time does not go by
 *   clock_common.c    what common time says, once it is known
 */
#ifndef COMMTRACE_CLOCK_H
#define COMMTRACE_CLOCK_H

#include "trace/clocks.h"
#include "trace/match.h"

#define CT_TIE_BASE_NS 1000 /* of the time of an op, beside its transfer */
#define CT_STRETCHES 64     /* of a run, at most */
#define CT_FEW_STRETCHES 4
#define CT_LEAST_MESSAGES 8 /* each way, of a stretch */

struct ct_span { /* of one op on its process's clock; start CT_NO_TIME: none */
    int64_t start_ns, end_ns;
};

/* Ops of one lane that are looked at: each stride-th instance. */
struct ct_watch {
    int lane;
    int stride, npicks;
    int nspans;   /* per pick: ranks of the communicator; of P2P two */
    int64_t span; /* first of npicks * nspans spans */
};

struct ct_tie_sample { /* apart: clock b minus clock a, when a says at */
    int64_t at_ns, apart_ns;
    float weight;
    int last; /* clock of the rank that came last, clearly after those of the
                 rest of a and b; CT_NONE */
};

struct ct_tie_line { /* apart = apart_ns + rate * (at - at_ns) */
    int64_t from_ns; /* of clock a; of the first INT64_MIN */
    int64_t at_ns, apart_ns;
    double rate;
};

struct ct_tie {
    int a, b; /* a < b */
    enum ct_clock_tie how;
    bool waited_for; /* messages whose receivers were not late */
    bool spare;      /* a pooled one counts instead */
    bool pooled; /* of messages between clusters of which these are the first */
    int nsamples, capacity, nlines, line_capacity;
    struct ct_tie_sample *samples;
    struct ct_tie_line *lines;
    double least_ns; /* shortest of the ops behind it */
    double span_ns;  /* of messages: the time that they are from */
    int64_t first_ns, last_ns;
    double residual_ns, error_ns, rate_error;
};

struct ct_message { /* between clocks a < b */
    int a, b;
    bool up;          /* from a to b */
    int pair;         /* of the clocks that it was between, in their order */
    int64_t at_ns;    /* of a */
    int64_t apart_ns; /* b - a: at most where up, else at least */
    double op_ns;
};

struct ct_messages { /* pair by pair, in the order of time */
    int n, capacity;
    struct ct_message *of;
};

struct ct_clocking {
    struct ct_matching *m;
    int nwatches, watch_capacity;
    struct ct_watch *watches;
    int *watch_of; /* per lane; CT_NONE */
    struct ct_span *spans;
    int64_t nspans;
    int *number;    /* per process of the trace: in the job */
    int *kernel_of; /* per process of the job: those that have the same are on
                       one machine, and should read one clock */
    int nties, tie_capacity;
    struct ct_tie *ties;
    struct ct_intern tie_keys;
    struct ct_messages messages;
};

static inline struct ct_span *ct_watch_spans(const struct ct_clocking *c,
                                             const struct ct_watch *w, int pick)
{
    return &c->spans[w->span + (int64_t)pick * w->nspans];
}

static inline const struct ct_instance *
ct_watch_instance(const struct ct_clocking *c, const struct ct_watch *w,
                  int pick)
{
    return &c->m->job->instances[c->m->lanes[w->lane].first + pick * w->stride];
}

static inline int ct_clock_at(const struct ct_clocking *c,
                              const struct ct_comm *comm, int rank)
{
    return c->m->trace->processes[comm->members[rank].process].clock;
}

/* A pick of P2P; false: not both of its ends were timed, or they are no pair.
 */
bool ct_watch_message(const struct ct_clocking *c, const struct ct_watch *w,
                      int pick, struct ct_span *send, struct ct_span *recv);

/* Per process of the job: the number of the machine's clock that it should
 * read. The caller frees. */
int *ct_clock_kernels(const struct ct_matching *m);

/* Sets job->clocks and the clock of each process, none of them tied. */
void ct_clock_group(struct ct_clocking *c);

/* Ties of clocks that collectives ended on, and of those between which messages
 * went both ways; these put the former right where there are both. */
void ct_clock_tie_collectives(struct ct_clocking *c);
void ct_clock_tie_p2p(struct ct_clocking *c);

/* Then those of clusters of clocks that messages went both ways between. */
void ct_clock_tie_clusters(struct ct_clocking *c);

void ct_messages_sort(struct ct_messages *all);

/* How many from the first one on are between the same clocks. */
int ct_messages_alike(const struct ct_messages *all, int first);

/* Its receiver began later than the message was sent, if clocks are so far
 * apart; ways_ns: of the way there and the way back. */
bool ct_message_is_late(const struct ct_message *of, int64_t apart_ns,
                        double ways_ns);

/* Samples of those that were waited for by what the tie says, where these are
 * enough. */
void ct_messages_refine(struct ct_tie *tie, const struct ct_message *of, int n);

/* What the n messages of two clocks tell; false: nothing. */
bool ct_messages_fit(struct ct_tie *tie, const struct ct_message *of, int n);

/* The tie of clocks a < b; a new one, of kind how, where there was none. */
struct ct_tie *ct_tie_of(struct ct_clocking *c, int a, int b,
                         enum ct_clock_tie how);

/* A sample from ops of which the shortest took op_ns. */
void ct_tie_add(struct ct_tie *tie, const struct ct_tie_sample *sample,
                double op_ns);

/* What its lines say when clock a says at_ns. */
int64_t ct_tie_apart(const struct ct_tie *tie, int64_t at_ns);

void ct_tie_release(struct ct_tie *tie);

/* Sorts the samples of a tie and sets all that follows from them. */
void ct_clock_fit(struct ct_tie *tie);

/* Takes out of a tie by collectives what all ends have in common, as far as
 * messages between the two clocks (their tie) tell better. True: these tell all
 * of it better. Messages whose way there is not as long as the way back tell
 * what no end allows: then nobody knows, and the tie may be off by as much. */
bool ct_clock_correct(struct ct_tie *tie, const struct ct_tie *messages);

/* What a piece says. */
int64_t ct_clock_along(const struct ct_clock_piece *piece, int64_t own_ns);

/* Groups, parents and pieces from the ties of one kind (CT_TIE_NONE: of any),
 * as far as they lead to the first clock of the group within most_ns. */
void ct_clock_join(struct ct_clocking *c, enum ct_clock_tie how,
                   double most_ns);

/* Adds the lines that follow from the common time of both clocks. */
void ct_clock_tie_joined(struct ct_tie *tie, const struct ct_clock *a,
                         const struct ct_clock *b);

/* Sets job->clock_pairs: what ties that lead to no clock's group tell. */
void ct_clock_compare_pairs(struct ct_clocking *c);

/* How far common times of a and b are off by that; INFINITY: it tells nothing
 * of these. */
double ct_clock_pair_error(const struct ct_job *job, int a, int b,
                           int64_t common_ns);

/* Takes clocks out of their group that messages contradict. */
void ct_clock_check(struct ct_clocking *c);

/* The stage, within ct_trace_match once ops have their instances. */
void ct_trace_clocks(struct ct_matching *m);

#endif
