#include "output.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "writer.h"

int blank_file_make(struct blank_file *blank)
{
    struct writer w = {0};
    char sql[128];
    sqlite3_int64 n = 0;

    if (sqlite3_open(":memory:", &w.db))
        return -1;
    snprintf(sql, sizeof(sql),
             "PRAGMA application_id=%d; PRAGMA user_version=%d; BEGIN",
             CT_APPLICATION_ID, CT_SCHEMA_VERSION);
    writer_run(&w, sql);
    writer_create(&w);
    writer_lookups(&w);
    writer_run(&w, "COMMIT");
    if (!w.failed)
        blank->bytes = sqlite3_serialize(w.db, "main", &n, 0);
    blank->n = (size_t)n;
    writer_close(&w);
    return blank->bytes ? 0 : -1;
}

void blank_file_release(struct blank_file *blank)
{
    sqlite3_free(blank->bytes);
}

void output_init(struct output *out, const struct options *o, int host,
                 int rank)
{
    *out = (struct output){
        .rank = rank,
        .clock = host_clock(o, host),
        .t0_ns = 1000 * (int64_t)(rank % 4096),
        .cut_ns = cut_of(o, rank),
        .id = 8,
    };
    out->t0_host_ns = host_time(&out->clock, out->t0_ns);
}

void output_release(struct output *out)
{
    free(out->planted);
    free(out->counters);
    free(out->counter_of);
}

int64_t output_time(const struct output *out, int64_t true_ns)
{
    return host_time(&out->clock, true_ns) - out->t0_host_ns;
}

bool output_has_end(const struct output *out, const struct record *record)
{
    return record->gpu_ns < NEVER &&
           record->start_ns + record->gpu_ns <= out->cut_ns;
}
