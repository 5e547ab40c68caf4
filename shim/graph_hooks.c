/*
 * Hooks of the CUDA calls that make and launch graphs. Each one ends in the
 * real call; what surrounds it only watches. Launches are on the program's hot
 * path and take one slot of the ring; the other calls are rare and take a lock.
 * Until the process has called NCCL all of them only forward.
 */
#include "capture.h"
#include "driver.h"
#include "graphs.h"
#include "hooks.h"
#include "record.h"

/* CUresult and cudaError_t agree on the values that are asked for here. */
enum { CUDA_OK = 0, CUDA_NOT_FOUND = 500 };

static uint64_t number_of(const void *stream, bool own)
{
    return own && !stream ? DRIVER_STREAM_PER_THREAD
                          : (uint64_t)(uintptr_t)stream;
}

/* The program's own call in a process that records. hook_leave() follows. */
static bool enter(struct hook_from from)
{
    return hook_enter_quietly(from) && init_has_begun();
}

/* The same for what matters only once an op has been captured. */
static bool enter_making(struct hook_from from)
{
    return enter(from) && graphs_are_in_use();
}

struct graph_launch {
    struct ct_slot *slot;
    uint64_t position;
    int64_t graph;
    int64_t capture; /* the launch only becomes part of this one */
};

static void open_launch(struct graph_launch *launch, const void *exec,
                        uint64_t stream)
{
    *launch = (struct graph_launch){.graph = graphs_held(exec)};
    if (graphs_are_in_use() && (launch->capture = capture_here(stream)))
        return;
    launch->slot = record_open(CT_SLOT_GRAPH_LAUNCH, 0, &launch->position);
    if (!launch->slot)
        return;
    launch->slot->enter_ns = record_now();
    launch->slot->u.graph_launch.graph = launch->graph;
    launch->slot->u.graph_launch.stream = stream;
    ring_publish(launch->slot, launch->position, CT_SLOT_OPEN);
}

static void close_launch(struct graph_launch *launch, int result)
{
    if (launch->slot && init_has_begun())
        record_close(launch->slot, launch->position, record_now(), result, -1);
    if (launch->capture && result == CUDA_OK && launch->graph)
        graphs_add_to_capture(launch->capture, launch->graph);
}

typedef int launch_call(void *exec, void *stream);

static int launch(launch_call *real, bool own, struct hook_from from,
                  void *exec, void *stream)
{
    struct graph_launch seen;
    bool watching = enter(from);
    if (watching)
        open_launch(&seen, exec, number_of(stream, own));
    int result = real(exec, stream);
    if (watching)
        close_launch(&seen, result);
    hook_leave();
    return result;
}

typedef int begin_to_call(void *stream, void *graph, const void *dependencies,
                          const void *edges, size_t n, int mode);

/* What the graph held before is part of what the capture will have made. */
static int begin_to(begin_to_call *real, bool own, struct hook_from from,
                    void *stream, void *graph, const void *dependencies,
                    const void *edges, size_t n, int mode)
{
    bool watching = enter_making(from);
    int result = real(stream, graph, dependencies, edges, n, mode);
    if (watching && result == CUDA_OK)
        graphs_add_to_capture(capture_here(number_of(stream, own)),
                              graphs_held(graph));
    hook_leave();
    return result;
}

typedef int end_call(void *stream, void **graph);

static int end(end_call *real, bool own, struct hook_from from, void *stream,
               void **graph)
{
    bool watching = enter_making(from);
    int64_t capture = watching ? capture_here(number_of(stream, own)) : 0;
    int result = real(stream, graph);
    if (watching && result == CUDA_OK && graph)
        graphs_hold(*graph, graphs_end_capture(capture));
    hook_leave();
    return result;
}

typedef int duplicate_call(void **made, void *original);

static int duplicate(duplicate_call *real, bool own, struct hook_from from,
                     void **made, void *original)
{
    (void)own;
    bool watching = enter_making(from);
    int result = real(made, original);
    if (watching && result == CUDA_OK)
        graphs_hold(*made, graphs_held(original));
    hook_leave();
    return result;
}

typedef int child_call(void **node, void *graph, const void *dependencies,
                       size_t n, void *child);

static int child(child_call *real, bool own, struct hook_from from, void **node,
                 void *graph, const void *dependencies, size_t n, void *inner)
{
    (void)own;
    bool watching = enter_making(from);
    int result = real(node, graph, dependencies, n, inner);
    if (watching && result == CUDA_OK)
        graphs_add(graph, graphs_held(inner));
    hook_leave();
    return result;
}

typedef int instantiate_call(void **exec, void *graph, uintptr_t a, uintptr_t b,
                             uintptr_t c);

static int instantiate(instantiate_call *real, bool own, struct hook_from from,
                       void **exec, void *graph, uintptr_t a, uintptr_t b,
                       uintptr_t c)
{
    (void)own;
    bool watching = enter_making(from);
    int result = real(exec, graph, a, b, c);
    if (watching && result == CUDA_OK)
        graphs_hold(*exec, graphs_held(graph));
    hook_leave();
    return result;
}

typedef int update_call(void *exec, void *graph, void *a, void *b);

static int update(update_call *real, bool own, struct hook_from from,
                  void *exec, void *graph, void *a, void *b)
{
    (void)own;
    bool watching = enter_making(from);
    int result = real(exec, graph, a, b);
    if (watching && result == CUDA_OK)
        graphs_hold(exec, graphs_held(graph));
    hook_leave();
    return result;
}

typedef int destroy_call(void *handle);

/* CUDA may hand out the address again at once, so we forget it before. */
static int destroy(destroy_call *real, bool own, struct hook_from from,
                   void *handle)
{
    (void)own;
    bool watching = enter_making(from);
    int64_t held = watching ? graphs_held(handle) : 0;
    if (held)
        graphs_hold(handle, 0);
    int result = real(handle);
    if (held && result != CUDA_OK)
        graphs_hold(handle, held);
    hook_leave();
    return result;
}

#define GRAPH_HOOK(kind_, fn_, own_, params_, args_)           \
    int hook_##fn_(HOOK_CALL, HOOK_LIST params_)               \
    {                                                          \
        real_##fn_##_t *real = real_##fn_(copy);               \
        return real ? kind_(real, own_, from, HOOK_LIST args_) \
                    : CUDA_NOT_FOUND;                          \
    }
#define GRAPH_CALL(kind_, family_, fn_, own_) \
    GRAPH_HOOK(kind_, fn_, own_, GRAPH_PARAMS_##kind_, GRAPH_ARGS_##kind_)
#include "graph_calls.def"
