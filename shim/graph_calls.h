/* Parameters of the kinds of graph_calls.def. */
#ifndef SHIM_GRAPH_CALLS_H
#define SHIM_GRAPH_CALLS_H

#define GRAPH_PARAMS_launch (void *exec, void *stream)
#define GRAPH_ARGS_launch (exec, stream)
#define GRAPH_PARAMS_begin_to                                                \
    (void *stream, void *graph, const void *dependencies, const void *edges, \
     size_t n, int mode)
#define GRAPH_ARGS_begin_to (stream, graph, dependencies, edges, n, mode)
#define GRAPH_PARAMS_end (void *stream, void **graph)
#define GRAPH_ARGS_end (stream, graph)
#define GRAPH_PARAMS_duplicate (void **made, void *original)
#define GRAPH_ARGS_duplicate (made, original)
#define GRAPH_PARAMS_child \
    (void **node, void *graph, const void *dependencies, size_t n, void *inner)
#define GRAPH_ARGS_child (node, graph, dependencies, n, inner)
#define GRAPH_PARAMS_instantiate \
    (void **exec, void *graph, uintptr_t a, uintptr_t b, uintptr_t c)
#define GRAPH_ARGS_instantiate (exec, graph, a, b, c)
#define GRAPH_PARAMS_update (void *exec, void *graph, void *a, void *b)
#define GRAPH_ARGS_update (exec, graph, a, b)
#define GRAPH_PARAMS_destroy (void *handle)
#define GRAPH_ARGS_destroy (handle)

#endif
