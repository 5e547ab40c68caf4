#include "doctor/facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "report/out.h"

static const char *const statuses[] = {
    [FACT_GOOD] = "good",
    [FACT_NOTE] = "note",
    [FACT_BAD] = "bad",
};

static const struct out_column columns[] = {
    OUT_COL(struct fact, what, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct fact, status, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct fact, text, "", OUT_BUFFER, 0, OUT_DATA),
};

static const struct out_table table = OUT_TABLE(struct fact, columns);

void facts_add(struct facts *facts, const char *what, enum fact_status status,
               const char *format, ...)
{
    struct fact *fact;
    va_list args;

    if (facts->n == FACTS_MOST)
        return;
    fact = &facts->fact[facts->n++];
    fact->what = what;
    fact->status = statuses[status];
    va_start(args, format);
    vsnprintf(fact->text, sizeof fact->text, format, args);
    va_end(args);
}

/* A label is said once for the facts under it. */
void facts_print(struct out *out, const struct facts *facts)
{
    const char *before = "";

    for (int i = 0; i < facts->n; i++) {
        const struct fact *fact = &facts->fact[i];
        const char *mark = fact->status == statuses[FACT_BAD]    ? "WRONG: "
                           : fact->status == statuses[FACT_NOTE] ? "note: "
                                                                 : "";

        out_fact(out, strcmp(before, fact->what) ? fact->what : "", "%s%s",
                 mark, fact->text);
        before = fact->what;
    }
    out_rows(out, "facts", &table, facts->fact, (size_t)facts->n);
}
