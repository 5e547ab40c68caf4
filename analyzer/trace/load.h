/*
 * Reading one trace file, shared by the files that do it. A trace is input,
 * not a friend: every integer is checked against its range where it is read.
 * The first fault is kept as "FILE: table row n: reason" and ends the loading;
 * values read after it are within their range all the same.
 */
#ifndef COMMTRACE_LOAD_H
#define COMMTRACE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/arena.h"
#include "trace/db.h"
#include "trace/intern.h"
#include "trace/ring.h"
#include "trace/trace.h"

/* Bounds that no honest trace reaches and that keep sums of times, sizes and
 * counts inside 64 bits: 2.3 years, 13 days, 4 EiB. */
#define CT_MAX_TIME_NS ((int64_t)1 << 56)
#define CT_MAX_DURATION_NS ((int64_t)1 << 50)
#define CT_MAX_BYTES ((uint64_t)1 << 62)
#define CT_MAX_RANKS (1 << 20)
#define CT_MAX_RANKS_SUM (1 << 24) /* over a file's communicators */
#define CT_MAX_CODES 512
#define CT_MAX_GRAPHS ((int64_t)1 << 40)

/* Numbers of a file's lookup table -> ours. */
struct ct_codes {
    int value[CT_MAX_CODES]; /* CT_NONE: not in the table, or unknown to us */
};

/* Row ids in reading order, mostly 1, 2, 3, ... */
struct ct_ids {
    int n, capacity;
    int64_t *ids;
    bool sorted;
};

struct ct_load_only;

struct ct_choice_row {
    int64_t start_ns, gpu_ns; /* CT_NO_TIME: not timed */
    int32_t cls;              /* index in choice_classes */
    int32_t launch;           /* index in graph_launches; CT_NONE */
    uint32_t n;
};

struct ct_loader {
    const char *path;
    const struct ct_load_only *only; /* NULL: all */
    struct ct_arena *arena;
    struct ct_process *process;
    struct ct_db db;
    struct ct_ring ring; /* of a process that did not close its trace */
    const char *ring_path;
    int64_t ring_tail;
    long long version; /* of the schema */
    int64_t most_rows; /* that the file has room for, of any table */
    uint64_t text_bytes;
    bool digested; /* the file is a digest; its ring has been read */

    struct ct_codes kinds, types, redops, flags;
    uint64_t type_bytes[CT_MAX_CODES]; /* by the file's number */
    bool flags_as_ours;
    int64_t ranks_sum;

    struct ct_ids module_ids, stack_ids;
    struct ct_ids comm_ids, class_ids, launch_ids, op_ids;
    int class_capacity, launch_capacity, op_capacity, comm_capacity;
    int event_capacity;
    struct ct_intern graph_keys; /* ids, in the order of graphs */
    int graph_capacity, graph_launch_capacity;
    struct ct_choice_row *choices; /* until they are joined to ops */
    int nchoices, choice_capacity, kernel_capacity;
    struct ct_intern launch_keys; /* filled when guessing fails */
    int launch_guess, launch_known;
    struct ct_intern stream_keys;
    int stream_capacity, stream_guess;

    bool failed;
    char *error;
    size_t error_size;
};

