#include "nccl/choice.h"

#include "nccl/comm.h"
#include "nccl/op.h"
#include "nccl/reduce.h"

/* Larger messages take more channels and protocols with more bandwidth. */
struct choice choice_of(const struct op *op)
{
    size_t bytes = op_bytes(op);
    struct choice choice = {"RING", "SIMPLE", 4};

    if (op_is_p2p(op))
        return (struct choice){.channels = 2};
    if (op->kind == OP_ALL_REDUCE && bytes <= (size_t)64 << 10)
        choice.algorithm = "TREE";
    if (bytes <= (size_t)16 << 10)
        choice.protocol = "LL", choice.channels = 1;
    else if (bytes <= (size_t)1 << 20)
        choice.protocol = "LL128", choice.channels = 2;
    return choice;
}
