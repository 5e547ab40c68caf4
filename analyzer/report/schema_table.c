/* Prints the README's section on tables and columns, from schema.def. */
#include <stdio.h>

#include "report/jobdb_schema.h"

static const char *const scopes[] = {
    [JOBDB_RANK] = "each rank's file; in job.db with a leading `process`",
    [JOBDB_DERIVED] = "job.db only, with a leading `process`",
    [JOBDB_LOOKUP] = "both: names of numbers",
    [JOBDB_JOB] = "job.db only",
};

static const char *const types[] = {
    [JOBDB_KEY] = "key",
    [JOBDB_I64] = "integer",
    [JOBDB_TXT] = "text",
    [JOBDB_F64] = "real",
};

static void print_cell(const char *text)
{
    for (; *text; text++)
        fputs(*text == '|' ? "\\|" : (char[]){*text, 0}, stdout);
}

static void print_table(const struct jobdb_table *table)
{
    printf("\n#### `%s`: ", table->name);
    print_cell(table->doc);
    printf("\n\nIn %s.\n\n| column | type | meaning |\n|---|---|---|\n",
           scopes[table->scope]);
    for (int i = 0; i < table->ncolumns; i++) {
        printf("| `%s` | %s | ", table->columns[i].name,
               types[table->columns[i].type]);
        print_cell(table->columns[i].doc);
        printf(" |\n");
    }
}

int main(void)
{
    for (int i = 0; i < JOBDB_TABLES; i++)
        print_table(&jobdb_tables[i]);
    return 0;
}
