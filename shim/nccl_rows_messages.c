/* What NCCL warns of, each text once. */
#include "nccl_rows_parts.h"

#include <stdlib.h>
#include <string.h>

void rows_add_message(struct nccl_rows *rows, const struct row *row)
{
    const struct row_nccl_message *new = &row->u.nccl_message;
    char *text = (char *)(uintptr_t) new->text;
    unsigned i = 0;
    while (i < rows->nmessages && (rows->messages[i].kind != new->kind ||
                                   strcmp(rows->messages[i].text, text) != 0))
        i++;
    struct message *message = &rows->messages[i];
    if (i == MESSAGES) {
        rows->more_messages++;
        free(text);
    } else if (i == rows->nmessages) {
        *message = (struct message){text, new->kind, new->comm, 1, 0};
        rows->nmessages++;
    } else {
        if (message->comm != new->comm)
            message->comm = CT_NULL;
        message->n++;
        free(text);
    }
}

void rows_tell_message(struct nccl_rows *rows, int64_t rowid,
                       const struct row_nccl_message *message)
{
    struct row row = {.table = ROW_nccl_message, .rowid = rowid};
    row.u.nccl_message = *message;
    if (rows->batch)
        batch_add_row(rows->batch, &row);
}

enum { MORE_ROW = NCCL_COPIES + 1, FIRST_MESSAGE_ROW };

void rows_tell_messages(struct nccl_rows *rows)
{
    for (unsigned i = 0; i < rows->nmessages; i++) {
        struct message *message = &rows->messages[i];
        if (message->told == message->n)
            continue;
        message->told = message->n;
        rows_tell_message(rows, FIRST_MESSAGE_ROW + i,
                          &(struct row_nccl_message){message->comm,
                                                     message->kind, message->n,
                                                     message->text});
    }
    if (rows->told_more == rows->more_messages)
        return;
    rows->told_more = rows->more_messages;
    rows_tell_message(
        rows, MORE_ROW,
        &(struct row_nccl_message){CT_NULL, "unknown", rows->more_messages,
                                   "more messages than are kept"});
}
