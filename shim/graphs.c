#include "graphs.h"

#include "hash.h"
#include "lock.h"
#include "record.h"

#include <errno.h>
#include <stdlib.h>

/* Sets of a few places each, so that a look-up is short whatever has been. */
enum { SETS = 1 << 13, PLACES = 8 };

struct place {
    _Atomic uint64_t key; /* 0: free */
    _Atomic int64_t graph;
};

static _Atomic(struct place *) places; /* SETS * PLACES, made once */
static struct lock lock = LOCK_INITIALIZER;
static int64_t joined; /* numbers given so far */

/* The program's errno, for give(). */
static int take(void)
{
    int saved = errno;
    lock_take(&lock);
    return saved;
}

static void give(int saved)
{
    lock_give(&lock);
    errno = saved;
}

_Atomic uint64_t graphs_untracked;
_Atomic bool graphs_in_use;

static uint64_t key_of(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

/* Handles are addresses of objects: even. */
static uint64_t key_of_capture(int64_t capture)
{
    return (uint64_t)capture << 1 | 1;
}

static struct place *set_of(struct place *all, uint64_t key)
{
    return &all[(hash_mix(key) & (SETS - 1)) * PLACES];
}

static struct place *find(uint64_t key)
{
    /* Acquire: the places are zeroed. */
    struct place *all = atomic_load_explicit(&places, memory_order_acquire);
    if (!all || !key)
        return NULL;
    struct place *set = set_of(all, key);
    for (int i = 0; i < PLACES; i++)
        /* Acquire: the value that was stored before the key. */
        if (atomic_load_explicit(&set[i].key, memory_order_acquire) == key)
            return &set[i];
    return NULL;
}

int64_t graphs_held(const void *handle)
{
    /* No other thread may end this handle while it is in use: its place stays
     * its own. */
    struct place *place = find(key_of(handle));
    return place ? atomic_load_explicit(&place->graph, memory_order_relaxed)
                 : 0;
}

/* The rest holds the lock. */
static int64_t held(uint64_t key)
{
    struct place *place = find(key);
    return place ? atomic_load_explicit(&place->graph, memory_order_relaxed)
                 : 0;
}

static struct place *free_place(uint64_t key)
{
    struct place *all = atomic_load_explicit(&places, memory_order_relaxed);
    if (!all) {
        all = calloc((size_t)SETS * PLACES, sizeof(*all));
        if (!all)
            return NULL;
        atomic_store_explicit(&places, all, memory_order_release);
    }
    struct place *set = set_of(all, key);
    for (int i = 0; i < PLACES; i++)
        if (!atomic_load_explicit(&set[i].key, memory_order_relaxed))
            return &set[i];
    return NULL;
}

static void hold(uint64_t key, int64_t graph)
{
    struct place *place = find(key);
    if (!place && !graph)
        return;
    if (!place && !(place = free_place(key))) {
        atomic_fetch_add_explicit(&graphs_untracked, 1, memory_order_relaxed);
        return;
    }
    atomic_store_explicit(&place->graph, graph, memory_order_relaxed);
    /* Release: whoever sees the key sees its graph. */
    atomic_store_explicit(&place->key, graph ? key : 0, memory_order_release);
}

static int64_t join(int64_t first, int64_t second)
{
    if (!first || !second)
        return first ? first : second;
    int64_t id = -++joined;
    record_graph(id, first, second);
    return id;
}

void graphs_hold(const void *handle, int64_t graph)
{
    if (!handle)
        return;
    int saved = take();
    hold(key_of(handle), graph);
    give(saved);
}

void graphs_add(const void *handle, int64_t graph)
{
    if (!handle || !graph)
        return;
    int saved = take();
    hold(key_of(handle), join(held(key_of(handle)), graph));
    give(saved);
}

void graphs_add_to_capture(int64_t capture, int64_t graph)
{
    if (!capture || !graph)
        return;
    uint64_t key = key_of_capture(capture);
    int saved = take();
    hold(key, join(held(key), graph));
    give(saved);
}

int64_t graphs_end_capture(int64_t capture)
{
    if (!capture)
        return 0;
    uint64_t key = key_of_capture(capture);
    int saved = take();
    int64_t more = held(key);
    hold(key, 0);
    record_graph(capture, 0, 0);
    int64_t graph = join(capture, more);
    give(saved);
    return graph;
}
