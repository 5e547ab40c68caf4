/*
 * The real functions behind hooks of CUDA: the next definition after ours, else
 * that of the runtime or driver which is loaded, as NCCL's are found (real.h).
 * NULL: there is none.
 */
#ifndef SHIM_FOREIGN_H
#define SHIM_FOREIGN_H

#include <stdatomic.h>

typedef void (*foreign_function)(void);

enum foreign_id {
#define GRAPH_CALL(kind_, fn_, own_) FOREIGN_##fn_,
#include "graph_calls.def"
    FOREIGN_COUNT
};

extern _Atomic(foreign_function) foreign_functions[FOREIGN_COUNT];

foreign_function foreign_resolve(enum foreign_id id);

static inline foreign_function foreign_get(enum foreign_id id)
{
    /* Relaxed: the code behind it was mapped before anybody could call us. */
    foreign_function function =
        atomic_load_explicit(&foreign_functions[id], memory_order_relaxed);
    return function ? function : foreign_resolve(id);
}

#endif
