#include "findings/ways.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "findings/price.h"
#include "trace/clocks.h"
#include "trace/intern.h"
#include "trace/links.h"
#include "trace/match.h"
#include "trace/select.h"

#define LEAST_TRANSFERS 10
#define LONGER 1.3 /* than the others, surely */
#define NO_PEER (-2)
#define SEVERAL (-3)
#define SURE_OF_MEDIAN 2 /* times sqrt(n): four standard errors of its rank */

/* What transfers have to have in common; no padding. */
struct kind_key {
    uint64_t bytes;
    int64_t speed;
    int32_t base, nranks, link, nnodes, ndomains, hops, nics, role, grouped,
        p2p;
};

struct way_key { /* no padding */
    int comm, a, b;
};

struct measured { /* a usage */
    int usage, kind, way;
    double low_ns, ns, high_ns; /* median, and where it surely is */
};

struct comparison {
    const struct ct_case *c;
    struct ct_intern kinds, way_keys;
    struct ct_ways *ways;
    int n;
    struct measured *measured;
    bool *mixed;     /* per usage: in groups with messages of other pairs */
    int64_t *others; /* transfers that are no samples, by usage, */
    int64_t *ends;   /* where those of each end */
    int64_t *work;
};

static bool is_p2p(const struct ct_usage *usage)
{
    return usage->src != CT_NONE && usage->dst != CT_NONE;
}

/* Messages, and what was in groups. Not all of them are samples of a usage;
 * where those are few, between likes they serve. */
static bool is_other(const struct ct_instance *i)
{
    return (i->grouped || i->base == CT_OP_SEND) &&
           (!i->estimated || i->base == CT_OP_SEND) &&
           i->transfer_ns != CT_NO_TIME && !i->bound && !i->overlapped &&
           !i->skewed && !i->mismatch;
}

/* What a message of a group takes shows in all of it, and so does a wait. */
static bool mark_mixed(struct comparison *x, const struct ct_process *p)
{
    int *peers = malloc(((size_t)p->nlaunches + 1) * sizeof *peers);

    for (int i = 0; peers && i < p->nlaunches; i++)
        peers[i] = NO_PEER;
    for (int pass = 0; peers && pass < 2; pass++)
        for (int o = 0; o < p->nops; o++) {
            const struct ct_op_row *op = &p->ops[o];
            const int peer = p->classes[op->cls].peer;

            if (op->launch == CT_NONE || op->instance == CT_NONE)
                continue;
            if (peers[op->launch] == NO_PEER)
                peers[op->launch] = peer;
            else if (peers[op->launch] != peer)
                peers[op->launch] = SEVERAL;
            if (pass && peers[op->launch] == SEVERAL)
                x->mixed[x->c->job->instances[op->instance].usage] = true;
        }
    free(peers);
    return peers != NULL;
}

static bool find_mixed(struct comparison *x)
{
    const struct ct_job *job = x->c->job;
    bool good;

    x->mixed = calloc((size_t)job->nusages + 1, sizeof *x->mixed);
    good = x->mixed != NULL;
    for (int i = 0; good && i < job->nprocesses; i++)
        good = mark_mixed(x, &x->c->trace->processes[job->processes[i]]);
    return good;
}

static bool gather_others(struct comparison *x)
{
    const struct ct_job *job = x->c->job;
    int64_t total = 0;

    x->ends = calloc((size_t)job->nusages + 1, sizeof *x->ends);
    for (int i = 0; x->ends && i < job->ninstances; i++)
        if (is_other(&job->instances[i]))
            x->ends[job->instances[i].usage + 1]++;
    for (int u = 0; x->ends && u < job->nusages; u++)
        total = x->ends[u + 1] += x->ends[u];
    x->others = malloc(((size_t)total + 1) * sizeof *x->others);
    if (!x->ends || !x->others)
        return false;
    for (int i = 0; i < job->ninstances; i++)
        if (is_other(&job->instances[i]))
            x->others[x->ends[job->instances[i].usage]++] =
                job->instances[i].transfer_ns;
    return true;
}

