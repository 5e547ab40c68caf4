#include "disturb.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tracegen.h"

double normal(uint64_t bits)
{
    double u = ((double)(bits >> 32) + 0.5) / 4294967296.0;
    double v = (double)(bits & 0xffffffffu) / 4294967296.0;

    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* A lognormal factor around 1, the same for the same numbers. */
static double jittered(const struct options *o, uint64_t a, uint64_t b)
{
    return o->jitter > 0 ? exp(o->jitter * normal(mix(mix(o->seed, a), b))) : 1;
}

/* Of a transfer: others are in its way, or not. */
static double contention(const struct options *o, uint64_t a, uint64_t b)
{
    const struct disturbance *d = &o->disturbance;
    uint64_t bits;

    if (d->contended <= 0)
        return 1;
    bits = mix(mix(o->seed ^ 0xc0de, a), b);
    if ((double)(bits >> 32) / 4294967296.0 >= d->contended)
        return 1;
    return 1 - d->contention *
                   log(((double)(bits & 0xffffffffu) + 0.5) / 4294967296.0);
}

static bool is_in(const struct slow *slow, int number)
{
    return number >= slow->from && number <= slow->to;
}

/* Next to each other in the ring of a communicator. */
static bool are_neighbours(const struct comm *c, int a, int b)
{
    int i;

    for (i = 0; i < c->nranks; i++) {
        int rank = c->ranks[i], next = c->ranks[(i + 1) % c->nranks];

        if ((rank == a && next == b) || (rank == b && next == a))
            return true;
    }
    return false;
}

static bool has_host(const struct layout *layout, const struct comm *c,
                     const struct slow *slow)
{
    int i;

    for (i = 0; i < c->nranks; i++)
        if (is_in(slow, layout_host(layout, c->ranks[i])))
            return true;
    return false;
}

static bool is_in_comm(const struct layout *layout, const struct comm *c,
                       const struct slow *slow)
{
    if (slow->what == SLOW_LINK)
        return are_neighbours(c, slow->from, slow->to);
    return slow->what == SLOW_NIC && c->crosses && has_host(layout, c, slow);
}

static bool is_on_way(const struct layout *layout, int source, int target,
                      const struct slow *slow)
{
    const int a = layout_host(layout, source), b = layout_host(layout, target);

    if (slow->what == SLOW_LINK)
        return (source == slow->from && target == slow->to) ||
               (source == slow->to && target == slow->from);
    return slow->what == SLOW_NIC &&
           layout_domain(layout, source) != layout_domain(layout, target) &&
           (is_in(slow, a) || is_in(slow, b));
}

static bool computes_in(const struct layout *layout, int rank,
                        const struct slow *slow)
{
    if (slow->what == SLOW_HOSTS)
        return is_in(slow, layout_host(layout, rank));
    return slow->what == SLOW_RANKS && is_in(slow, rank);
}

static bool is_now(const struct slow *slow, int64_t at_ns)
{
    return at_ns >= slow->begin_ns && at_ns < slow->end_ns;
}

int64_t compute_ns(const struct simulation *s, int rank, double us)
{
    const struct options *o = s->layout->options;
    const struct disturbance *d = &o->disturbance;
    const int64_t at_ns = s->ranks[rank].streams[COMPUTE_STREAM].now_ns;
    double factor = 1;
    int i;

    for (i = 0; i < d->nslow; i++)
        if (is_now(&d->slow[i], at_ns) &&
            computes_in(s->layout, rank, &d->slow[i]))
            factor *= d->slow[i].factor;
    return (int64_t)(1e3 * us * factor *
                     jittered(o, (uint64_t)rank + 1, s->ranks[rank].draws++));
}

int64_t collective_ns(const struct simulation *s, int comm, enum ct_op op,
                      uint64_t bytes, uint64_t n, int64_t start_ns)
{
    const struct options *o = s->layout->options;
    const struct disturbance *d = &o->disturbance;
    const struct comm *c = &s->layout->comms[comm];
    double factor = jittered(o, c->uid, n) * contention(o, c->uid, n);
    int i;

    for (i = 0; i < d->nslow; i++)
        if (is_now(&d->slow[i], start_ns) &&
            is_in_comm(s->layout, c, &d->slow[i]))
            factor *= d->slow[i].factor;
    return (int64_t)(transfer_ns(o, c->crosses, op, c->nranks, bytes) * factor);
}

int64_t message_ns(const struct simulation *s, int source, int target,
                   uint64_t bytes, uint64_t n, int64_t start_ns)
{
    const struct options *o = s->layout->options;
    const struct disturbance *d = &o->disturbance;
    const bool crosses =
        layout_domain(s->layout, source) != layout_domain(s->layout, target);
    const uint64_t way = mix((uint64_t)source, (uint64_t)target);
    double factor = jittered(o, way, n) * contention(o, way, n);
    int i;

    for (i = 0; i < d->nslow; i++)
        if (is_now(&d->slow[i], start_ns) &&
            is_on_way(s->layout, source, target, &d->slow[i]))
            factor *= d->slow[i].factor;
    return (int64_t)(transfer_ns(o, crosses, CT_OP_SEND, 2, bytes) * factor);
}

int64_t late_end_ns(const struct simulation *s, int comm, int place, uint64_t n)
{
    const struct options *o = s->layout->options;
    const struct comm *c = &s->layout->comms[comm];
    const struct disturbance *d = &o->disturbance;
    const uint64_t which = mix(c->uid, (uint64_t)place);
    double us = 0;

    if (d->end_us > 0)
        us += d->end_us * fabs(normal(mix(mix(o->seed ^ 0xe2d, which), n)));
    if (d->end_order_us > 0 && place)
        us += d->end_order_us * place / (c->nranks - 1);
    return (int64_t)(1e3 * us);
}

int64_t dies_at(const struct options *o, int rank)
{
    const struct disturbance *d = &o->disturbance;
    int i;

    for (i = 0; i < d->ndeaths; i++)
        if (rank >= d->deaths[i].from && rank <= d->deaths[i].to)
            return d->deaths[i].at_ns;
    return INT64_MAX;
}

bool is_skipped(const struct options *o, int rank, int64_t n)
{
    const struct disturbance *d = &o->disturbance;
    int i;

    for (i = 0; i < d->nskips; i++)
        if (d->skips[i].rank == rank && d->skips[i].n == n)
            return true;
    return false;
}

bool may_hang(const struct options *o)
{
    return o->disturbance.ndeaths || o->disturbance.nskips;
}

static const struct {
    enum ct_op_size size;
    enum ct_op_wire wire;
} ops[CT_OP_COUNT] = {
#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, ...) \
    [CT_OP_##id_] = {CT_##size_, CT_##wire_},
#include "commtrace/nccl_ops.def"
};

static const uint64_t type_bytes[] = {
#define TYPE(id_, value_, name_, bytes_) [value_] = (bytes_),
#include "commtrace/nccl_types.def"
};

uint64_t op_bytes(enum ct_op op, int type, uint64_t count, int nranks)
{
    return count * type_bytes[type] *
           (ops[op].size == CT_ALL_SHARES ? (uint64_t)nranks : 1);
}

/* The last curve of the link that begins at or below bytes. */
static struct curve curve_of(const struct options *o, int link, uint64_t bytes)
{
    const struct disturbance *d = &o->disturbance;
    struct curve best = {.alpha_us = o->alpha_us[link], .GBps = o->GBps[link]};
    int i;

    for (i = 0; i < d->ncurves; i++)
        if (d->curves[i].link == link && d->curves[i].bytes <= bytes &&
            d->curves[i].bytes >= best.bytes)
            best = d->curves[i];
    return best;
}

double transfer_ns(const struct options *o, int link, enum ct_op op, int nranks,
                   uint64_t bytes)
{
    const struct curve curve = curve_of(o, link, bytes);
    double n = nranks, wire = ops[op].wire == CT_UNIT   ? 1
                              : ops[op].wire == CT_RING ? (n - 1) / n
                                                        : 2 * (n - 1) / n;

    return 1e3 * curve.alpha_us + wire * (double)bytes / curve.GBps;
}

/* F or F@FROM-TO, in milliseconds. */
static void set_factor(struct slow *slow, const char *name, const char *text)
{
    double from = 0, to = 9e12 /* ns: 9e18 */;
    char left;
    int n =
        sscanf(text, "%lf%c%lf-%lf%c", &slow->factor, &left, &from, &to, &left);

    if ((n != 1 && n != 4) || (n == 4 && !strchr(text, '@')) ||
        !(slow->factor > 0 && from >= 0 && to >= from && to <= 9e12))
        option_fail(name, text);
    slow->begin_ns = (int64_t)(1e6 * from);
    slow->end_ns = (int64_t)(1e6 * to);
}

static const char *const slow_names[] = {[SLOW_RANKS] = "slow",
                                         [SLOW_HOSTS] = "slow-host",
                                         [SLOW_LINK] = "slow-link",
                                         [SLOW_NIC] = "slow-nic"};

static void add_slow(struct options *o, const char *name, const char *value)
{
    struct disturbance *d = &o->disturbance;
    struct slow *slow = &d->slow[d->nslow];
    int what = SLOW_RANKS;
    const char *at;

    if (d->nslow == MAX_SLOW)
        option_fail(name, value);
    while (strcmp(name, slow_names[what]) != 0)
        what++;
    slow->what = (enum slow_what)what;
    at = option_range(name, value, &slow->from, &slow->to);
    if (*at != ',')
        option_fail(name, value);
    set_factor(slow, name, at + 1);
    d->nslow++;
}

/* LINK,BYTES,US,GBPS with link 0 inside, 1 between domains. */
static void add_curve(struct options *o, const char *name, const char *value)
{
    struct disturbance *d = &o->disturbance;
    double v[4];

    option_numbers(name, value, v, 4);
    if (d->ncurves == MAX_CURVES || (v[0] != 0 && v[0] != 1) || v[1] < 0 ||
        v[2] < 0 || v[3] <= 0)
        option_fail(name, value);
    d->curves[d->ncurves++] =
        (struct curve){(int)v[0], (uint64_t)v[1], v[2], v[3]};
}

static void set_contention(struct options *o, const char *name,
                           const char *value)
{
    double v[2];

    option_numbers(name, value, v, 2);
    if (v[0] < 0 || v[0] > 1 || v[1] < 0)
        option_fail(name, value);
    o->disturbance.contended = v[0];
    o->disturbance.contention = v[1];
}

static void add_death(struct options *o, const char *name, const char *value)
{
    struct disturbance *d = &o->disturbance;
    const char *at;

    if (d->ndeaths == MAX_HANGS)
        option_fail(name, value);
    at = option_range(name, value, &d->deaths[d->ndeaths].from,
                      &d->deaths[d->ndeaths].to);
    if (*at != '@')
        option_fail(name, value);
    d->deaths[d->ndeaths++].at_ns =
        (int64_t)(1e6 * option_number(name, at + 1, 0));
}

static void add_skip(struct options *o, const char *name, const char *value)
{
    struct disturbance *d = &o->disturbance;
    double v[2];

    option_numbers(name, value, v, 2);
    if (d->nskips == MAX_HANGS || v[0] < 0 || v[0] >= MAX_RANKS || v[1] < 0)
        option_fail(name, value);
    d->skips[d->nskips].rank = (int)v[0];
    d->skips[d->nskips++].n = (int64_t)v[1];
}

const char *disturb_check(const struct options *o, int nranks)
{
    const struct disturbance *d = &o->disturbance;
    int i;

    for (i = 0; i < d->nslow; i++) {
        const enum slow_what what = d->slow[i].what;
        const bool of_hosts = what == SLOW_HOSTS || what == SLOW_NIC;

        if (d->slow[i].to >= (of_hosts ? o->hosts : nranks))
            return slow_names[what];
    }
    for (i = 0; i < d->ndeaths; i++)
        if (d->deaths[i].to >= nranks)
            return "kill";
    for (i = 0; i < d->nskips; i++)
        if (d->skips[i].rank >= nranks)
            return "skip";
    return NULL;
}

static void set_end(struct options *o, const char *name, const char *value)
{
    o->disturbance.end_us = option_number(name, value, 0);
}

static void set_end_order(struct options *o, const char *name,
                          const char *value)
{
    o->disturbance.end_order_us = option_number(name, value, 0);
}

static void set_hang(struct options *o, const char *name, const char *value)
{
    o->disturbance.hang_ns = (int64_t)(1e9 * option_number(name, value, 0));
}

const struct option_row disturb_options[] = {
    {"slow", "R-S,F[@A-B]", add_slow,
     "ranks compute F times as long [from millisecond A to B]"},
    {"slow-host", "H-I,F[@A-B]", add_slow, "all ranks of hosts do"},
    {"slow-link", "R-S,F[@A-B]", add_slow, "transfers between ranks R and S"},
    {"slow-nic", "H-I,F[@A-B]", add_slow, "transfers from and to hosts"},
    {"curve", "L,BYTES,US,GBPS", add_curve,
     "of link L (0 inside, 1 between domains) from a size on"},
    {"contention", "P,M", set_contention,
     "a share P of transfers takes 1 + M times as long on average (0,0)"},
    {"kill", "R-S@MS", add_death, "ranks die then, and the others wait"},
    {"skip", "R,N", add_skip, "rank R never calls its Nth collective"},
    {"hang-s", "S", set_hang,
     "after which a job that hangs by that is killed (60)"},
    {"end-us", "S", set_end, "scatter of the ends of a collective (0)"},
    {"end-order-us", "T", set_end_order,
     "between its first and last rank, always (0)"},
    {NULL, NULL, NULL, NULL}};
