/* What NCCL chose for each collective, by its log. */
#include "nccl_rows_parts.h"

#include "hash.h"

#include "commtrace/ops.h"

#include <stdlib.h>
#include <string.h>

enum { CLASSES = 4096 };

struct class
{
    int64_t id; /* 0: free */
    struct row_choice_class row;
};

static bool is_class(const struct row_choice_class *a,
                     const struct row_choice_class *b)
{
    return a->comm == b->comm && a->kind == b->kind && a->bytes == b->bytes &&
           a->algorithm == b->algorithm && a->protocol == b->protocol &&
           a->channels == b->channels;
}

static uint64_t hash_class(const struct row_choice_class *row)
{
    uint64_t hash = hash_add((uint64_t)row->comm, (uint64_t)row->kind);
    hash = hash_add(hash, (uint64_t)row->bytes);
    hash = hash_add(hash, (uintptr_t)row->algorithm);
    hash = hash_add(hash, (uintptr_t)row->protocol);
    return hash_add(hash, (uint64_t)row->channels);
}

/* When the table is full it is emptied: a class may then have more numbers than
 * one. */
static int64_t class_of(struct nccl_rows *rows,
                        const struct row_choice_class *wanted)
{
    if (!rows->classes &&
        !(rows->classes = calloc(CLASSES, sizeof(struct class))))
        return CT_NULL;
    if (rows->nclasses > CLASSES / 2) {
        memset(rows->classes, 0, CLASSES * sizeof(*rows->classes));
        rows->nclasses = 0;
    }
    unsigned at = (unsigned)(hash_class(wanted) % CLASSES);
    while (rows->classes[at].id && !is_class(&rows->classes[at].row, wanted))
        at = (at + 1) % CLASSES;
    struct class *class = &rows->classes[at];
    if (!class->id) {
        struct row row = {.table = ROW_choice_class, .rowid = CT_NULL};
        class->id = rows->last_class += 2;
        class->row = *wanted;
        class->row.id = class->id;
        row.u.choice_class = class->row;
        rows->nclasses++;
        rows_add(rows, &row);
    }
    return class->id;
}

/* Of communicators that are set up: before that nothing is chosen. */
void rows_put_choice(struct reading *reading, const struct nccl_log_fact *fact)
{
    const struct nccl_log_choice *choice = &fact->choice;
    struct nccl_rows *rows = reading->rows;
    struct set *set = fact->comm.pointer
                          ? rows_find_set(rows, reading->copy, &fact->comm)
                          : NULL;
    if (!set || !set->comm)
        return;
    if (!set->choices &&
        !(set->choices = calloc(CT_OP_COUNT + 1, sizeof(*set->choices))))
        return;
    int kind =
        choice->op >= 0 && choice->op < CT_OP_COUNT ? choice->op : CT_OP_COUNT;
    struct row row = {.table = ROW_choice, .rowid = CT_NULL};
    row.u.choice = (struct row_choice){
        .id = rows->last_choice += 2,
        .class = class_of(rows,
                          &(struct row_choice_class){
                              .comm = set->comm,
                              .kind = or_null(choice->op),
                              .bytes = choice->bytes,
                              .peer = CT_NULL,
                              .algorithm = rows_word(rows, choice->algorithm),
                              .protocol = rows_word(rows, choice->protocol),
                              .channels = or_null(choice->channels),
                              .source = "log",
                          }),
        .n = set->choices[kind]++,
        .launch = CT_NULL,
        .start_ns = CT_NULL,
        .gpu_ns = CT_NULL,
    };
    rows_add(rows, &row);
}
