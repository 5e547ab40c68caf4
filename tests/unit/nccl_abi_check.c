/*
 * Proves include/commtrace's tables against the nccl.h found here: it compiles
 * or it does not. Rows of later releases than this nccl.h are not looked at.
 */
#include <nccl.h>

#ifndef NCCL_VERSION
#define NCCL_VERSION(X, Y, Z) ((X)*1000 + (Y)*100 + (Z))
#endif

#if NCCL_VERSION_CODE < 22703
typedef struct ncclWindow *ncclWindow_t;
#endif
#if NCCL_VERSION_CODE < 22203
typedef struct ncclSimInfo ncclSimInfo_t;
#endif

#include "commtrace/ops.h"

/* Parameters and result of each recorded or followed call. */
#define CT_NCCL_ROWS NCCL_VERSION_CODE
/* clang-format off */
#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, count_,       \
           type_, redop_, peer_, send_, recv_, params_, args_)                 \
    ncclResult_t (*const ct_check_##fn_) params_ = fn_;                        \
    _Static_assert(since_ <= NCCL_VERSION_CODE, #fn_ ": row in wrong section");
#define COMM(fn_, since_, ret_, params_, args_)                                \
    ret_ (*const ct_check_##fn_) params_ = fn_;                                \
    _Static_assert(since_ <= NCCL_VERSION_CODE, #fn_ ": row in wrong section");
/* clang-format on */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-const-variable"
#include "commtrace/nccl_ops.def"

#define CHECK(nccl_, ours_) \
    _Static_assert((int)(nccl_) == (int)(ours_), #nccl_ " has another value")
CHECK(ncclInt8, CT_TYPE_INT8);
CHECK(ncclUint8, CT_TYPE_UINT8);
CHECK(ncclInt32, CT_TYPE_INT32);
CHECK(ncclUint32, CT_TYPE_UINT32);
CHECK(ncclInt64, CT_TYPE_INT64);
CHECK(ncclUint64, CT_TYPE_UINT64);
CHECK(ncclFloat16, CT_TYPE_FLOAT16);
CHECK(ncclFloat32, CT_TYPE_FLOAT32);
CHECK(ncclFloat64, CT_TYPE_FLOAT64);
#if NCCL_VERSION_CODE >= 21003
CHECK(ncclBfloat16, CT_TYPE_BFLOAT16);
CHECK(ncclAvg, CT_REDOP_AVG);
CHECK(ncclNumOps, CT_REDOP_BUILTIN);
#endif
#if NCCL_VERSION_CODE >= 22403
CHECK(ncclFloat8e4m3, CT_TYPE_FLOAT8E4M3);
CHECK(ncclFloat8e5m2, CT_TYPE_FLOAT8E5M2);
#endif
CHECK(ncclSum, CT_REDOP_SUM);
CHECK(ncclProd, CT_REDOP_PROD);
CHECK(ncclMax, CT_REDOP_MAX);
CHECK(ncclMin, CT_REDOP_MIN);
CHECK(sizeof(ncclUniqueId), 128);
