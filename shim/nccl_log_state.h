/* What the parts of the log's parser share; nobody else's business. */
#ifndef SHIM_NCCL_LOG_STATE_H
#define SHIM_NCCL_LOG_STATE_H

#include "nccl_log.h"
#include "text_scan.h"

#define LOG_SIZE(array_) (sizeof(array_) / sizeof((array_)[0]))

enum {
    LOG_HOST = 80,
    LOG_LINE = 8192,
    LOG_PROCESSES = 8192, /* a power of two */
    LOG_COMMS = 4096,
    LOG_THREAD_SETS = 512, /* a power of two */
    LOG_THREAD_WAYS = 8,
    LOG_WAITING = 4096,
    LOG_CHANNELS = 64,
    LOG_CELLS = 24,
    LOG_CONN_BITS = 2048,
    LOG_CALLS = 4096,
    LOG_CHOICES = 4096,
};

/* Indices below are one more than they are; 0 is none. */

struct log_process {
    char host[LOG_HOST];
    int64_t pid;
    uint32_t comms; /* the latest; a list */
    bool used;
};

struct log_comm {
    uint32_t process; /* 0: free */
    uint32_t next;    /* of its process */
    uint64_t pointer;
    unsigned birth;
    uint64_t order; /* of its set-up, over all */
    bool alive;
    uint64_t ended; /* when it was not any more, by the clock of the log */
    bool complete;
    uint64_t collective_call; /* its first one among all calls; 0: none yet */
    uint64_t peer_call;       /* send or recv */
    struct nccl_log_comm about;
    struct nccl_log_ring rings[LOG_CHANNELS]; /* prev == next == -1: unknown */
    struct nccl_log_tree trees[LOG_CHANNELS];
    uint64_t conns[LOG_CONN_BITS / 64]; /* a Bloom filter of those it has */
};

/* A communicator that may be gone: its place is another's then. */
struct log_ref {
    uint32_t index;
    uint64_t order;
};

struct log_thread {
    uint32_t process; /* 0: free */
    int64_t tid;
    uint64_t used;
    struct log_ref comm;          /* that it sets up */
    struct log_ref run;           /* that it connects at first use */
    uint64_t called;              /* pointer that its last call named */
    bool opening;                 /* it sets one up that has not been named */
    struct nccl_log_comm pending; /* said before it is named */
    uint32_t first, last;         /* facts that wait */
    /* Columns of the table of predictions. */
    uint8_t cells;
    uint8_t algorithm[LOG_CELLS];
    uint8_t protocol[LOG_CELLS];
};

struct log_waiting {
    uint32_t next;
    uint64_t since; /* by the clock of the log */
    int rank;       /* who says it, in its communicator; NCCL_LOG_UNKNOWN */
    bool connected; /* "Connected all ..." came after it: a collective's */
    struct nccl_log_fact fact;
};

/* A collective that the program called. */
struct log_call {
    uint64_t pointer; /* 0: a line was about it */
    int op;
    int64_t share;
    int64_t whole;
};

struct log_calls {
    uint64_t told;    /* calls so far */
    uint64_t moments; /* of them: those of one moment count once */
    uint64_t first, next;
    struct log_call ring[LOG_CALLS];
};

/* A choice whose call has not been told. */
struct log_undecided {
    bool told;
    uint64_t since; /* by the clock of the log */
    uint32_t process;
    int64_t tid;
    struct nccl_log_fact fact;
};

struct log_choices {
    uint64_t first, next;
    struct log_undecided ring[LOG_CHOICES];
};

struct nccl_log {
    int64_t pid;
    char host[LOG_HOST]; /* empty: any */
    nccl_log_sink *sink;
    void *arg;
    struct nccl_log_counts counts;
    bool all_told;    /* calls that were made before the last line */
    uint64_t clock;   /* counts lines and set-ups */
    uint32_t process; /* that calls are told of: the one that was asked for,
                         else the first; 0: not seen yet */
    uint32_t free_waiting;
    uint32_t top_waiting; /* below which some have been used */
    uint32_t top_comm;
    uint32_t next_victim;
    size_t carried;
    char carry[LOG_LINE];
    char text[LOG_LINE + 1];
    struct log_process processes[LOG_PROCESSES];
    struct log_comm comms[LOG_COMMS];
    struct log_thread threads[LOG_THREAD_SETS * LOG_THREAD_WAYS];
    struct log_waiting waiting[LOG_WAITING];
    struct log_calls calls;
    struct log_choices choices;
};

/* One line, apart from its prefix. */
struct log_line {
    struct nccl_log *log;
    struct log_thread *thread;
    int device;
    struct text text;
};

/* Indices and what they stand for. */

static inline struct log_comm *log_comm_at(struct nccl_log *log, uint32_t index)
{
    return index ? &log->comms[index - 1] : NULL;
}

static inline uint32_t log_index_of(const struct nccl_log *log,
                                    const struct log_comm *comm)
{
    return comm ? (uint32_t)(comm - log->comms) + 1 : 0;
}

