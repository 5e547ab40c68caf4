/*
 * Enumerations over the .def tables, shared by shim, analyzer and tests.
 * Everything that is true of an op, type or flag is in its table row.
 */
#ifndef COMMTRACE_OPS_H
#define COMMTRACE_OPS_H

enum ct_op {
#define OP(id_, ...) CT_OP_##id_,
#include "commtrace/nccl_ops.def"
    CT_OP_COUNT
};

enum ct_op_class { CT_COLL, CT_ROOTED, CT_SEND, CT_RECV, CT_ONE_SIDED };
enum ct_op_size { CT_ONE_SHARE, CT_ALL_SHARES, CT_NO_SHARE };
enum ct_op_wire { CT_UNIT, CT_RING, CT_TWO_RING };

enum ct_type {
#define TYPE(id_, value_, name_, bytes_) CT_TYPE_##id_ = (value_),
#include "commtrace/nccl_types.def"
    CT_TYPE_COUNT
};

enum ct_redop {
#define REDOP(id_, value_, name_) CT_REDOP_##id_ = (value_),
#include "commtrace/nccl_types.def"
    CT_REDOP_BUILTIN
};

enum ct_flag {
#define FLAG(id_, bit_, name_, meaning_) CT_FLAG_##id_ = (bit_),
#include "commtrace/flags.def"
    CT_FLAG_TIME_MASK = 3,
    CT_FLAG_RESULT_SHIFT = 16
};

enum ct_link {
#define LINK(id_, ...) CT_LINK_##id_,
#include "commtrace/links.def"
    CT_LINK_COUNT
};

enum ct_finding {
#define FINDING(id_, ...) CT_FINDING_##id_,
#include "commtrace/findings.def"
    CT_FINDING_COUNT
};

#endif
