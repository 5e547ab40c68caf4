/* The hooks of all communication calls, one per row of the table. */
#include "hooks.h"
#include "record.h"

#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, count_, \
           type_, redop_, peer_, send_, recv_, params_, args_)           \
    ncclResult_t hook_##fn_(HOOK_CALL, HOOK_LIST params_)                \
    {                                                                    \
        real_##fn_##_t *real = real_##fn_(copy);                         \
        if (!real)                                                       \
            return ncclInvalidUsage;                                     \
        struct call call = {                                             \
            .op = CT_OP_##id_,                                           \
            .class = CT_##class_,                                        \
            .type = (type_),                                             \
            .redop = (redop_),                                           \
            .peer = (peer_),                                             \
            .count = (count_),                                           \
            .send = (send_),                                             \
            .recv = (recv_),                                             \
            .comm = comm,                                                \
            .stream = stream,                                            \
            .copy = copy,                                                \
            .from = from,                                                \
        };                                                               \
        record_enter(&call);                                             \
        ncclResult_t result = real args_;                                \
        record_leave(&call, result);                                     \
        return result;                                                   \
    }
#include "commtrace/nccl_ops.def"
