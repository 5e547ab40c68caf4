#include "files.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "output.h"
#include "tracegen.h"

#define MAX_THREADS 64

struct files {
    struct simulation *simulation;
    struct output *outputs; /* per rank */
    struct blank_file blank;
    int nthreads;
    bool last; /* the portion that ends the files */
    atomic_int next, failed;
};

static int threads_of(const struct options *o)
{
    long n = o->threads ? o->threads : sysconf(_SC_NPROCESSORS_ONLN);

    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (int)n;
}

struct files *files_begin(struct simulation *s)
{
    const struct layout *layout = s->layout;
    struct files *files = zeros(1, sizeof(*files));
    int r;

    /* Its counting of memory takes a lock at each call. */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    files->simulation = s;
    files->nthreads = threads_of(layout->options);
    files->outputs =
        zeros((unsigned long)layout->nranks, sizeof(*files->outputs));
    for (r = 0; r < layout->nranks; r++)
        output_init(&files->outputs[r], layout->options, layout_host(layout, r),
                    r);
    if (!blank_file_make(&files->blank) && !truth_db_begin(s))
        return files;
    files->last = true;
    atomic_store(&files->failed, 1);
    files_end(files);
    return NULL;
}

static void *write_some(void *argument)
{
    struct files *files = argument;
    struct simulation *s = files->simulation;
    int rank;

    while ((rank = atomic_fetch_add(&files->next, 1)) < s->layout->nranks)
        if (trace_write(s, &files->outputs[rank], &files->blank, rank,
                        files->last))
            atomic_store(&files->failed, 1);
    return NULL;
}

static void write_portion(struct files *files)
{
    pthread_t threads[MAX_THREADS];
    int n = 0, r;

    atomic_store(&files->next, 0);
    while (n + 1 < files->nthreads &&
           !pthread_create(&threads[n], NULL, write_some, files))
        n++;
    write_some(files);
    while (n)
        pthread_join(threads[--n], NULL);
    truth_db_ops(files->simulation);
    for (r = 0; r < files->simulation->layout->nranks; r++)
        files->simulation->ranks[r].nrecords = 0;
}

void files_add(struct files *files)
{
    const struct simulation *s = files->simulation;
    int64_t n = 0;
    int r;

    for (r = 0; r < s->layout->nranks; r++)
        n += s->ranks[r].nrecords;
    if (n >= s->layout->options->portion)
        write_portion(files);
}

int files_end(struct files *files)
{
    struct simulation *s = files->simulation;
    int failed, r;

    if (!files->last) {
        files->last = true;
        write_portion(files);
    }
    failed = atomic_load(&files->failed) | (truth_db_end(s) != 0);
    for (r = 0; r < s->layout->nranks; r++)
        output_release(&files->outputs[r]);
    free(files->outputs);
    blank_file_release(&files->blank);
    free(files);
    return failed ? -1 : 0;
}