/* How far a message may have taken more or less by the clocks of its ends. */
static double clock_error(const struct ct_case *c, const struct ct_usage *u)
{
    const struct ct_member *members = c->job->comms[u->comm].members;
    const struct ct_process *from, *to;

    if (!is_p2p(u))
        return 0;
    if (members[u->src].process == CT_NONE ||
        members[u->dst].process == CT_NONE)
        return INFINITY;
    from = &c->trace->processes[members[u->src].process];
    to = &c->trace->processes[members[u->dst].process];
    return ct_common_error(c->trace, from, to, from->last_ns / 2);
}

struct transfers {
    const int64_t *ns;
    int64_t n;
    double error_ns; /* INFINITY: they may have waited as well */
};

static struct transfers transfers_of(const struct comparison *x, int usage)
{
    const struct ct_usage *u = &x->c->job->usages[usage];
    const int64_t begin = usage ? x->ends[usage - 1] : 0;
    const int64_t n = x->ends[usage] - begin;
    double error_ns;

    if (u->nsamples >= LEAST_TRANSFERS || n < u->nsamples)
        return (struct transfers){u->samples, u->nsamples, 0};
    error_ns = clock_error(x->c, u);
    if (u->median_ns == CT_NO_TIME || !ct_is_clear(error_ns, u->median_ns))
        error_ns = INFINITY;
    return (struct transfers){x->others + begin, n, error_ns};
}

static int kind_of(struct comparison *x, int usage)
{
    const struct ct_usage *u = &x->c->job->usages[usage];
    const struct ct_comm *comm = &x->c->job->comms[u->comm];
    const int role = x->c->roles->of_usage[usage];
    struct kind_key key = {.bytes = u->bytes,
                           .speed = u->speed,
                           .base = u->base,
                           .nranks = comm->nranks,
                           .link = u->link,
                           .nnodes = comm->nnodes,
                           .ndomains = comm->ndomains,
                           .hops = comm->hops,
                           .nics = comm->nics,
                           .role = role == CT_NONE
                                       ? CT_ROLE_UNKNOWN
                                       : x->c->roles->roles[role].role,
                           .grouped = u->grouped,
                           .p2p = is_p2p(u)};

    if (key.p2p && !key.grouped)
        key.nnodes = key.ndomains = key.hops = key.nics = CT_NONE;
    return ct_intern_add(&x->kinds, &key, sizeof key);
}

static struct way_key pair_key(const struct ct_usage *u)
{
    return u->src < u->dst ? (struct way_key){u->comm, u->src, u->dst}
                           : (struct way_key){u->comm, u->dst, u->src};
}

static int way_of(struct comparison *x, const struct ct_usage *u)
{
    const struct way_key key =
        is_p2p(u) ? pair_key(u) : (struct way_key){u->comm, CT_NONE, CT_NONE};
    const int known = x->way_keys.n;
    const int way = ct_intern_add(&x->way_keys, &key, sizeof key);

    if (way == known)
        x->ways->rows[x->ways->n++] =
            (struct ct_way){.comm = key.comm,
                            .a = key.a,
                            .b = key.b,
                            .network = ct_link_is_network(u->link),
                            .top = CT_NONE};
    return way;
}

static double nth(int64_t *values, int64_t n, double k)
{
    return (double)ct_nth(values, n,
                          k < 0                 ? 0
                          : k > (double)(n - 1) ? n - 1
                                                : (int64_t)k);
}

static void measure(struct comparison *x, int usage)
{
    const struct ct_usage *u = &x->c->job->usages[usage];
    const struct transfers t = transfers_of(x, usage);
    const double half = (double)t.n / 2;
    const double off = SURE_OF_MEDIAN * sqrt((double)t.n);
    const double error_ns = isinf(t.error_ns) ? 0 : t.error_ns;

    if (t.n < LEAST_TRANSFERS || x->mixed[usage] ||
        (is_p2p(u) && u->src == u->dst) || !(ct_price_calls(x->c->job, u) > 0))
        return;
    memcpy(x->work, t.ns, (size_t)t.n * sizeof *x->work);
    x->measured[x->n++] = (struct measured){
        .usage = usage,
        .kind = kind_of(x, usage),
        .way = way_of(x, u),
        .low_ns =
            isinf(t.error_ns) ? 0 : nth(x->work, t.n, half - off) - error_ns,
        .ns = nth(x->work, t.n, half),
        .high_ns = nth(x->work, t.n, half + off) + error_ns};
}

