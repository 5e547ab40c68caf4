/* The communicators that the log tells of, which of the program's each one is,
 * and the rows that wait for that. */
#include "nccl_rows_parts.h"

#include "nccl_file.h"

#include <stdlib.h>
#include <string.h>

enum { WAITING = 1 << 16 }; /* rows whose communicator is not known yet */

/* A row without its communicator. */
struct waiting {
    struct waiting *next;
    struct row row;
};

/* What still waits is of nobody; messages are worth telling even so. */
void rows_free_set(struct nccl_rows *rows, struct set *set)
{
    while (set->first) {
        struct waiting *next = set->first->next;
        if (set->first->row.table == ROW_nccl_message)
            rows_add_message(rows, &set->first->row);
        free(set->first);
        set->first = next;
        rows->nwaiting--;
    }
    free(set->choices);
    free(set);
}

/* The oldest makes room: most likely nothing is said of it any more. */
static void forget_set(struct nccl_rows *rows)
{
    rows_free_set(rows, rows->sets[0]);
    rows->nsets--;
    memmove((void *)rows->sets, (void *)(rows->sets + 1),
            rows->nsets * sizeof(*rows->sets));
}

struct set *rows_find_set(struct nccl_rows *rows, int copy,
                          const struct nccl_log_name *name)
{
    for (unsigned i = rows->nsets; i > 0; i--) {
        struct set *set = rows->sets[i - 1];
        if (set->pointer == name->pointer && set->birth == name->birth &&
            set->copy == copy)
            return set;
    }
    return NULL;
}

static struct set *obtain_set(struct nccl_rows *rows, int copy,
                              const struct nccl_log_name *name)
{
    struct set *set = rows_find_set(rows, copy, name);
    if (set)
        return set;
    set = calloc(1, sizeof(*set));
    if (!set)
        return NULL;
    if (rows->nsets == SETS)
        forget_set(rows);
    set->pointer = name->pointer;
    set->birth = name->birth;
    set->copy = copy;
    set->end = &set->first;
    return rows->sets[rows->nsets++] = set;
}

static bool is_of(const struct born *born, const struct set *set)
{
    return born->pointer == set->pointer && born->copy == set->copy &&
           (set->rank < 0 || born->rank == set->rank) &&
           (set->nranks < 0 || born->nranks == set->nranks);
}

static void name_row(struct row *row, int64_t comm)
{
    /* The first column of all these. */
    switch (row->table) {
    case ROW_conn:
        row->u.conn.comm = comm;
        break;
    case ROW_ring:
        row->u.ring.comm = comm;
        break;
    case ROW_tree:
        row->u.tree.comm = comm;
        break;
    case ROW_nccl_graph:
        row->u.nccl_graph.comm = comm;
        break;
    case ROW_tuning:
        row->u.tuning.comm = comm;
        break;
    default:
        row->u.nccl_message.comm = comm;
    }
}

static void tell_waiting(struct nccl_rows *rows, struct set *set)
{
    struct waiting *waiting = set->first;
    set->first = NULL;
    set->end = &set->first;
    while (waiting) {
        struct waiting *next = waiting->next;
        name_row(&waiting->row, set->comm);
        rows_add(rows, &waiting->row);
        free(waiting);
        rows->nwaiting--;
        waiting = next;
    }
}

/* One at the same address has to be found first. */
static bool has_elder(const struct nccl_rows *rows, const struct set *set)
{
    unsigned i = 0;
    while (rows->sets[i] != set &&
           (rows->sets[i]->comm || !rows->sets[i]->complete ||
            rows->sets[i]->pointer != set->pointer ||
            rows->sets[i]->copy != set->copy))
        i++;
    return rows->sets[i] != set;
}

/* The log's and the program's, each in their order. */
static void join(struct nccl_rows *rows, struct set *set)
{
    for (unsigned i = 0; i < rows->nbirths && !has_elder(rows, set); i++) {
        if (!is_of(&rows->births[i], set))
            continue;
        set->comm = rows->births[i].comm;
        set->changed = true;
        rows->nbirths--;
        memmove(&rows->births[i], &rows->births[i + 1],
                (rows->nbirths - i) * sizeof(*rows->births));
        tell_waiting(rows, set);
        return;
    }
}

