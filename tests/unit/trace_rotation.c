/*
 * All-reduces of a ring, back to back, by its own recurrence: rank i may take
 * step k when rank i-1 has done step k-1. Whatever the skews, T is known.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/stages.h"

#define CALLS 64
#define MAX_RANKS 8
#define HOP_NS 1000000.0
#define GAP_NS 500000.0

struct world {
    struct ct_trace trace;
    struct ct_job job;
    struct ct_comm comm;
    struct ct_usage usage;
    struct ct_process processes[MAX_RANKS];
    struct ct_comm_row rows[MAX_RANKS];
    struct ct_op_class_row class;
    struct ct_op_row ops[MAX_RANKS][CALLS];
    struct ct_instance instances[CALLS];
    int order[MAX_RANKS];
    bool placed; /* places in time are known, not only durations */
};

static bool placed;          /* what the next world is */
static int64_t misplaced_ns; /* rank by rank a step of it, of n */

static double uniform(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (double)(*seed >> 33) / (double)(UINT64_C(1) << 31);
}

static struct world *new_world(int n)
{
    struct world *w = calloc(1, sizeof *w);

    w->placed = placed;
    w->trace.processes = w->processes;
    w->trace.nprocesses = n;
    w->trace.jobs = &w->job;
    w->trace.njobs = 1;
    w->comm.nranks = w->comm.nknown = n;
    w->usage = (struct ct_usage){.base = CT_OP_ALL_REDUCE,
                                 .src = CT_NONE,
                                 .dst = CT_NONE,
                                 .calls = CALLS,
                                 .nsamples = CALLS};
    w->class =
        (struct ct_op_class_row){.base = CT_OP_ALL_REDUCE, .graph = CT_NONE};
    w->job = (struct ct_job){.nprocesses = n,
                             .processes = w->order,
                             .ncomms = 1,
                             .comms = &w->comm,
                             .ninstances = CALLS,
                             .instances = w->instances,
                             .nusages = 1,
                             .usages = &w->usage};
    for (int i = 0; i < n; i++) {
        w->order[i] = i;
        w->rows[i].rank = i;
        w->processes[i].comms = &w->rows[i];
        w->processes[i].classes = &w->class;
        w->processes[i].ops = w->ops[i];
        w->processes[i].nops = CALLS;
    }
    return w;
}

static void add_call(struct world *w, int call, const double *start,
                     const double *end, int n)
{
    struct ct_instance *instance = &w->instances[call];

    *instance = (struct ct_instance){.base = CT_OP_ALL_REDUCE,
                                     .ordinal = (uint32_t)call,
                                     .transfer_ns = INT64_MAX,
                                     .ranks = (uint32_t)n,
                                     .timed = (uint32_t)n};
    for (int i = 0; i < n; i++) {
        const int64_t ns = (int64_t)(end[i] - start[i]);

        w->ops[i][call] = (struct ct_op_row){
            .enter_ns = (int64_t)start[i],
            .offset =
                ct_shorten_ns(w->placed ? i * misplaced_ns / n : CT_NO_TIME),
            .gpu = ct_shorten_ns(ns),
            .ordinal = (uint32_t)call,
            .launch = CT_NONE,
            .instance = call};
        if (ns < instance->transfer_ns)
            instance->transfer_ns = ns;
        if (ns > instance->wait_max_ns)
            instance->wait_max_ns = ns;
        instance->wait_sum_ns += ns;
    }
    instance->wait_max_ns -= instance->transfer_ns;
    instance->wait_sum_ns -= n * instance->transfer_ns;
}

/* One all-reduce: 2(n-1) steps of one hop each. */
static void ring(const double *start, double *end, int n)
{
    double now[MAX_RANKS], next[MAX_RANKS];

    memcpy(now, start, sizeof now);
    for (int step = 0; step < 2 * (n - 1); step++) {
        for (int i = 0; i < n; i++)
            next[i] = fmax(now[i], now[(i + n - 1) % n] + HOP_NS);
        memcpy(now, next, sizeof now);
    }
    memcpy(end, now, sizeof now);
}

/* A collective that lets nobody go before the last has come. */
static void barrier(const double *start, double *end, int n)
{
    double last = 0;

    for (int i = 0; i < n; i++)
        last = fmax(last, start[i]);
    for (int i = 0; i < n; i++)
        end[i] = last + 2 * (n - 1) * HOP_NS;
}

/* lateness: each rank's own before each call, up to so many ns; rank 1 is slow
 * before one call in so many. */
static struct world *play_every(int every, int n, double first_skew,
                                double lateness, double slow_rank,
                                void (*op)(const double *, double *, int))
{
    struct world *w = new_world(n);
    double start[MAX_RANKS] = {0}, end[MAX_RANKS] = {0};
    uint64_t seed = (uint64_t)n;

    for (int i = 0; i < n; i++)
        start[i] = first_skew * uniform(&seed);
    for (int call = 0; call < CALLS; call++) {
        op(start, end, n);
        add_call(w, call, start, end, n);
        for (int i = 0; i < n; i++)
            start[i] = end[i] + GAP_NS + lateness * uniform(&seed) +
                       (i == 1 && call % every == 0 ? slow_rank : 0);
    }
    return w;
}

static struct world *play(int n, double first_skew, double lateness,
                          double slow_rank,
                          void (*op)(const double *, double *, int))
{
    return play_every(1, n, first_skew, lateness, slow_rank, op);
}

/* Mean and largest deviation of the transfers, in us. */
struct result {
    double us, off_us;
};

/* Whatever the correction does, a rank's transfers and waits are its time. */
static struct result locate(struct world *w, int n)
{
    struct result r = {0};

