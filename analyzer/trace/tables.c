#include "trace/tables.h"

#include <stddef.h>
#include <string.h>

#include "trace/pack.h"

#define TABLE(table_, ...) static const struct ct_column table_##_columns[] = {
#define COL(table_, column_, type_, doc_) {#column_, CT_COLUMN_##type_},
#define END(table_) \
    }               \
    ;
#include "commtrace/schema.def"

#define LENGTH(array_) (int)(sizeof(array_) / sizeof(*(array_)))

#define TABLE(table_, scope_, doc_) \
    {#table_, table_##_columns, CT_TABLE_##scope_, LENGTH(table_##_columns)},
const struct ct_table ct_tables[] = {
#include "commtrace/schema.def"
};

const int ct_ntables = LENGTH(ct_tables);

const struct ct_table *ct_table_named(const char *name)
{
    int i;

    for (i = 0; i < ct_ntables; i++)
        if (!strcmp(ct_tables[i].name, name))
            return &ct_tables[i];
    return NULL;
}

bool ct_table_is_packed(const struct ct_table *table)
{
    int i;

    for (i = 0; i < table->ncolumns; i++)
        if (table->columns[i].type != CT_COLUMN_KEY &&
            table->columns[i].type != CT_COLUMN_I64)
            return false;
    return table->scope == CT_TABLE_RANK && table->ncolumns <= CT_PACK_COLUMNS;
}
