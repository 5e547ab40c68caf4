/* The tables that name numbers, from the same rows as everything else. */
#include <math.h>

#include "report/jobdb_insert.h"

struct kind_row {
    const char *name, *function;
    int base;
    const char *cls, *size, *wire;
};

static const struct kind_row kinds[CT_OP_COUNT] = {
#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, ...) \
    [CT_OP_##id_] = {name_, #fn_, CT_OP_##base_, #class_, #size_, #wire_},
#include "commtrace/nccl_ops.def"
};

static void put_kinds(struct jobdb *db)
{
    for (int i = 0; i < CT_OP_COUNT; i++) {
        jobdb_start(db, JOBDB_T_op_kind);
        jobdb_int(db, i);
        jobdb_text(db, kinds[i].name);
        jobdb_text(db, kinds[i].function);
        jobdb_int(db, kinds[i].base);
        jobdb_text(db, kinds[i].cls);
        jobdb_text(db, kinds[i].size);
        jobdb_text(db, kinds[i].wire);
        jobdb_end(db);
    }
}

static void put_type(struct jobdb *db, int value, const char *name, int bytes)
{
    jobdb_start(db, JOBDB_T_data_type);
    jobdb_int(db, value);
    jobdb_text(db, name);
    jobdb_int(db, bytes);
    jobdb_end(db);
}

static void put_redop(struct jobdb *db, int value, const char *name)
{
    jobdb_start(db, JOBDB_T_red_op);
    jobdb_int(db, value);
    jobdb_text(db, name);
    jobdb_end(db);
}

static void put_flag(struct jobdb *db, int bit, const char *name,
                     const char *meaning)
{
    jobdb_start(db, JOBDB_T_flag);
    jobdb_int(db, bit);
    jobdb_text(db, name);
    jobdb_text(db, meaning);
    jobdb_end(db);
}

static void put_link(struct jobdb *db, int id, const char *name, int network,
                     double base_us, double hop_us, double busbw_GBps,
                     const char *source)
{
    jobdb_start(db, JOBDB_T_link_class);
    jobdb_int(db, id);
    jobdb_text(db, name);
    jobdb_index(db, network);
    jobdb_real(db, busbw_GBps > 0 ? base_us : NAN);
    jobdb_real(db, busbw_GBps > 0 ? hop_us : NAN);
    jobdb_real(db, busbw_GBps > 0 ? busbw_GBps : NAN);
    jobdb_text(db, source);
    jobdb_end(db);
}

void jobdb_put_lookups(struct jobdb *db)
{
    put_kinds(db);
#define TYPE(id_, value_, name_, bytes_) put_type(db, value_, name_, bytes_);
#define REDOP(id_, value_, name_) put_redop(db, value_, name_);
#include "commtrace/nccl_types.def"
#define FLAG(id_, bit_, name_, meaning_) put_flag(db, bit_, name_, meaning_);
#include "commtrace/flags.def"
#define LINK(id_, name_, network_, base_, hop_, busbw_, source_) \
    put_link(db, CT_LINK_##id_, name_, network_, base_, hop_, busbw_, source_);
#include "commtrace/links.def"
}