void nccl_rows_meet(struct nccl_rows *rows, const struct comm_facts *facts)
{
    if (!rows || facts->told ||
        !nccl_file_may_tell((int)facts->row.library - 1))
        return;
    rows->places[facts->row.id % COMMS] = (struct place){
        .comm = facts->row.id,
        .pointer = (uintptr_t)facts->key,
        .copy = (int)facts->row.library - 1,
        .nranks = facts->row.nranks,
    };
    if (rows->nbirths == BIRTHS) {
        rows->nbirths--;
        memmove(&rows->births[0], &rows->births[1],
                rows->nbirths * sizeof(*rows->births));
    }
    rows->births[rows->nbirths++] = (struct born){
        .comm = facts->row.id,
        .pointer = (uintptr_t)facts->key,
        .copy = (int)facts->row.library - 1,
        .rank = (int)facts->row.rank,
        .nranks = (int)facts->row.nranks,
    };
}

void rows_join(struct nccl_rows *rows)
{
    for (unsigned i = 0; rows->nbirths && i < rows->nsets; i++)
        if (rows->sets[i]->complete && !rows->sets[i]->comm)
            join(rows, rows->sets[i]);
}

void rows_learn_comm(struct reading *reading, const struct nccl_log_fact *fact)
{
    struct nccl_rows *rows = reading->rows;
    const struct nccl_log_comm *about = &fact->about;
    struct set *set = obtain_set(rows, reading->copy, &fact->comm);
    if (!set)
        return;
    set->rank = about->rank;
    set->nranks = about->nranks;
    set->complete |= about->phase == NCCL_LOG_COMPLETE;
    set->changed = true;
    set->about = (struct row_nccl_comm){
        .hash = about->hash ? (int64_t)about->hash : CT_NULL,
        .nodes = or_null(about->nodes),
        .local_ranks = or_null(about->local_ranks),
        .mnnvl = or_null(about->mnnvl),
        .channels = or_null(about->channels),
        .nvls_channels = or_null(about->nvls_channels),
        .p2p_channels = or_null(about->p2p_channels),
        .network = rows_word(rows, about->network),
        .source = "log",
    };
    if (set->complete && !set->comm)
        join(rows, set);
}

void rows_tell_comms(struct nccl_rows *rows)
{
    for (unsigned i = 0; i < rows->nsets; i++) {
        struct set *set = rows->sets[i];
        struct row row = {.table = ROW_nccl_comm, .rowid = 2 * set->comm};
        if (!set->changed || !set->comm)
            continue;
        set->about.comm = set->comm;
        row.u.nccl_comm = set->about;
        rows_add(rows, &row);
        set->changed = false;
    }
}

/* A set-up may hang, and what NCCL warns of then is worth more than to know of
 * which communicator. */
static void tell_messages_of(struct nccl_rows *rows, struct set *set)
{
    struct waiting **at = &set->first;
    while (*at) {
        struct waiting *waiting = *at;
        if (waiting->row.table != ROW_nccl_message) {
            at = &waiting->next;
            continue;
        }
        *at = waiting->next;
        rows_add_message(rows, &waiting->row);
        free(waiting);
        rows->nwaiting--;
    }
    set->end = at;
}

void rows_tell_impatient(struct nccl_rows *rows, bool last)
{
    enum { PATIENCE = 4 };
    for (unsigned i = 0; rows->nwaiting && i < rows->nsets; i++)
        if (rows->sets[i]->first &&
            (++rows->sets[i]->looks >= PATIENCE || last))
            tell_messages_of(rows, rows->sets[i]);
}

/* A row of a communicator, when it is known. */
void rows_put(struct reading *reading, const struct nccl_log_fact *fact,
              struct row *row)
{
    struct nccl_rows *rows = reading->rows;
    struct set *set = fact->comm.pointer && !fact->comm.likely
                          ? obtain_set(rows, reading->copy, &fact->comm)
                          : NULL; /* else one of several */
    if (set && !set->comm && rows->nwaiting < WAITING) {
        struct waiting *waiting = malloc(sizeof(*waiting));
        if (!waiting)
            return;
        *waiting = (struct waiting){.row = *row};
        name_row(&waiting->row, CT_NULL);
        *set->end = waiting;
        set->end = &waiting->next;
        rows->nwaiting++;
        return;
    }
    name_row(row, set && set->comm ? set->comm : CT_NULL);
    rows_add(rows, row);
}
