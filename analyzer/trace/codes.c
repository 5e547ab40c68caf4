/* Numbers of a file's lookup tables -> ours, by name. */
#include <string.h>

#include "trace/load.h"

static const char *const type_names[] = {
#define TYPE(id_, value_, name_, bytes_) [value_] = (name_),
#include "commtrace/nccl_types.def"
};

static const char *const redop_names[] = {
#define REDOP(id_, value_, name_) [value_] = (name_),
#include "commtrace/nccl_types.def"
};

static const struct {
    int bit;
    const char *name;
} flag_names[] = {
#define FLAG(id_, bit_, name_, meaning_) {(bit_), (name_)},
#include "commtrace/flags.def"
};

#define LENGTH(array_) ((int)(sizeof(array_) / sizeof(*(array_))))

static int type_named(const char *name)
{
    int i;

    for (i = 0; i < LENGTH(type_names); i++)
        if (!strcmp(type_names[i], name))
            return i;
    return CT_NONE;
}

static int redop_named(const char *name)
{
    int i;

    for (i = 0; i < LENGTH(redop_names); i++)
        if (!strcmp(redop_names[i], name))
            return i;
    return CT_NONE;
}

static int kind_named(const char *function)
{
    int i;

    for (i = 0; i < CT_OP_COUNT; i++)
        if (!strcmp(ct_op_infos[i].function, function))
            return i;
    return CT_NONE;
}

static void clear(struct ct_codes *codes)
{
    memset(codes->value, 0xff, sizeof(codes->value)); /* all CT_NONE */
}

int ct_code_of(const struct ct_codes *codes, int64_t id)
{
    return id >= 0 && id < CT_MAX_CODES ? codes->value[id] : CT_NONE;
}

/* A kind that this version does not know counts as its base, if that is
 * known. */
static void load_kinds(struct ct_loader *loader)
{
    int64_t bases[CT_MAX_CODES];
    struct ct_rows rows;
    int i;

    clear(&loader->kinds);
    memset(bases, 0xff, sizeof(bases));
    ct_rows_open(&rows, loader, "op_kind",
                 "SELECT id, function, base FROM op_kind");
    while (ct_rows_next(&rows)) {
        int64_t id = ct_rows_int(&rows, 0, "id", 0, CT_MAX_CODES - 1);
        const char *function = ct_rows_text(&rows, 1);

        loader->kinds.value[id] = kind_named(function ? function : "");
        bases[id] = ct_rows_opt(&rows, 2, "base", 0, CT_MAX_CODES - 1, id);
    }
    for (i = 0; i < CT_MAX_CODES; i++)
        if (loader->kinds.value[i] == CT_NONE)
            loader->kinds.value[i] = ct_code_of(&loader->kinds, bases[i]);
}

static void load_types(struct ct_loader *loader)
{
    struct ct_rows rows;

    clear(&loader->types);
    ct_rows_open(&rows, loader, "data_type",
                 "SELECT id, name, bytes FROM data_type");
    while (ct_rows_next(&rows)) {
        int64_t id = ct_rows_int(&rows, 0, "id", 0, CT_MAX_CODES - 1);
        const char *name = ct_rows_text(&rows, 1);

        loader->types.value[id] = type_named(name ? name : "");
        loader->type_bytes[id] =
            (uint64_t)ct_rows_int(&rows, 2, "bytes", 0, 1024);
    }
}

static void load_redops(struct ct_loader *loader)
{
    struct ct_rows rows;

    clear(&loader->redops);
    ct_rows_open(&rows, loader, "red_op", "SELECT id, name FROM red_op");
    while (ct_rows_next(&rows)) {
        int64_t id = ct_rows_int(&rows, 0, "id", 0, CT_MAX_CODES - 1);
        const char *name = ct_rows_text(&rows, 1);

        loader->redops.value[id] = redop_named(name ? name : "");
    }
}

static int flag_named(const char *name)
{
    int i;

    for (i = 0; i < LENGTH(flag_names); i++)
        if (!strcmp(flag_names[i].name, name))
            return flag_names[i].bit;
    return CT_NONE;
}

/* flags.value[b] is our bit for the file's bit number b. */
static void load_flag_names(struct ct_loader *loader)
{
    struct ct_rows rows;

    clear(&loader->flags);
    loader->flags_as_ours = true;
    ct_rows_open(&rows, loader, "flag", "SELECT bit, name FROM flag");
    while (ct_rows_next(&rows)) {
        int64_t bit =
            ct_rows_int(&rows, 0, "bit", 1, 1 << (CT_FLAG_RESULT_SHIFT - 1));
        const char *name = ct_rows_text(&rows, 1);
        int ours = flag_named(name ? name : ""), b;

        for (b = 0; b < CT_FLAG_RESULT_SHIFT; b++)
            if (bit == 1 << b)
                loader->flags.value[b] = ours;
        if (ours != bit)
            loader->flags_as_ours = false;
    }
}

uint32_t ct_load_flags(const struct ct_loader *loader, uint32_t flags)
{
    uint32_t ours = flags >> CT_FLAG_RESULT_SHIFT << CT_FLAG_RESULT_SHIFT;
    int b;

    if (loader->flags_as_ours)
        return flags;
    for (b = 0; b < CT_FLAG_RESULT_SHIFT; b++)
        if (flags >> b & 1 && loader->flags.value[b] != CT_NONE)
            ours |= (uint32_t)loader->flags.value[b];
    return ours;
}

void ct_load_codes(struct ct_loader *loader)
{
    load_kinds(loader);
    load_types(loader);
    load_redops(loader);
    load_flag_names(loader);
}

static void count_up(struct ct_codes *codes, int n)
{
    clear(codes);
    for (int i = 0; i < n; i++)
        codes->value[i] = i;
}

void ct_load_own_codes(struct ct_loader *loader)
{
    count_up(&loader->kinds, CT_OP_COUNT);
    count_up(&loader->types, LENGTH(type_names));
    count_up(&loader->redops, LENGTH(redop_names));
    loader->flags_as_ours = true;
#define TYPE(id_, value_, name_, bytes_) loader->type_bytes[value_] = (bytes_);
#include "commtrace/nccl_types.def"
}
