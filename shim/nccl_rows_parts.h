/* What the files of rows share: communicators (nccl_rows_comms.c), facts about
 * them (nccl_rows_facts.c), messages, choices, and the program's calls. */
#ifndef SHIM_NCCL_ROWS_PARTS_H
#define SHIM_NCCL_ROWS_PARTS_H

#include "choice_classes.h"
#include "nccl_log.h"
#include "nccl_rows.h"
#include "real.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SETS = 4096,   /* communicators remembered */
    BIRTHS = 4096, /* and those that the log has not told of */
    WORDS = 2048,
    MESSAGES = 512,
    COMMS = 4096, /* by comm.id, the newest */
    CALLS = 8192, /* by op_class.id, the newest */
    PIECE = 1 << 16
};

struct waiting;

/* One communicator as the log tells of it. */
struct set {
    uint64_t pointer;
    unsigned birth;
    int copy;
    int64_t comm; /* -> comm.id; 0: not known yet */
    bool complete;
    bool changed;   /* since its row was added */
    unsigned looks; /* while rows wait */
    struct row_nccl_comm about;
    int rank, nranks;
    struct waiting *first, **end;
    int64_t *choices; /* so far, by kind; the last: of no known kind */
};

/* One as the program got it, until the log has told of it. */
struct born {
    int64_t comm;
    uint64_t pointer;
    int copy;
    int rank, nranks;
};

struct message {
    char *text;
    const char *kind;
    int64_t comm;
    int64_t n, told;
};

/* Where a communicator of the program's was. */
struct place {
    int64_t comm;
    uint64_t pointer;
    int copy;
    int64_t nranks;
};

/* What calls of a class are to NCCL. */
struct call {
    int64_t class;
    int64_t comm;
    int op;
    int64_t share; /* bytes of a rank */
    bool first;    /* none was told yet */
};

/* What is read of one copy of NCCL. */
struct reading {
    struct nccl_rows *rows;
    int copy;
    struct nccl_log *log;
    bool told_absence;
    uint64_t told_unknown;
};

struct nccl_rows {
    struct reading of[NCCL_COPIES];
    struct batch *batch; /* while there is one */
    struct set *sets[SETS];
    unsigned nsets;
    struct born births[BIRTHS];
    unsigned nbirths;
    unsigned nwaiting;
    struct place places[COMMS];
    struct call calls[CALLS];
    int64_t last_op;
    int64_t grp;           /* of the last op */
    int64_t busy_until_ns; /* the end of ops so far */
    int64_t busy_op;       /* that ends then */
    bool ahead;            /* the log was read further than calls are known */
    char *words[WORDS];
    struct message messages[MESSAGES];
    unsigned nmessages;
    int64_t more_messages, told_more;
    struct choice_classes classes;
    int64_t last_choice;
    char bytes[PIECE];
};

static inline int64_t or_null(int64_t number)
{
    return number == NCCL_LOG_UNKNOWN ? CT_NULL : number;
}

/* The text once for all rows; they all point to it. */
const char *rows_word(struct nccl_rows *rows, const char *text);

void rows_add(struct nccl_rows *rows, const struct row *row);

void rows_learn_comm(struct reading *reading, const struct nccl_log_fact *fact);

/* NULL: the log has not told of it. */
struct set *rows_find_set(struct nccl_rows *rows, int copy,
                          const struct nccl_log_name *name);

/* A row of a communicator, when it is known. */
void rows_put(struct reading *reading, const struct nccl_log_fact *fact,
              struct row *row);

/* The log's communicators and the program's. */
void rows_join(struct nccl_rows *rows);

void rows_tell_comms(struct nccl_rows *rows);

/* Of communicators that are not known for long. */
void rows_tell_impatient(struct nccl_rows *rows, bool last);

void rows_free_set(struct nccl_rows *rows, struct set *set);

/* Takes the text. */
void rows_add_message(struct nccl_rows *rows, const struct row *row);

void rows_tell_message(struct nccl_rows *rows, int64_t rowid,
                       const struct row_nccl_message *message);
void rows_tell_messages(struct nccl_rows *rows);

void rows_put_choice(struct reading *reading, const struct nccl_log_fact *fact);

/* The program's calls among the first n rows of the batch. */
void rows_take_calls(struct nccl_rows *rows, const struct batch *batch,
                     size_t n);

/* What the log says; arg: a struct reading. */
void rows_take(void *arg, const struct nccl_log_fact *fact);

#endif
