/* What NCCL chose for each collective, by its log. */
#include "nccl_rows_parts.h"

#include "commtrace/ops.h"

#include <stdlib.h>

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
    const struct row_choice_class class = {
        .comm = set->comm,
        .kind = or_null(choice->op),
        .bytes = choice->bytes,
        .peer = CT_NULL,
        .algorithm = rows_word(rows, choice->algorithm),
        .protocol = rows_word(rows, choice->protocol),
        .channels = or_null(choice->channels),
        .source = "log",
    };
    struct row row = {.table = ROW_choice, .rowid = CT_NULL};
    row.u.choice = (struct row_choice){
        .id = rows->last_choice += 2,
        .class = choice_classes_find(&rows->classes, &class, rows->batch),
        .n = set->choices[kind]++,
        .launch = CT_NULL,
        .start_ns = CT_NULL,
        .gpu_ns = CT_NULL,
    };
    rows_add(rows, &row);
}
