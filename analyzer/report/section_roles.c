#include "report/sections.h"

#include <math.h>
#include <stdio.h>

/* More are not read at night; --json has all. */
#define ROLES_SHOWN 20

static const struct out_column columns[] = {
    OUT_COL(struct family, role, "role", OUT_BUFFER, 0, OUT_BOTH),
    OUT_COL(struct family, use, "use", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct family, op, "op", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct family, groups, "groups", OUT_BUFFER, 0, OUT_BOTH),
    OUT_COL(struct family, ngroups, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct family, nranks, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct family, nodes_text, "nodes", OUT_BUFFER, 0, OUT_TEXT_ONLY),
    OUT_COL(struct family, nodes, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct family, domains, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct family, where, "link", OUT_BUFFER, 0, OUT_TEXT_ONLY),
    OUT_COL(struct family, link, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct family, speed, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct family, network, "", OUT_BOOL, 0, OUT_DATA),
    OUT_COL(struct family, missing, "", OUT_BOOL, 0, OUT_DATA),
    OUT_COL(struct family, confidence, "sure", OUT_SURE, 2, OUT_BOTH),
    OUT_COL(struct family, calls, "calls", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct family, bytes, "bytes", OUT_SIZE, 0, OUT_BOTH),
    OUT_COL(struct family, wire_bytes, "", OUT_REAL, 0, OUT_DATA),
    OUT_COL(struct family, transfer_ms, "transfer", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct family, wait_ms, "wait", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct family, share_percent, "%", OUT_REAL, 2, OUT_BOTH),
    OUT_COL(struct family, first_ranks, "", OUT_BUFFER, 0, OUT_DATA),
    OUT_COL(struct family, reasons, "", OUT_BUFFER, 0, OUT_DATA),
    OUT_COL(struct family, contradiction, "", OUT_BUFFER, 0, OUT_DATA),
    OUT_COL(struct family, decides, "", OUT_BUFFER, 0, OUT_DATA),
};

static const struct out_table table =
    OUT_TABLE_OF(struct family, columns, ROLES_SHOWN);

static void say_reasons(struct out *out, const struct family *f)
{
    out_fact(out, f->role, "%s, first ranks %s: %s%s%s", f->op, f->first_ranks,
             f->reasons[0] ? f->reasons : "nothing speaks for a role",
             f->contradiction[0] ? "; but " : "", f->contradiction);
    if (f->decides[0])
        out_fact(out, "", "would decide: %s", f->decides);
}

static void put_row(struct out *out, const struct family *family)
{
    struct family row = *family;

    if (!row.timed)
        row.transfer_ms = row.wait_ms = row.share_percent = NAN;
    out_row(out, &row);
}

static void put_steady(struct out *out, const struct families *families)
{
    out_table(out, "roles", &table);
    for (int i = 0; i < families->n; i++)
        if (families->rows[i].calls > 0)
            put_row(out, &families->rows[i]);
    out_table_end(out);
}

/* What no step contains (set-up, mostly) would be a line of zeros in text. */
static void put_outside(struct out *out, const struct families *families)
{
    out_list(out, "roles_outside_steps");
    for (int i = 0; i < families->n; i++)
        if (!(families->rows[i].calls > 0))
            out_record(out, NULL, &table, &families->rows[i]);
    out_list_end(out);
}

/* Most of the transfer that is told is a least. */
static void say_apart(struct out *out, const struct family *f)
{
    if (f->calls > 0 && f->apart_ms > f->transfer_ms / 2)
        out_say(out, 2,
                "%s %s: ranks always came so far apart that some of the wait "
                "may be transfer",
                f->role, f->op);
}

void section_roles(struct out *out, const struct view *view,
                   const struct families *families)
{
    char remark[120];

    snprintf(remark, sizeof remark,
             "ms per %s and rank; wait: for a later rank; %%: of the %s; "
             "bytes: without receives",
             view->per, view->per);
    out_title(out, "ROLES", remark);
    out_text(out, "per", view->per);
    put_steady(out, families);
    put_outside(out, families);
    if (view->job->missing)
        out_say(out, 2,
                "+ and ?: ranks of the group left no trace; its "
                "transfer includes what they were waited for");
    for (int i = 0; i < families->n; i++)
        say_apart(out, &families->rows[i]);
    for (int i = 0; i < families->n && i < ROLES_SHOWN; i++)
        say_reasons(out, &families->rows[i]);
}