void ct_load_fail(struct ct_loader *loader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A table being read; rows counts from 1. */
struct ct_rows {
    struct ct_loader *loader;
    struct sqlite3_stmt *stmt;
    const char *table;
    int64_t row;
};

void ct_rows_open(struct ct_rows *rows, struct ct_loader *loader,
                  const char *table, const char *sql);
/* False: no more, or loader->failed. Closes the statement then. */
bool ct_rows_next(struct ct_rows *rows);

bool ct_rows_null(const struct ct_rows *rows, int column);
/* The integer, which has to be in low..high (NULL is not). */
int64_t ct_rows_int(struct ct_rows *rows, int column, const char *name,
                    int64_t low, int64_t high);
/* The same, with a value for NULL. */
int64_t ct_rows_opt(struct ct_rows *rows, int column, const char *name,
                    int64_t low, int64_t high, int64_t if_null);
/* The number, which has to be finite and not negative (NULL is not). */
double ct_rows_real(struct ct_rows *rows, int column, const char *name);
/* A copy in the arena, cut at 64 KiB; NULL for NULL. */
const char *ct_rows_text(struct ct_rows *rows, int column);
void ct_rows_fail(struct ct_rows *rows, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void ct_ids_add(struct ct_ids *ids, int64_t id);
/* Index of id, CT_NONE if it is not there. */
int ct_ids_find(const struct ct_ids *ids, int64_t id);

/* A count as a call passed it, which may be anything where NCCL never used it
 * (in a group that failed): what no message has is 0. */
uint64_t ct_load_count(uint64_t count, int nranks);
/* S of count elements on comm. */
uint64_t ct_load_bytes(const struct ct_loader *loader, enum ct_op kind,
                       int comm, uint64_t count, uint64_t type_bytes);
/* Whether every call of the class returned an error. Reads all calls. */
bool ct_load_is_refused(struct ct_loader *loader, int64_t class);
/* Takes such calls out of ops, once all are loaded. */
void ct_load_drop_refused(struct ct_loader *loader);
/* flags as in the file -> ours. */
uint32_t ct_load_flags(const struct ct_loader *loader, uint32_t flags);

/* Rows at the end of the arrays, zeroed. */
struct ct_comm_row *ct_load_add_comm(struct ct_loader *loader, int64_t id);
struct ct_comm_event_row *ct_load_add_event(struct ct_loader *loader);
struct ct_op_class_row *ct_load_add_class(struct ct_loader *loader, int64_t id);
struct ct_launch_row *ct_load_add_launch(struct ct_loader *loader, int64_t id);
struct ct_op_row *ct_load_add_op(struct ct_loader *loader);

/* Checks nranks and rank and counts them. */
void ct_load_check_ranks(struct ct_loader *loader,
                         const struct ct_comm_row *comm);

/* Index of a launch's stream. */
int ct_load_stream_of(struct ct_loader *loader, uint64_t stream);
/* Launch of an op of group grp; CT_NONE: its row is missing. */
int ct_load_launch_of(struct ct_loader *loader, uint64_t grp, int comm,
                      uint64_t stream);

/* Our number of id; CT_NONE where there is none. */
int ct_code_of(const struct ct_codes *codes, int64_t id);

/* The tables, in the order in which they need each other. */
void ct_load_process(struct ct_loader *loader);
void ct_load_codes(struct ct_loader *loader);
/* For what comes from a ring alone. */
void ct_load_own_codes(struct ct_loader *loader);
void ct_load_devices(struct ct_loader *loader);
void ct_load_gpu_links(struct ct_loader *loader);
void ct_load_comms(struct ct_loader *loader);
void ct_load_links(struct ct_loader *loader);
void ct_load_events(struct ct_loader *loader);
void ct_load_clocks(struct ct_loader *loader);
void ct_load_losses(struct ct_loader *loader);
void ct_load_graphs(struct ct_loader *loader);
void ct_load_libraries(struct ct_loader *loader);
void ct_load_tunings(struct ct_loader *loader);
void ct_load_choices(struct ct_loader *loader);
void ct_load_stacks(struct ct_loader *loader);
void ct_load_classes(struct ct_loader *loader);
void ct_load_launches(struct ct_loader *loader);
void ct_load_ops(struct ct_loader *loader);

/* What the ends of communicators tell of a process that did not close its
 * trace: ops that had finished, and that it left orderly. */
void ct_load_ends(struct ct_loader *loader);

/* Sets the process's last_ns from all of it. */
void ct_load_last_sign(struct ct_loader *loader);

/* Index of the graph with that id, which may never have been seen whole;
 * CT_NONE for id 0. */
int ct_load_graph_of(struct ct_loader *loader, int64_t id);
/* A row, added or filled in. Parts are ids; 0: none. */
void ct_load_add_graph(struct ct_loader *loader, int64_t id, int64_t made_ns,
                       int64_t first, int64_t second);
struct ct_graph_launch_row *ct_load_add_graph_launch(struct ct_loader *loader,
                                                     int64_t id);

/* Which ops NCCL's choices are about, once all ops are known. */
void ct_load_join_choices(struct ct_loader *loader);
/* GPU times by the kernels of ops that have none by events. */
void ct_load_kernel_times(struct ct_loader *loader);

/* Adds what loader->ring holds beyond the database. */
void ct_load_ring(struct ct_loader *loader);

#endif
