/* Communicators of an NCCL that no hook sees, and where it is. */
#include "lock.h"
#include "record.h"
#include "scope.h"
#include "told_parts.h"

#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LIBRARIES = 4 };

static struct {
    struct lock lock;
    char libraries[LIBRARIES][1024];
    _Atomic int nlibraries;
    char why[1600];
    _Atomic bool has_why;
} told = {.lock = LOCK_INITIALIZER};

/* NCCL by its name, so that what leads to it is no tool before another one. */
static bool is_library(const struct link_map *object)
{
    const char *base = strrchr(object->l_name, '/');
    return !strncmp(base ? base + 1 : object->l_name, "libnccl", 7);
}

bool told_is_alone(const void *code)
{
    const struct link_map *object = scope_object(code);
    bool alone = object != NULL;
    for (int i = 0; i < NCCL_COPIES && alone; i++) {
        const struct nccl_copy *copy = &nccl_copies[i];
        const struct link_map *is =
            atomic_load_explicit(&copy->object, memory_order_acquire);
        if (is && atomic_load_explicit(&copy->used, memory_order_relaxed))
            alone = is != object && is_library(is);
    }
    return alone;
}

/* The loader has no name for the program. */
static void path_of(const void *code, char *path, size_t size)
{
    const struct link_map *object = scope_object(code);
    snprintf(path, size, "%s", object ? object->l_name : "");
    if (*path)
        return;
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    path[n > 0 ? n : 0] = 0;
}

/* From 1; 0: more than are kept. */
static int library_of(const void *code)
{
    char path[sizeof(told.libraries[0])];
    path_of(code, path, sizeof(path));
    int n = atomic_load_explicit(&told.nlibraries, memory_order_relaxed);
    for (int i = 0; i < n; i++)
        if (!strcmp(told.libraries[i], path))
            return i + 1;
    if (n == LIBRARIES)
        return 0;
    snprintf(told.libraries[n], sizeof(told.libraries[n]), "%s", path);
    /* Release: with the name. */
    atomic_store_explicit(&told.nlibraries, n + 1, memory_order_release);
    return n + 1;
}

static void say_why(const struct told_birth *birth, int library)
{
    if (atomic_load_explicit(&told.has_why, memory_order_relaxed))
        return;
    snprintf(
        told.why, sizeof(told.why),
        "no hook sees the NCCL in %.900s: its profiler tells of its calls, "
        "but not their results and operators, who called, and calls that "
        "move nothing or are of one rank%s",
        library ? told.libraries[library - 1] : "the program",
        birth->launches_only
            ? "; NCCL 2.27 tells of launches alone: no streams, groups "
              "and times of calls, and an all-gather or broadcast as bytes"
            : "");
    /* Release: with the text. */
    atomic_store_explicit(&told.has_why, true, memory_order_release);
}

struct comm *told_comm(const struct told_birth *birth)
{
    struct comm_birth known = {
        .origin = CT_COMM_TOLD,
        .identity = identity_of_hash(birth->hash, birth->nranks, birth->rank),
        .nranks = birth->nranks,
        .rank = birth->rank,
        .enter_ns = record_now(),
    };
    if (birth->name)
        snprintf(known.name, sizeof(known.name), "%s", birth->name);
    lock_take(&told.lock);
    int library = library_of(birth->code);
    known.library = library ? NCCL_COPIES + library : 0;
    say_why(birth, library);
    told_make_transfers();
    lock_give(&told.lock);
    return comm_add_told((ncclComm_t)(uintptr_t)birth->key, &known);
}

void told_end(struct comm *comm)
{
    ncclComm_t key = atomic_load_explicit(&comm->key, memory_order_relaxed);
    comm_take_out(key);
    comm_note_end(comm);
    comm_recycle(comm);
}

/* ---- the writer's side ---- */

const char *told_library(int i)
{
    return i < atomic_load_explicit(&told.nlibraries, memory_order_acquire)
               ? told.libraries[i]
               : NULL;
}

const char *told_absence(void)
{
    /* Acquire: the text. */
    return atomic_load_explicit(&told.has_why, memory_order_acquire) ? told.why
                                                                     : NULL;
}
