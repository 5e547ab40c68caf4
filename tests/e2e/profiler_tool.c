/*
 * A profiler plugin that writes down what it is told, one line per event, to
 * $TOOL_LOG.<rank>. Handles that come after their event's last stop are said
 * so. TOOL_MASK is its mask; TOOL_ERRORS=1 has all of it fail but the first
 * init. TOOL_OLDEST and TOOL_NEWEST: the versions that it exports.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commtrace/profiler_abi.h"

#define EXPORT __attribute__((visibility("default")))

enum { FAILURE = 3, MOST_CHANNELS = 64 };

struct tracked {
    const char *kind;
    int serial;
    int stopped;
    int channels, ended;
    struct tracked *parent;
    unsigned long long timer;
    char what[64]; /* func count of a task; and channel of its kernel */
};

static struct {
    pthread_mutex_t lock;
    FILE *log;
    pthread_t app;
    int serial;
    int mask;
    int errors;
} tool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int result(void)
{
    return tool.errors ? FAILURE : 0;
}

/* With the lock. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    fprintf(tool.log, "%s ",
            pthread_equal(pthread_self(), tool.app) ? "app" : "other");
    vfprintf(tool.log, format, list);
    fputc('\n', tool.log);
    fflush(tool.log);
    va_end(list);
}

static void begin(int rank)
{
    const char *name = getenv("TOOL_LOG"), *mask = getenv("TOOL_MASK");
    const char *errors = getenv("TOOL_ERRORS");
    char path[4096];

    if (tool.log)
        return;
    snprintf(path, sizeof(path), "%s.%d", name ? name : "/dev/null", rank);
    tool.log = fopen(name ? path : "/dev/null", "a");
    if (!tool.log)
        abort();
    tool.app = pthread_self();
    tool.mask = mask ? (int)strtol(mask, NULL, 0) : 0;
    tool.errors = errors && *errors == '1';
}

static int init(void **context, uint64_t hash, int *mask, int nodes, int nranks,
                int rank)
{
    static char contexts[64];
    static int n;

    pthread_mutex_lock(&tool.lock);
    begin(rank);
    *context = &contexts[n % 64];
    *mask = tool.mask;
    say("init %d nodes %d ranks %d rank %d%s", n, nodes, nranks, rank,
        hash ? "" : " no hash");
    n++;
    pthread_mutex_unlock(&tool.lock);
    return n > 1 ? result() : 0;
}

static struct tracked *track(const char *kind)
{
    struct tracked *new = calloc(1, sizeof(*new)); /* kept to the end */

    if (!new)
        abort();
    new->kind = kind;
    new->serial = tool.serial++;
    return new;
}

static const char *name_of(const void *handle)
{
    return handle ? ((const struct tracked *)handle)->kind : "none";
}

/* Parents of what a graph runs are as they were at its capture. */
static void check_parent(const struct tracked *parent)
{
    if (parent && !strcmp(parent->kind, "coll") && parent->stopped &&
        parent->ended == parent->channels)
        say("LATE %s", parent->kind);
}

static struct tracked *start_coll(const struct ct_profiler_coll *coll,
                                  void *parent)
{
    struct tracked *new = track("coll");

    new->channels = coll->channels;
    snprintf(new->what, sizeof(new->what), "%s %zu", coll->func, coll->count);
    say("coll+ %s %zu %s root %d channels %d %s %s parent %s", coll->func,
        coll->count, coll->datatype, coll->root, coll->channels,
        coll->algorithm, coll->protocol, name_of(parent));
    return new;
}

static struct tracked *start_p2p(const struct ct_profiler_p2p *p2p,
                                 void *parent)
{
    struct tracked *new = track("p2p");

    new->channels = p2p->channels;
    snprintf(new->what, sizeof(new->what), "%s %zu", p2p->func, p2p->count);
    say("p2p+ %s %zu %s peer %d channels %d parent %s", p2p->func, p2p->count,
        p2p->datatype, p2p->peer, p2p->channels, name_of(parent));
    return new;
}

static struct tracked *start_kernel(const struct ct_profiler_kernel *kernel,
                                    struct tracked *parent)
{
    struct tracked *new = track("kernel");

    new->timer = kernel->timer;
    new->parent = parent;
    check_parent(parent);
    snprintf(new->what, sizeof(new->what), "%.40s channel %d #%d",
             parent ? parent->what : "none", kernel->channel, new->serial);
    say("kernel+ %s", new->what);
    return new;
}

