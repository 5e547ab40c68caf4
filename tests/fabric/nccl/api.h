/*
 * How the library exports a call, as NCCL does: pncclX is the function, ncclX
 * a weak name of it that a tool may replace.
 */
#ifndef FABRIC_NCCL_API_H
#define FABRIC_NCCL_API_H

#include <nccl.h>

#define NCCL_API(ret_, name_, params_)                                  \
    __attribute__((visibility("default"), weak, alias("pnccl" #name_))) \
    ret_ nccl##name_ params_;                                           \
    __attribute__((visibility("default"))) ret_ pnccl##name_ params_

/* Remembers what was wrong for ncclGetLastError, and passes result on. */
ncclResult_t nccl_fail(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
