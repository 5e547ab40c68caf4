#include "trace/progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FIRST_MS 2000
#define NEXT_MS 250

/* A process has one terminal, so there is one of this. */
static struct {
    int depth; /* of pairs; this and running are the caller's thread's */
    bool running;
    pthread_t thread;
    pthread_mutex_t mutex; /* of all below but done */
    pthread_cond_t ended;
    bool end;
    const char *command, *doing;
    int total, width; /* of the line on the terminal */
    atomic_int done;
} progress = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void rewrite(const char *line, int width)
{
    fprintf(stderr, "\r%-*s\r%s", progress.width, "", line);
    fflush(stderr);
    progress.width = width;
}

static void show(void)
{
    char line[160];
    int n;

    if (progress.total)
        n = snprintf(line, sizeof(line), "%s: %s, %d of %d", progress.command,
                     progress.doing, atomic_load(&progress.done),
                     progress.total);
    else
        n = snprintf(line, sizeof(line), "%s: %s", progress.command,
                     progress.doing);
    rewrite(line, n);
}

static struct timespec after(struct timespec t, int ms)
{
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000L;
    }
    return t;
}

static void *tick(void *unused)
{
    struct timespec next;

    (void)unused;
    clock_gettime(CLOCK_MONOTONIC, &next);
    next = after(next, FIRST_MS);
    pthread_mutex_lock(&progress.mutex);
    while (!progress.end) {
        if (!pthread_cond_timedwait(&progress.ended, &progress.mutex, &next))
            continue;
        show();
        next = after(next, NEXT_MS);
    }
    if (progress.width)
        rewrite("", 0);
    pthread_mutex_unlock(&progress.mutex);
    return NULL;
}

void ct_progress_begin(const char *command)
{
    pthread_condattr_t attributes;

    if (progress.depth++ || !isatty(STDERR_FILENO))
        return;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&progress.ended, &attributes);
    pthread_condattr_destroy(&attributes);
    progress.command = command;
    progress.doing = "starting";
    progress.total = 0;
    progress.end = false;
    progress.running = !pthread_create(&progress.thread, NULL, tick, NULL);
}

void ct_progress_end(void)
{
    if (--progress.depth || !progress.running)
        return;
    pthread_mutex_lock(&progress.mutex);
    progress.end = true;
    pthread_cond_signal(&progress.ended);
    pthread_mutex_unlock(&progress.mutex);
    pthread_join(progress.thread, NULL);
    pthread_cond_destroy(&progress.ended);
    progress.running = false;
}

void ct_progress_stage(const char *doing, int total)
{
    pthread_mutex_lock(&progress.mutex);
    progress.doing = doing;
    progress.total = total;
    atomic_store(&progress.done, 0);
    pthread_mutex_unlock(&progress.mutex);
}

void ct_progress_item(void)
{
    atomic_fetch_add(&progress.done, 1);
}