static inline struct log_ref log_refer(const struct nccl_log *log,
                                       const struct log_comm *comm)
{
    return comm ? (struct log_ref){log_index_of(log, comm), comm->order}
                : (struct log_ref){0};
}

static inline struct log_comm *log_referred(struct nccl_log *log,
                                            struct log_ref ref)
{
    struct log_comm *comm = log_comm_at(log, ref.index);
    return comm && comm->order == ref.order ? comm : NULL;
}

static inline struct log_process *
log_process_of(struct nccl_log *log, const struct log_thread *thread)
{
    return &log->processes[thread->process - 1];
}

/* nccl_log_who.c: which thread a line is of. */

struct log_thread *log_who(struct nccl_log *log, struct text host, int64_t pid,
                           int64_t tid);

/* Length of the name of the known host of that process that the word ends
 * with, or 0. */
size_t log_known_host(const struct nccl_log *log, struct text word,
                      int64_t pid);

/* nccl_log_comms.c: communicators. */

void log_comm_clear(struct nccl_log_comm *about);

struct log_comm *log_find_comm(struct nccl_log *log,
                               const struct log_thread *thread,
                               uint64_t pointer);
/* The communicator that the thread sets up, or NULL. */
struct log_comm *log_setting_up(const struct log_line *line);
void log_start(const struct log_line *line, uint64_t pointer,
               const struct nccl_log_comm *about);
void log_detail(const struct log_line *line, uint64_t pointer,
                const struct nccl_log_comm *about);
void log_complete(const struct log_line *line, uint64_t pointer,
                  const struct nccl_log_comm *about);
void log_end(const struct log_line *line, uint64_t pointer);

/* nccl_log_tell.c: facts, and of which communicator they are. */

/* Told now or when it is known whose it is. rank: who says it. */
void log_tell(const struct log_line *line, struct nccl_log_fact *fact,
              int rank);
/* Told as what it is. NULL: of no communicator. */
void log_tell_as(struct nccl_log *log, const struct log_thread *thread,
                 struct log_comm *comm, bool likely,
                 struct nccl_log_fact *fact);
void log_tell_comm(const struct log_line *line, struct log_comm *comm,
                   enum nccl_log_phase phase);
/* A choice of `since`, of the communicator that had that address then. */
void log_tell_choice_of(struct nccl_log *log, struct log_undecided *undecided,
                        uint64_t pointer);
/* It has told of such a connection already, as good as surely. */
bool log_has_conn(const struct log_comm *comm,
                  const struct nccl_log_conn *conn);

/* nccl_log_wait.c: facts that wait. */

/* The fact waits in its thread. */
void log_wait(struct nccl_log *log, struct log_thread *thread,
              const struct nccl_log_fact *fact, int rank);
/* Takes all that waits from the thread: gives the first of a list, of which
 * each is to be kept after all or told and released. */
uint32_t log_take_waiting(struct log_thread *thread);
void log_keep_waiting(struct nccl_log *log, struct log_thread *thread,
                      uint32_t index);
void log_release_waiting(struct nccl_log *log, uint32_t index);
/* Tells what waits in the thread and is of that rank, or of every rank where
 * it is unknown. */
void log_tell_waiting(struct nccl_log *log, struct log_thread *thread,
                      struct log_comm *comm, int rank);

/* nccl_log_first_use.c: connections outside of set-ups. */

void log_tell_conn(const struct log_line *line, struct nccl_log_fact *fact,
                   int rank);
/* Decides about those that wait in the thread; in doubt they go on waiting for
 * the program's calls, unless this is the last time. */
void log_settle(struct nccl_log *log, struct log_thread *thread, bool last);
/* All that waits was connected for a collective. */
void log_settle_connected(struct nccl_log *log, struct log_thread *thread);
void log_settle_all(struct nccl_log *log, bool last);
void log_settle_process(struct nccl_log *log, uint32_t process);

/* nccl_log_calls.c: choices and calls. */

/* The communicator of a call that the choice may be about, which is used up
 * then; 0: none. Only of `pointer` unless that is 0. */
uint64_t log_take_call(struct nccl_log *log,
                       const struct nccl_log_choice *choice, uint64_t pointer);
void log_let_choice_wait(const struct log_line *line,
                         const struct nccl_log_fact *fact);
void log_tell_choices(struct nccl_log *log);

/* nccl_log_facts.c: what a line says. False: in no known shape. */
bool log_facts(struct log_line *line);
void log_message(const struct log_line *line, const char *kind);

/* nccl_log_tuning.c: as log_facts(), for one shape each. */
bool log_take_algorithms(struct log_line *line, struct text text);
bool log_take_columns(struct log_line *line, struct text text);
bool log_take_choice(struct log_line *line, int op, struct text text);
/* Lines that say whose collectives the thread calls. */
bool log_take_called(struct log_line *line, struct text text);
/* Lines that begin with a collective's name. */
bool log_take_function(struct log_line *line, struct text text);

#endif
