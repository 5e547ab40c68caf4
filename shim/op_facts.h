/* What is true of ops and types by their rows in nccl_ops.def, nccl_types.def.
 */
#ifndef SHIM_OP_FACTS_H
#define SHIM_OP_FACTS_H

#include "commtrace/ops.h"

#include <stdbool.h>
#include <stdint.h>

struct op_facts {
    const char *name; /* as NCCL calls it among its own */
    enum ct_op base;
    enum ct_op_class class;
    enum ct_op_size size;
};

extern const struct op_facts op_facts[CT_OP_COUNT];

static inline bool op_is_transfer(int op)
{
    enum ct_op_class class = op_facts[op].class;
    return class == CT_SEND || class == CT_RECV;
}

/* Of one element; 0: a type that is not known. */
int64_t type_bytes(int64_t type);

#endif
