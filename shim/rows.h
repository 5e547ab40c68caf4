/*
 * One struct per table of schema.def, and the union that the writer batches.
 * CT_NULL in an integer, NULL in a text mean NULL.
 */
#ifndef SHIM_ROWS_H
#define SHIM_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#define CT_NULL INT64_MIN

#define ROW_TYPE_KEY int64_t
#define ROW_TYPE_I64 int64_t
#define ROW_TYPE_TXT const char *
#define ROW_TYPE_F64 double
#define TABLE(table_, scope_, doc_) struct row_##table_ {
#define COL(table_, column_, type_, doc_) ROW_TYPE_##type_ column_;
#define END(table_) \
    }               \
    ;
#include "commtrace/schema.def"

enum row_table {
#define TABLE(table_, scope_, doc_) ROW_##table_,
#include "commtrace/schema.def"
    ROW_COUNT
};

/* Which tables get rows while the process runs. */
struct row {
    enum row_table table;
    int64_t rowid; /* row to replace, in tables without KEY; CT_NULL: new */
    union {
        struct row_meta meta;
        struct row_process process;
        struct row_library library;
        struct row_policy policy;
        struct row_clock clock;
        struct row_device device;
        struct row_gpu_link gpu_link;
        struct row_nic nic;
        struct row_gpu_nic gpu_nic;
        struct row_absence absence;
        struct row_comm comm;
        struct row_comm_event comm_event;
        struct row_op_class op_class;
        struct row_op op;
        struct row_launch launch;
        struct row_graph graph;
        struct row_graph_launch graph_launch;
        struct row_loss loss;
        struct row_module module;
        struct row_stack stack;
        struct row_frame frame;
        struct row_nccl_comm nccl_comm;
        struct row_conn conn;
        struct row_nccl_graph nccl_graph;
        struct row_ring ring;
        struct row_tree tree;
        struct row_nccl_message nccl_message;
        struct row_tuning tuning;
        struct row_choice_class choice_class;
        struct row_choice choice;
    } u;
};

#endif
