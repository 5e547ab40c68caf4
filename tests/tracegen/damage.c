#include "damage.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "tracegen.h"

bool is_missing(const struct options *o, int rank)
{
    const struct damage *d = &o->damage;
    int i;

    for (i = 0; i < d->nmissing; i++)
        if (rank >= d->missing[i].from && rank <= d->missing[i].to)
            return true;
    return false;
}

int64_t cut_of(const struct options *o, int rank)
{
    const struct damage *d = &o->damage;
    const int64_t dies_ns = dies_at(o, rank);
    int i;

    for (i = 0; i < d->ncuts; i++)
        if (rank >= d->cuts[i].from && rank <= d->cuts[i].to &&
            d->cuts[i].at_ns < dies_ns)
            return d->cuts[i].at_ns;
    return dies_ns;
}

/* Of what happens with this probability. */
static bool happens(const struct options *o, uint64_t what, long n,
                    double probability)
{
    uint64_t bits = mix(mix(o->seed, what), (uint64_t)n);

    return (double)(bits >> 11) / 9007199254740992.0 < probability;
}

bool is_dropped(const struct options *o, int rank, long n)
{
    return o->damage.drop > 0 &&
           happens(o, 0xd50b + (uint64_t)rank, n / o->damage.drop_run,
                   o->damage.drop);
}

bool is_launch_dropped(const struct options *o, int rank, long n)
{
    return o->damage.drop_launches > 0 &&
           happens(o, 0x1a050c4 + (uint64_t)rank, n, o->damage.drop_launches);
}

bool is_unlike(const struct options *o, int rank, long n, enum unlike *how)
{
    const struct damage *d = &o->damage;
    int i;

    for (i = 0; i < d->nplants; i++)
        if (d->plants[i].rank == rank && d->plants[i].n == n) {
            *how = d->plants[i].how;
            return true;
        }
    return false;
}

static void set_drop(struct options *o, const char *name, const char *value)
{
    double values[2] = {0, 1};

    option_numbers(name, value, values, strchr(value, ',') ? 2 : 1);
    if (values[0] < 0 || values[0] > 1 || values[1] < 1 || values[1] > INT_MAX)
        option_fail(name, value);
    o->damage.drop = values[0];
    o->damage.drop_run = (int)values[1];
}

static void set_missing(struct options *o, const char *name, const char *value)
{
    struct damage *d = &o->damage;
    const char *at = value;

    do {
        if (d->nmissing == MAX_PLANTS)
            option_fail(name, value);
        at = option_range(name, at, &d->missing[d->nmissing].from,
                          &d->missing[d->nmissing].to);
        d->nmissing++;
    } while (*at++ == ',');
    if (at[-1])
        option_fail(name, value);
}

static void set_cut(struct options *o, const char *name, const char *value)
{
    struct damage *d = &o->damage;
    const char *at;

    if (d->ncuts == MAX_PLANTS)
        option_fail(name, value);
    at = option_range(name, value, &d->cuts[d->ncuts].from,
                      &d->cuts[d->ncuts].to);
    if (*at != '@')
        option_fail(name, value);
    d->cuts[d->ncuts++].at_ns = (int64_t)(1e6 * option_number(name, at + 1, 0));
}

static void set_plant(struct options *o, const char *name, const char *value)
{
    static const char *const hows[] = {[UNLIKE_COUNT] = "count",
                                       [UNLIKE_TYPE] = "type",
                                       [UNLIKE_KIND] = "kind"};
    struct damage *d = &o->damage;
    int rank, i;
    long n;
    char how[8];

    if (d->nplants == MAX_PLANTS ||
        sscanf(value, "%d,%ld,%7s", &rank, &n, how) != 3)
        option_fail(name, value);
    for (i = 0; i <= UNLIKE_KIND && strcmp(how, hows[i]) != 0; i++)
        ;
    if (i > UNLIKE_KIND)
        option_fail(name, value);
    d->plants[d->nplants].rank = rank;
    d->plants[d->nplants].n = n;
    d->plants[d->nplants++].how = (enum unlike)i;
}

const char *damage_check(const struct options *o, int nranks)
{
    const struct damage *d = &o->damage;
    int i;

    for (i = 0; i < d->nmissing; i++)
        if (d->missing[i].to >= nranks)
            return "missing";
    for (i = 0; i < d->ncuts; i++)
        if (d->cuts[i].to >= nranks)
            return "cut";
    for (i = 0; i < d->nplants; i++)
        if (d->plants[i].rank < 0 || d->plants[i].rank >= nranks)
            return "mismatch";
    return NULL;
}

static void set_drop_launches(struct options *o, const char *name,
                              const char *value)
{
    o->damage.drop_launches = option_number(name, value, 0);
}

const struct option_row damage_options[] = {
    {"drop", "P[,N]", set_drop, "share of ops lost, N in a row (0,1)"},
    {"drop-launches", "P", set_drop_launches,
     "share of launches of groups lost (0)"},
    {"missing", "R,R-S,...", set_missing, "ranks without a file"},
    {"cut", "R-S@MS", set_cut, "files of ranks that end at a time"},
    {"mismatch", "R,N,HOW", set_plant,
     "rank R's Nth collective has another count, type or kind"},
    {NULL, NULL, NULL, NULL}};