/* The events of all versions; NULL for others. */
static struct tracked *start_known(uint64_t type,
                                   const struct ct_profiler_coll *coll,
                                   const struct ct_profiler_p2p *p2p,
                                   const struct ct_profiler_kernel *kernel,
                                   void *parent)
{
    switch (type) {
    case CT_PROFILER_GROUP:
        say("group+");
        return track("group");
    case CT_PROFILER_COLL:
        return start_coll(coll, parent);
    case CT_PROFILER_P2P:
        return start_p2p(p2p, parent);
    case CT_PROFILER_KERNEL_CHANNEL:
        return start_kernel(kernel, parent);
    default:
        return NULL;
    }
}

#if TOOL_OLDEST <= 4
static int start_v4(void *context, void **handle,
                    struct ct_profiler_event_v4 *event)
{
    struct tracked *new;

    (void)context;
    pthread_mutex_lock(&tool.lock);
    new = start_known(event->type, &event->u.coll, &event->u.p2p,
                      &event->u.kernel, event->parent);
    if (!new)
        say("event %d", event->type);
    *handle = tool.errors ? NULL : new;
    pthread_mutex_unlock(&tool.lock);
    return result();
}

#endif

#if TOOL_NEWEST >= 5
static struct tracked *start_call(const struct ct_profiler_event_v5 *event)
{
    switch (event->type) {
    case CT_PROFILER_GROUP_API:
        say("group_api+ depth %d captured %d", event->u.group_api.depth,
            event->u.group_api.captured);
        return track("group_api");
    case CT_PROFILER_COLL_API:
        say("coll_api+ %s %zu %s captured %d parent %s", event->u.coll_api.func,
            event->u.coll_api.count, event->u.coll_api.datatype,
            event->u.coll_api.captured, name_of(event->parent));
        return track("coll_api");
    case CT_PROFILER_P2P_API:
        say("p2p_api+ %s %zu %s captured %d parent %s", event->u.p2p_api.func,
            event->u.p2p_api.count, event->u.p2p_api.datatype,
            event->u.p2p_api.captured, name_of(event->parent));
        return track("p2p_api");
    case CT_PROFILER_KERNEL_LAUNCH:
        say("launch+ parent %s", name_of(event->parent));
        return track("launch");
    default:
        say("event %llu", (unsigned long long)event->type);
        return NULL;
    }
}

static int start_v5(void *context, void **handle,
                    struct ct_profiler_event_v5 *event)
{
    struct tracked *new;

    (void)context;
    pthread_mutex_lock(&tool.lock);
    new = start_known(event->type, &event->u.coll.is, &event->u.p2p.is,
                      &event->u.kernel, event->parent);
    if (!new)
        new = start_call(event);
    *handle = tool.errors ? NULL : new;
    pthread_mutex_unlock(&tool.lock);
    return result();
}

#endif

static int stop(void *handle)
{
    struct tracked *event = handle;

    pthread_mutex_lock(&tool.lock);
    if (event->stopped)
        say("TWICE %s", event->kind);
    event->stopped = 1;
    if (event->parent)
        event->parent->ended++;
    if (event->parent)
        say("kernel- %s", event->what);
    else
        say("%s-", event->kind);
    pthread_mutex_unlock(&tool.lock);
    return result();
}

static int record(void *handle, int state, union ct_profiler_args *args)
{
    struct tracked *event = handle;

    pthread_mutex_lock(&tool.lock);
    if (event->stopped)
        say("LATE %s", event->kind);
    if (state == CT_PROFILER_KERNEL_STOP)
        say("kernel= %s %s", event->what,
            args->kernel.timer >= event->timer ? "later" : "EARLY");
    else
        say("%s= %d", event->kind, state);
    pthread_mutex_unlock(&tool.lock);
    return result();
}

static int finalize(void *context)
{
    (void)context;
    pthread_mutex_lock(&tool.lock);
    say("finalize");
    pthread_mutex_unlock(&tool.lock);
    return result();
}

#if TOOL_OLDEST <= 4
static int init_v4(void **context, int *mask, const char *name, uint64_t hash,
                   int nodes, int nranks, int rank, ct_profiler_log *log)
{
    (void)name, (void)log;
    return init(context, hash, mask, nodes, nranks, rank);
}

EXPORT const struct ct_profiler_v4 ncclProfiler_v4 = {
    "tool", init_v4, start_v4, stop, record, finalize};
#endif

#if TOOL_NEWEST >= 5
static int init_v5(void **context, uint64_t hash, int *mask, const char *name,
                   int nodes, int nranks, int rank, ct_profiler_log *log)
{
    (void)name, (void)log;
    return init(context, hash, mask, nodes, nranks, rank);
}

#define TABLE(version_)                                             \
    EXPORT const struct ct_profiler_v5 ncclProfiler_v##version_ = { \
        "tool", init_v5, start_v5, stop, record, finalize};
TABLE(5)
#if TOOL_NEWEST >= 7
TABLE(6)
TABLE(7)
#endif
#endif
