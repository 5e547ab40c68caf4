/* What is known of ops without any trace, and how numbers are written. */
#ifndef COMMTRACE_INFO_H
#define COMMTRACE_INFO_H

#include <stdbool.h>
#include <stddef.h>

#include "commtrace/ops.h"

#define CT_NONE (-1)

/* What is true of an op by its row in nccl_ops.def. */
struct ct_op_info {
    const char *name;     /* "all_reduce" */
    const char *function; /* "ncclAllReduce" */
    enum ct_op base;
    enum ct_op_class cls;
    enum ct_op_size size;
    enum ct_op_wire wire;
};
extern const struct ct_op_info ct_op_infos[CT_OP_COUNT];

/* Every rank of the communicator calls it. */
static inline bool ct_is_collective(enum ct_op op)
{
    return ct_op_infos[op].cls == CT_COLL || ct_op_infos[op].cls == CT_ROOTED;
}

/* A send or a receive. */
static inline bool ct_is_p2p(enum ct_op op)
{
    return ct_op_infos[op].cls == CT_SEND || ct_op_infos[op].cls == CT_RECV;
}

/* busbw / algbw of op on n ranks, as nccl-tests defines it. */
double ct_wire_factor(enum ct_op op, int nranks);

/* "s" unless n reads as 1 with three or four digits. */
static inline const char *ct_plural(double n)
{
    return n > .9995 && n < 1.0005 ? "" : "s";
}

/* As %.3g has it for 3 digits, but written out: "24580", never "2.46e+04". */
#define CT_NUMBER_SIZE 32
const char *ct_number(char text[CT_NUMBER_SIZE], double value, int digits);
#define CT_NUM(value_, digits_) \
    ct_number((char[CT_NUMBER_SIZE]){0}, value_, digits_)

/* "3.906 KiB" */
void ct_bytes_text(double bytes, char *text, size_t size);

#endif