static bool measure_all(struct comparison *x)
{
    const struct ct_job *job = x->c->job;
    const size_t room = (size_t)job->nusages + 1;

    if (!find_mixed(x) || !gather_others(x))
        return false;
    x->work = malloc(((size_t)job->ninstances + 1) * sizeof *x->work);
    x->measured = malloc(room * sizeof *x->measured);
    x->ways->rows = malloc(room * sizeof *x->ways->rows);
    if (!x->work || !x->measured || !x->ways->rows)
        return false;
    for (int u = 0; u < job->nusages; u++)
        measure(x, u);
    return true;
}

static int by_kind_and_time(const void *left, const void *right)
{
    const struct measured *a = left, *b = right;

    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->ns < b->ns || a->ns > b->ns)
        return a->ns < b->ns ? -1 : 1;
    return a->usage - b->usage;
}

static int by_way(const void *left, const void *right)
{
    const int a = *(const int *)left, b = *(const int *)right;

    return (a > b) - (a < b);
}

static int count_ways(const struct measured *of, int n)
{
    int *ways = malloc((size_t)n * sizeof *ways);
    int distinct = 0;

    for (int i = 0; ways && i < n; i++)
        ways[i] = of[i].way;
    if (ways)
        qsort(ways, (size_t)n, sizeof *ways, by_way);
    for (int i = 0; ways && i < n; i++)
        distinct += i == 0 || ways[i] != ways[i - 1];
    free(ways);
    return distinct;
}

static void add_excess(struct comparison *x, const struct measured *m,
                       const struct measured *usual, int alike)
{
    const struct ct_usage *u = &x->c->job->usages[m->usage];
    const double excess_ns = ct_price_calls(x->c->job, u) * (m->ns - usual->ns);
    struct ct_way *way = &x->ways->rows[m->way];

    way->slow++;
    if (excess_ns > way->top_excess_ns) {
        way->top_excess_ns = excess_ns;
        way->top = m->usage;
        way->own_ns = m->ns;
        way->usual_ns = usual->ns;
        way->alike = alike;
    }
    way->excess_ns += excess_ns;
}

/* The usual time is the median of those that are about as fast as the fastest.
 * These may be few: then no way is slow but for what slow ones share. */
static void compare(struct comparison *x, const struct measured *of, int n)
{
    const int alike = count_ways(of, n);
    const struct measured *usual;
    int fast = 1;

    if (alike < 2)
        return;
    while (fast < n && of[fast].ns <= LONGER * of[0].ns)
        fast++;
    usual = &of[fast / 2];
    for (int i = 0; i < n; i++) {
        struct ct_way *way = &x->ways->rows[of[i].way];

        way->usual += of[i].ns <= LONGER * usual->ns;
        if (i < fast || of[i].low_ns <= LONGER * usual->high_ns)
            continue;
        way->rare |= 2 * fast < n;
        add_excess(x, &of[i], usual, alike);
    }
}

static void compare_all(struct comparison *x)
{
    int first = 0;

    if (x->n)
        qsort(x->measured, (size_t)x->n, sizeof *x->measured, by_kind_and_time);
    for (int i = 1; i <= x->n; i++)
        if (i == x->n || x->measured[i].kind != x->measured[first].kind) {
            compare(x, x->measured + first, i - first);
            first = i;
        }
}

int ct_ways_compare(const struct ct_case *c, struct ct_ways *ways)
{
    struct comparison x = {.c = c, .ways = ways};
    bool good;

    *ways = (struct ct_ways){0};
    good = measure_all(&x);
    if (good)
        compare_all(&x);
    ct_intern_release(&x.kinds);
    ct_intern_release(&x.way_keys);
    free(x.measured);
    free(x.mixed);
    free(x.others);
    free(x.ends);
    free(x.work);
    if (!good)
        ct_ways_release(ways);
    return good ? 0 : -1;
}

void ct_ways_release(struct ct_ways *ways)
{
    free(ways->rows);
    *ways = (struct ct_ways){0};
}

int ct_way_processes(const struct ct_job *job, const struct ct_way *way,
                     int *processes)
{
    const struct ct_comm *comm = &job->comms[way->comm];
    int n = 0;

    for (int r = 0; r < comm->nranks; r++)
        if (comm->members[r].process != CT_NONE && ct_way_has(way, r))
            processes[n++] = comm->members[r].process;
    return n;
}
