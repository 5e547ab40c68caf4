#define OP(id, name, fn, since, ...) CTROW fn since CTEND
#define COMM(fn, since, ...) CTROW fn since CTEND
#define PASS(fn, since, ...) CTROW fn since CTEND
#include "commtrace/nccl_ops.def"
