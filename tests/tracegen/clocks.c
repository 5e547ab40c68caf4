#include "clocks.h"

#include <math.h>
#include <string.h>

#include "tracegen.h"

#define EPOCH_NS 1700000000000000000
#define BOOT_NS 1000000000000
#define TURN 6.283185307179586

/* Between -1 and 1. */
static double draw(const struct options *o, int host, uint64_t what)
{
    uint64_t bits = mix(mix(o->seed, 0xc10cc + what), (uint64_t)host);

    return (double)(bits >> 11) / 4503599627370496.0 - 1;
}

struct host_clock host_clock(const struct options *o, int host)
{
    const struct clock_options *all = &o->clocks;
    struct host_clock clock = {
        .boot_ns = (1 + host) * (int64_t)BOOT_NS,
        .offset_us = all->offset_us * draw(o, host, 0),
        .drift_ppm = all->drift_ppm * draw(o, host, 1),
        .wander_ppm = all->wander_ppm,
        .wander_ns = 1e9 * all->wander_s,
        .phase = TURN * draw(o, host, 2),
    };
    int i;

    for (i = 0; i < all->nset; i++)
        if (all->set[i].host == host) {
            clock.offset_us = all->set[i].offset_us;
            clock.drift_ppm = all->set[i].drift_ppm;
        }
    clock.real_ns = EPOCH_NS + (int64_t)(1e3 * clock.offset_us);
    return clock;
}

int64_t host_time(const struct host_clock *clock, int64_t true_ns)
{
    double t = (double)true_ns, gain = 1e-6 * clock->drift_ppm * t;

    if (clock->wander_ppm > 0)
        gain += 1e-6 * clock->wander_ppm * clock->wander_ns / TURN *
                (sin(TURN * t / clock->wander_ns + clock->phase) -
                 sin(clock->phase));
    return true_ns + (int64_t)gain;
}

/* Ops between two of the ties. */
#define TIE_OPS 32

int64_t gpu_error_ns(const struct options *o, int rank, int64_t n)
{
    if (o->clocks.gpu_us <= 0)
        return 0;
    return (int64_t)(1e3 * o->clocks.gpu_us *
                     normal(mix(mix(o->seed ^ 0x69b, (uint64_t)rank),
                                (uint64_t)(n / TIE_OPS))));
}

/* PPM or PPM,SECONDS */
static void set_wander(struct options *o, const char *name, const char *value)
{
    double values[2] = {0, o->clocks.wander_s};

    option_numbers(name, value, values, strchr(value, ',') ? 2 : 1);
    if (values[0] < 0 || values[1] <= 0)
        option_fail(name, value);
    o->clocks.wander_ppm = values[0];
    o->clocks.wander_s = values[1];
}

static void set_one(struct options *o, const char *name, const char *value)
{
    struct clock_options *all = &o->clocks;
    double values[3]; /* host, offset, drift */

    option_numbers(name, value, values, 3);
    if (all->nset == MAX_SET_CLOCKS || values[0] < 0 || values[0] >= MAX_RANKS)
        option_fail(name, value);
    all->set[all->nset].host = (int)values[0];
    all->set[all->nset].offset_us = values[1];
    all->set[all->nset++].drift_ppm = values[2];
}

const char *clocks_check(const struct options *o)
{
    int i;

    for (i = 0; i < o->clocks.nset; i++)
        if (o->clocks.set[i].host >= o->hosts)
            return "host-clock";
    return NULL;
}

static void set_offset(struct options *o, const char *name, const char *value)
{
    o->clocks.offset_us = option_number(name, value, 0);
}

static void set_drift(struct options *o, const char *name, const char *value)
{
    o->clocks.drift_ppm = option_number(name, value, 0);
}

static void set_gpu(struct options *o, const char *name, const char *value)
{
    o->clocks.gpu_us = option_number(name, value, 0);
}

static void set_tick(struct options *o, const char *name, const char *value)
{
    o->tick_ns = (int64_t)option_number(name, value, 1);
}

const struct option_row clocks_options[] = {
    {"clock-us", "T", set_offset, "hosts' clocks are off by up to T (0)"},
    {"drift-ppm", "D", set_drift, "and run fast or slow by up to D (0)"},
    {"wander-ppm", "D[,S]", set_wander,
     "and change their rate by up to D, to and fro in S seconds (0,600)"},
    {"host-clock", "H,T,D", set_one, "offset and drift of host H"},
    {"gpu-us", "S", set_gpu, "deviation of where GPUs say ops were (0)"},
    {"tick-ns", "T", set_tick, "of the GPUs' clocks (1)"},
    {NULL, NULL, NULL, NULL}};
