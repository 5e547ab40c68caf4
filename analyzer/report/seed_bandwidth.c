/* Measured bus bandwidth of each role beside the requirement table. */
#include "report/seed.h"

#include <math.h>

/* What the requirement table asks of each role, in GB/s. */
struct need {
    enum ct_role_id role;
    double low, high;
    const char *what;
};

static const struct need needs[] = {
    {CT_ROLE_TP, 400, 900, "TP, ring all-reduce inside a node"},
    {CT_ROLE_PP, 50, 100, "PP, point to point between nodes"},
    {CT_ROLE_DP, 100, 200, "DP, as ZeRO-3's all-gather + reduce-scatter"},
};

struct bandwidth {
    const char *role, *op, *link;
    int nranks;
    uint64_t bytes;
    double busbw_GBps, latency_percent;
    double need_low_GBps, need_high_GBps;
    const char *verdict;
};

static const struct out_column bandwidth_columns[] = {
    OUT_COL(struct bandwidth, role, "role", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct bandwidth, op, "op", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct bandwidth, link, "link", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct bandwidth, nranks, "ranks", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct bandwidth, bytes, "size", OUT_SIZE, 0, OUT_BOTH),
    OUT_COL(struct bandwidth, latency_percent, "alpha %", OUT_REAL, 2,
            OUT_BOTH),
    OUT_COL(struct bandwidth, busbw_GBps, "busbw", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct bandwidth, need_low_GBps, "needs", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct bandwidth, need_high_GBps, "to", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct bandwidth, verdict, "verdict", OUT_TEXT, 0, OUT_BOTH),
};

static const struct out_table bandwidth_table =
    OUT_TABLE(struct bandwidth, bandwidth_columns);

/* The part of the time that is latency, where the fit tells. */
static double latency_percent(const struct view *view, const struct family *f)
{
    int nranks = f->base == CT_OP_SEND ? 2 : f->nranks;

    for (int i = 0; i < view->model->nfits; i++) {
        const struct ct_fit *fit = &view->model->fits[i];

        if (fit->quality == CT_FIT_FULL && fit->link == f->link_id &&
            fit->base == f->base && fit->nranks == nranks)
            return fmin(100, fit->alpha_us / f->top_us * 100);
    }
    return NAN;
}

static const char *judge(const struct family *f, double busbw,
                         const struct need *need)
{
    if (isnan(busbw))
        return "n/a: no transfer was timed apart";
    if (f->link_id == CT_LINK_UNKNOWN)
        return "n/a: over which link is not known";
    if (busbw >= need->low)
        return f->top_shared ? "pass, by shares of groups" : "pass";
    return f->top_shared ? "below, by shares of groups" : "below";
}

static void put_bandwidth(struct out *out, const struct view *view,
                          const struct family *f, const struct need *need)
{
    struct bandwidth line = {
        .role = ct_role_names[need->role],
        .op = f->op,
        .link = f->link,
        .nranks = f->nranks,
        .bytes = isnan(f->top_us) ? f->main_bytes : f->top_bytes,
        .busbw_GBps = (double)f->top_bytes / (f->top_us * 1e3) *
                      ct_wire_factor(f->base, f->nranks),
        .latency_percent = latency_percent(view, f),
        .need_low_GBps = need->low,
        .need_high_GBps = need->high};

    line.verdict = judge(f, line.busbw_GBps, need);
    out_row(out, &line);
}

static bool needs_bandwidth(const struct family *f, const struct need *need)
{
    return f->given && f->given->role == need->role && f->top_bytes &&
           f->calls > 0;
}

static void say_needs(struct out *out, int shown)
{
    if (!shown) {
        out_fact(out, "bandwidth",
                 "n/a: no transfer of TP, PP or DP was measured");
        return;
    }
    out_fact(out, "needs",
             "%.0f-%.0f %s; %.0f-%.0f %s; %.0f-%.0f %s. 900 counts both "
             "directions of NVLink 4: 450 each way, about 370 usable by a ring",
             needs[0].low, needs[0].high, needs[0].what, needs[1].low,
             needs[1].high, needs[1].what, needs[2].low, needs[2].high,
             needs[2].what);
}

void seed_bandwidth(struct out *out, const struct view *view,
                    const struct families *families)
{
    int shown = 0;

    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        for (int k = 0; k < families->n; k++) {
            if (!needs_bandwidth(&families->rows[k], &needs[i]))
                continue;
            if (!shown++)
                out_table(out, "bandwidth", &bandwidth_table);
            put_bandwidth(out, view, &families->rows[k], &needs[i]);
        }
    if (shown) {
        out_table_end(out);
    } else {
        out_list(out, "bandwidth");
        out_list_end(out);
    }
    say_needs(out, shown);
}
