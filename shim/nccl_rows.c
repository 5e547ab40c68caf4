#include "nccl_rows_parts.h"

#include "absence.h"
#include "hash.h"
#include "nccl_file.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH_MOST = 1 << 15 };

const char *rows_word(struct nccl_rows *rows, const char *text)
{
    if (!text || !*text)
        return NULL;
    unsigned at = (unsigned)(hash_bytes(0, text, strlen(text)) % WORDS);
    for (unsigned i = 0; i < WORDS; i++, at = (at + 1) % WORDS) {
        if (!rows->words[at])
            return rows->words[at] = strdup(text);
        if (!strcmp(rows->words[at], text))
            return rows->words[at];
    }
    return "(more words than are kept)";
}

void rows_add(struct nccl_rows *rows, const struct row *row)
{
    if (row->table == ROW_nccl_message)
        rows_add_message(rows, row);
    else if (rows->batch)
        batch_add_row(rows->batch, row);
}

static bool is_full(const struct nccl_rows *rows)
{
    return rows->batch && rows->batch->n >= BATCH_MOST;
}

static void open_log(struct reading *reading)
{
    if (reading->log)
        return;
    reading->log =
        nccl_log_open(nccl_file_pid(reading->copy),
                      nccl_file_host(reading->copy), rows_take, reading);
    if (reading->log)
        nccl_log_expect_calls(reading->log);
}

static size_t read_log(struct reading *reading)
{
    struct nccl_rows *rows = reading->rows;
    size_t n, all = 0;
    while (!is_full(rows) &&
           (n = nccl_file_read(reading->copy, rows->bytes, PIECE)) > 0) {
        open_log(reading);
        if (reading->log)
            nccl_log_feed(reading->log, rows->bytes, n);
        all += n;
    }
    return all;
}

static void tell_absence(struct reading *reading)
{
    const char *why = nccl_file_absence(reading->copy);
    if (!why || !*why || reading->told_absence || !reading->rows->batch)
        return;
    absence_add(reading->rows->batch, "nccl_log", why);
    reading->told_absence = true;
}

static void tell_unknown(struct reading *reading)
{
    if (!reading->log)
        return;
    uint64_t n = nccl_log_counted(reading->log)->unknown;
    if (n == reading->told_unknown)
        return;
    reading->told_unknown = n;
    rows_tell_message(reading->rows, reading->copy + 1,
                      &(struct row_nccl_message){CT_NULL, "unknown", (int64_t)n,
                                                 "lines in no known shape"});
}

void nccl_rows_add(struct nccl_rows *rows, struct batch *batch, bool all_calls,
                   bool last)
{
    if (!rows)
        return;
    size_t calls = batch->n, came = 0;
    rows->batch = batch;
    rows_join(rows);
    for (int i = 0; i < NCCL_COPIES; i++)
        came += read_log(&rows->of[i]);
    rows_take_calls(rows, batch, calls);
    rows->ahead = !all_calls && (came > 0 || rows->ahead);
    for (int i = 0; i < NCCL_COPIES; i++)
        if (rows->of[i].log && (came == 0 || last))
            nccl_log_flush(rows->of[i].log, !rows->ahead, last);
    rows_join(rows);
    rows_tell_impatient(rows, last);
    rows_tell_comms(rows);
    rows_tell_messages(rows);
    for (int i = 0; i < NCCL_COPIES; i++) {
        tell_absence(&rows->of[i]);
        tell_unknown(&rows->of[i]);
    }
    rows->batch = NULL;
}

void nccl_rows_discard(struct nccl_rows *rows)
{
    if (!rows)
        return;
    for (int i = 0; i < NCCL_COPIES; i++)
        while (nccl_file_read(i, rows->bytes, PIECE) > 0)
            ;
}

struct nccl_rows *nccl_rows_open(void)
{
    struct nccl_rows *rows = calloc(1, sizeof(*rows));
    for (int i = 0; rows && i < NCCL_COPIES; i++) {
        rows->of[i].rows = rows;
        rows->of[i].copy = i;
    }
    return rows;
}

void nccl_rows_close(struct nccl_rows *rows)
{
    if (!rows)
        return;
    for (int i = 0; i < NCCL_COPIES; i++)
        if (rows->of[i].log)
            nccl_log_close(rows->of[i].log);
    for (unsigned i = 0; i < rows->nsets; i++)
        rows_free_set(rows, rows->sets[i]);
    for (unsigned i = 0; i < WORDS; i++)
        free(rows->words[i]);
    for (unsigned i = 0; i < rows->nmessages; i++)
        free(rows->messages[i].text);
    free(rows);
}