    ct_trace_locate(&w->trace, &w->job);
    for (int i = 0; i < CALLS; i++)
        r.us += (double)w->instances[i].transfer_ns / 1e3 / CALLS;
    for (int i = 0; i < CALLS; i++) {
        const struct ct_instance *instance = &w->instances[i];
        int64_t sum = 0;

        for (int rank = 0; rank < n; rank++) {
            struct ct_op_cost cost;

            assert_true(ct_op_cost(&w->trace, rank, i, &cost));
            assert_int_equal(cost.transfer_ns, instance->transfer_ns);
            assert_int_equal(cost.transfer_ns + cost.wait_ns,
                             ct_op_gpu_ns(&w->ops[rank][i]));
            sum += cost.wait_ns;
        }
        assert_int_equal(sum, instance->wait_sum_ns);
        assert_true(sum >= 0);
        r.off_us =
            fmax(r.off_us, fabs((double)instance->transfer_ns / 1e3 - r.us));
    }
    free(w);
    return r;
}

static void test_skew_goes_round(void **state)
{
    (void)state;
    for (int n = 3; n <= MAX_RANKS; n++) {
        const double truth = 2 * (n - 1) * HOP_NS / 1e3;
        const struct result r = locate(play(n, .9 * HOP_NS, 0, 0, ring), n);

        /* Every single call, but for the first, whose skew came from outside.
         */
        if (fabs(r.us / truth - 1) > .001 || r.off_us > .02 * truth)
            fail_msg("n=%d: %.1f us +- %.1f, truth %.1f", n, r.us, r.off_us,
                     truth);
    }
}

/* Another rank late each time, or always the same: nothing goes round, and the
 * means are far above the transfer. */
static void test_lateness_does_not(void **state)
{
    (void)state;
    for (int n = 3; n <= MAX_RANKS; n++) {
        const double truth = 2 * (n - 1) * HOP_NS / 1e3;
        const struct result by_chance =
            locate(play(n, 0, 3 * HOP_NS, 0, barrier), n);
        const struct result same =
            locate(play(n, 0, 0, 2 * HOP_NS, barrier), n);

        /* Three of the hops late by up to three: of a call's spread, a quarter
         * at most may pass for transfer where the calls do not tell. */
        if (fabs(by_chance.us / truth - 1) > .05 ||
            fabs(same.us / truth - 1) > .13)
            fail_msg("n=%d: %.1f us, %.1f us, truth %.1f", n, by_chance.us,
                     same.us, truth);
    }
}

/* Calls to which all come at once do not say what becomes of those to which one
 * comes late. */
static void test_lateness_now_and_then(void **state)
{
    (void)state;
    placed = true;
    for (int n = 3; n <= MAX_RANKS; n++) {
        const double truth = 2 * (n - 1) * HOP_NS / 1e3;
        const struct result r =
            locate(play_every(16, n, 0, 0, 30 * HOP_NS, barrier), n);

        if (fabs(r.us / truth - 1) > .001 || r.off_us > .001 * truth)
            fail_msg("n=%d: %.1f us +- %.1f, truth %.1f", n, r.us, r.off_us,
                     truth);
    }
    placed = false;
}

/* By their places in time every call of either kind is known, whoever was late
 * and by how much. */
static void test_places(void **state)
{
    (void)state;
    placed = true;
    for (int n = 2; n <= MAX_RANKS; n++) {
        const double truth = 2 * (n - 1) * HOP_NS / 1e3;
        const struct result results[] = {
            locate(play(n, 0, 3 * HOP_NS, 0, barrier), n),
            locate(play(n, 0, 0, 9 * HOP_NS, barrier), n),
            locate(play(n, 0, 3 * HOP_NS, 0, ring), n),
            locate(play(n, 0, .3 * HOP_NS, 5 * HOP_NS, ring), n)};

        for (size_t i = 0; i < sizeof results / sizeof *results; i++)
            if (fabs(results[i].us / truth - 1) > .001 ||
                results[i].off_us > .01 * truth)
                fail_msg("n=%d, case %zu: %.1f us +- %.1f, truth %.1f", n, i,
                         results[i].us, results[i].off_us, truth);
    }
    placed = false;
}

/* Places that are no better than the ranks' ends are apart do not overrule
 * skews that go round. */
static void test_bad_places(void **state)
{
    (void)state;
    placed = true;
    misplaced_ns = (int64_t)HOP_NS;
    for (int n = 4; n <= MAX_RANKS; n++) {
        const double truth = 2 * (n - 1) * HOP_NS / 1e3;
        struct world *w = play(n, .9 * HOP_NS, 0, 0, ring);
        struct result r;

        for (int rank = 0; rank < n; rank++)
            w->processes[rank].gpu_clock_ns = (int64_t)HOP_NS / 2;
        r = locate(w, n);
        if (fabs(r.us / truth - 1) > .001 || r.off_us > .02 * truth)
            fail_msg("n=%d: %.1f us +- %.1f, truth %.1f", n, r.us, r.off_us,
                     truth);
    }
    placed = false;
    misplaced_ns = 0;
}

/* Without skew there is nothing to choose: all agree on T. */
static void test_no_skew(void **state)
{
    const struct result r = locate(play(4, 0, 0, 0, ring), 4);

    (void)state;
    assert_true(fabs(r.us / (6 * HOP_NS / 1e3) - 1) < .001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skew_goes_round),
        cmocka_unit_test(test_lateness_does_not),
        cmocka_unit_test(test_lateness_now_and_then),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_bad_places),
        cmocka_unit_test(test_no_skew)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
