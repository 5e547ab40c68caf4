#include "op_facts.h"

const struct op_facts op_facts[CT_OP_COUNT] = {
#define OP(id_, name_, fn_, since_, base_, class_, size_, ...)              \
    [CT_OP_##id_] = {&#fn_[sizeof("nccl") - 1], CT_OP_##base_, CT_##class_, \
                     CT_##size_},
#include "commtrace/nccl_ops.def"
};

int64_t type_bytes(int64_t type)
{
    static const int64_t bytes[CT_TYPE_COUNT] = {
#define TYPE(id_, value_, name_, bytes_) [value_] = (bytes_),
#include "commtrace/nccl_types.def"
    };
    return type >= 0 && type < CT_TYPE_COUNT ? bytes[type] : 0;
}
