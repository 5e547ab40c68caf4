/* The plugin: how it is found, and what it is told in its version's words. */
#include "nccl/profiler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "nccl/comm.h"
#include "nccl/layout.h"
#include "nccl/log.h"
#include "nccl/release.h"

static struct {
    pthread_mutex_t lock;
    int failed;
    int users;
    void *library;
    int version;
    const struct ct_profiler_v4 *v4; /* one of these */
    const struct ct_profiler_v5 *v5;
    int mask; /* the plugin's to write */
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Any beginning of the word will do, as in NCCL. */
static int means_static(const char *name)
{
    return !strncasecmp(name, "STATIC_PLUGIN", strlen(name));
}

static void *open_library(const char *name)
{
    char path[4096];
    void *library;

    if (!name)
        return dlopen("libnccl-profiler.so", RTLD_NOW | RTLD_LOCAL);
    if (means_static(name))
        return dlopen(NULL, RTLD_NOW | RTLD_LOCAL);
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library)
        return library;
    snprintf(path, sizeof(path), "libnccl-profiler-%s.so", name);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* The newest version that the release knows. */
static int newest_version(void)
{
    int release = nccl_release();

    if (release >= 23102)
        return 7;
    if (release >= 22902)
        return 6;
    if (release >= 22803)
        return 5;
    return release >= 22703 ? 4 : 0;
}

static int find_table(void)
{
    /* As whole words, by which an NCCL is known that is inside a program. */
    static const char *const names[] = {"ncclProfiler_v4", "ncclProfiler_v5",
                                        "ncclProfiler_v6", "ncclProfiler_v7"};

    for (int v = newest_version(); v >= CT_PROFILER_OLDEST; v--) {
        void *table = dlsym(plugin.library, names[v - CT_PROFILER_OLDEST]);

        if (!table)
            continue;
        log_info(LOG_INIT,
                 nccl_release() < 22803 ? "PROFILER/Plugin: loaded %s"
                                        : "PROFILER/Plugin: Loaded %s (v%d)",
                 *(const char *const *)table, v);
        plugin.version = v;
        plugin.v4 = v == 4 ? table : NULL;
        plugin.v5 = v > 4 ? table : NULL;
        return 1;
    }
    return 0;
}

static void close_library(void)
{
    dlclose(plugin.library);
    plugin.library = NULL;
    plugin.v4 = NULL;
    plugin.v5 = NULL;
}

/* Once it has failed it is not tried again. */
static int load(void)
{
    const char *name = getenv("NCCL_PROFILER_PLUGIN");

    if (plugin.users++)
        return 1;
    plugin.failed |= !newest_version() || (name && !strcasecmp(name, "none"));
    if (!plugin.failed) {
        plugin.library = open_library(name);
        if (!plugin.library)
            log_info(LOG_INIT | LOG_ENV, "PROFILER/Plugin: Could not find: %s",
                     name ? name : "libnccl-profiler.so");
        plugin.failed = !plugin.library || !find_table();
        if (plugin.failed && plugin.library)
            close_library();
    }
    plugin.users -= plugin.failed;
    return !plugin.failed;
}

static void unload(void)
{
    if (!--plugin.users)
        close_library();
}

static int init(struct ncclComm *comm)
{
    void **context = &comm->profiled.context;
    const struct layout *l = layout_of(comm);
    int nodes = l ? l->nodes : 1;

    comm->profiled.nodes = nodes;
    if (plugin.v4)
        return plugin.v4->init(context, &plugin.mask, NULL, comm->nccl_hash,
                               nodes, comm->nranks, comm->rank, NULL);
    return plugin.v5->init(context, comm->nccl_hash, &plugin.mask, NULL, nodes,
                           comm->nranks, comm->rank, NULL);
}

void profiler_comm_begin(struct ncclComm *comm)
{
    int loaded;

    pthread_mutex_lock(&plugin.lock);
    loaded = load();
    pthread_mutex_unlock(&plugin.lock);
    if (!loaded)
        return;
    if (init(comm) == 0) {
        comm->profiled.told = 1;
        return;
    }
    pthread_mutex_lock(&plugin.lock);
    unload();
    pthread_mutex_unlock(&plugin.lock);
}

static void finalize(void *context)
{
    if (plugin.v4)
        plugin.v4->finalize(context);
    else
        plugin.v5->finalize(context);
}

void profiler_comm_close(struct ncclComm *comm)
{
    if (!comm->profiled.told)
        return;
    if (comm->profiled.context)
        finalize(comm->profiled.context);
    pthread_mutex_lock(&plugin.lock);
    unload();
    pthread_mutex_unlock(&plugin.lock);
    comm->profiled.told = 0;
}

int profiler_mask(void)
{
    return __atomic_load_n(&plugin.mask, __ATOMIC_RELAXED);
}

int profiler_is_told_of_calls(void)
{
    return plugin.v5 != NULL;
}

/* What version 4 knows not, it is not told. */
static void start_v4(void *context, void **handle,
                     const struct ct_profiler_event_v5 *event)
{
    struct ct_profiler_event_v4 old = {.parent = event->parent,
                                       .rank = event->rank};

    switch (event->type) {
    case CT_PROFILER_GROUP:
        break;
    case CT_PROFILER_COLL:
        old.u.coll = event->u.coll.is;
        old.parent = event->u.coll.group;
        break;
    case CT_PROFILER_P2P:
        old.u.p2p = event->u.p2p.is;
        old.parent = event->u.p2p.group;
        break;
    case CT_PROFILER_KERNEL_CHANNEL:
        old.u.kernel = event->u.kernel;
        break;
    default:
        return;
    }
    old.type = (uint8_t)event->type;
    plugin.v4->start(context, handle, &old);
}

void profiler_start(struct ncclComm *comm, void **handle,
                    struct ct_profiler_event_v5 *event)
{
    if (plugin.v4)
        start_v4(comm->profiled.context, handle, event);
    else if (plugin.v5)
        plugin.v5->start(comm->profiled.context, handle, event);
}

void profiler_record(void *handle, int state, union ct_profiler_args *args)
{
    if (handle && plugin.v4)
        plugin.v4->record(handle, state, args);
    else if (handle && plugin.v5)
        plugin.v5->record(handle, state, args);
}

void profiler_stop(void *handle)
{
    if (handle && plugin.v4)
        plugin.v4->stop(handle);
    else if (handle && plugin.v5)
        plugin.v5->stop(handle);
}
