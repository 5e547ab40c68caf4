#include "steps_random.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct draw {
    uint64_t state;
    char *text;
    size_t size, used;
};

static unsigned below(struct draw *d, unsigned n)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(d->state >> 33) % n;
}

static bool chance(struct draw *d, unsigned percent)
{
    return below(d, 100) < percent;
}

__attribute__((format(printf, 2, 3))) static void say(struct draw *d,
                                                      const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    d->used += (size_t)vsnprintf(d->text + d->used, d->size - d->used, format,
                                 arguments);
    va_end(arguments);
}

static void maybe(struct draw *d, unsigned percent, const char *option)
{
    if (chance(d, percent))
        say(d, " --%s", option);
}

struct degrees {
    unsigned tp, pp, dp, cp;
};

/* At least two and at most 16 ranks. */
static struct degrees draw_degrees(struct draw *d)
{
    static const unsigned some[] = {1, 1, 2, 2, 4, 8};
    struct degrees k;
    unsigned ranks;

    do {
        k.tp = some[below(d, 6)];
        k.pp = some[below(d, 6)];
        k.dp = some[below(d, 6)];
        k.cp = chance(d, 20) ? 2 : 1;
        ranks = k.tp * k.pp * k.dp * k.cp;
    } while (ranks < 2 || ranks > 16);
    return k;
}

static void draw_pipeline(struct draw *d, const struct degrees *k,
                          bool accumulates)
{
    static const char *const schedules[] = {"1f1b", "gpipe", "zero-bubble"};
    unsigned micro_batches = accumulates ? 2 + below(d, 11) : 1;

    if (k->pp > 2 && chance(d, 30)) {
        say(d,
            " --pp %u --schedule interleaved --chunks 2 --layers %u"
            " --micro-batches %u",
            k->pp, 2 * k->pp, k->pp * (1 + below(d, 3)));
        return;
    }
    if (k->pp > 1) {
        micro_batches = k->pp * (1 + below(d, 3)) + below(d, 3);
        say(d, " --pp %u --schedule %s", k->pp, schedules[below(d, 3)]);
    }
    say(d, " --layers %u --micro-batches %u", k->pp * (1 + below(d, 4)),
        micro_batches);
}

static void draw_data(struct draw *d, const struct degrees *k, bool *fsdp)
{
    *fsdp = k->dp > 1 && k->pp == 1 && chance(d, 30);
    if (*fsdp)
        say(d, " --zero 3");
    else if (k->dp > 1 && chance(d, 30))
        say(d, " --zero %u", 1 + below(d, 2));
    if (*fsdp && k->dp > 2 && chance(d, 30))
        say(d, " --shard 2");
    else if (!*fsdp && k->dp > 1 && chance(d, 20))
        say(d, " --ep 2 --moe-every %u", 1 + below(d, 2));
    say(d, " --buckets %u", 1 + below(d, 9));
    maybe(d, 40, "overlap");
    maybe(d, 20, "gather-ahead");
    maybe(d, 20, "twin");
    maybe(d, 20, "coalesce");
}

static void draw_shape(struct draw *d, const struct degrees *k)
{
    static const char *const contexts[] = {"ring", "ulysses", "gather"};

    if (k->cp > 1)
        say(d, " --cp %u --context %s", k->cp, contexts[below(d, 3)]);
    maybe(d, 30, "sequence-parallel");
    maybe(d, 20, "recompute");
    maybe(d, 30, "vocabulary");
    maybe(d, 20, "tie-embeddings");
    maybe(d, 20, "norm model");
    maybe(d, 20, "loss");
    maybe(d, 20, "own-streams");
    maybe(d, 20, "share-world");
    maybe(d, 10, "lone-groups");
    if (chance(d, 50))
        say(d, " --scalars %u", chance(d, 20) ? 0 : 1 + below(d, 3));
}

static void draw_phases(struct draw *d, unsigned steps)
{
    if (chance(d, 30))
        say(d, " --warm-up %u", 1 + below(d, steps / 4));
    if (chance(d, 35))
        say(d, " --eval-every %u", 2 + below(d, 7));
    if (chance(d, 20))
        say(d, " --eval-micro-batches %u", 1 + below(d, 8));
    if (chance(d, 30))
        say(d, " --checkpoint-every %u", 2 + below(d, 7));
    if (chance(d, 20))
        say(d, " --ragged-every %u", 2 + below(d, 5));
    if (chance(d, 30))
        say(d, " --barriers %u", below(d, 6));
}

static void draw_times(struct draw *d)
{
    static const char *const orders[] = {"tp,dp,pp", "dp,tp,pp", "pp,tp,dp"};

    say(d, " --order %s --jitter 0.%02u --compute-us %u --seed %u",
        orders[below(d, 3)], below(d, 30), 50 + below(d, 1000), below(d, 1000));
    if (chance(d, 20))
        say(d, " --contention 0.05,2");
    if (chance(d, 20))
        say(d, " --slow 0,1.%u", 1 + below(d, 9));
    if (chance(d, 20))
        say(d, " --hosts 2 --clock-us 1000 --drift-ppm 2");
    if (chance(d, 20))
        say(d, " --end-us 5");
}

void steps_random(unsigned long seed, char *options, size_t size,
                  int *missing_p, int *lost_p)
{
    struct draw d = {.state = seed, .text = options, .size = size};
    struct degrees k;
    unsigned steps;
    bool fsdp;

    below(&d, 1);
    d.state ^= seed << 32;
    k = draw_degrees(&d);
    say(&d, "--tp %u --dp %u", k.tp, k.dp);
    draw_pipeline(&d, &k, chance(&d, 60));
    draw_data(&d, &k, &fsdp);
    draw_shape(&d, &k);
    steps = 4 + below(&d, 14);
    draw_phases(&d, steps);
    draw_times(&d);
    say(&d, " --steps %u", steps);
    *missing_p = chance(&d, 12) ? 2 + (int)below(&d, 4) : 0;
    *lost_p = chance(&d, 15) ? 50 + (int)below(&d, 150) : 0;
}
