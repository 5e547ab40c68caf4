/* The common time of hosts whose clocks are off and run at rates of their own,
 * on jobs whose true times are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "trace/clocks.h"
#include "trace_files.h"

#define MOST_HOSTS 8
#define S 1000000000.

struct host {
    double ahead_s;            /* at true time 0 */
    double ppm;                /* it runs fast by */
    double wander_ppm;         /* that changes by, within 600 s */
    double jump_ns, jump_at_s; /* then it is set */
};

struct job {
    int nhosts, per_host;
    struct host hosts[MOST_HOSTS];
    bool one_boot;
    double scatter_ns; /* of the ends of an op */
    uint64_t seed;
    int nops; /* of each process so far: ids */
    sqlite3 *dbs[64];
    const char *folder;
};

static double draw(struct job *job)
{
    job->seed = job->seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(job->seed >> 11) / 9007199254740992.;
}

/* What the clock of a host says at a true time. */
static double reading(const struct job *job, int host, double at_ns)
{
    const struct host *h = &job->hosts[host];
    const double turn = 2 * M_PI * at_ns / (600 * S);

    return h->ahead_s * S + at_ns + at_ns * h->ppm * 1e-6 +
           h->wander_ppm * 1e-6 * 600 * S / (2 * M_PI) * sin(turn) +
           (h->jump_at_s > 0 && at_ns >= h->jump_at_s * S ? h->jump_ns : 0);
}

static int host_of(const struct job *job, int rank)
{
    return rank / job->per_host;
}

static void begin(struct job *job)
{
    int r, n = job->nhosts * job->per_host;

    printf("seed %llu\n", (unsigned long long)job->seed);
    job->folder = files_folder();
    for (r = 0; r < n; r++) {
        const int h = host_of(job, r);
        const int64_t t0 = (int64_t)reading(job, h, 0);

        job->dbs[r] = files_begin_reducing(job->folder, r, n, h);
        files_sql(job->dbs[r],
                  "UPDATE process SET t0_ns = %lld, t0_real_ns = %lld"
                  " + 1700000000000000000",
                  (long long)t0, (long long)t0);
        if (job->one_boot)
            files_sql(job->dbs[r], "UPDATE process SET boot_id = 'boot0',"
                                   " host_id = 'id0'");
        files_class(job->dbs[r], 2, 1, CT_OP_SEND, 1000, (r + 1) % n);
        files_class(job->dbs[r], 3, 1, CT_OP_RECV, 1000, (r + n - 1) % n);
        files_class(job->dbs[r], 4, 1, CT_OP_SEND, 1000, (r + n - 1) % n);
        files_class(job->dbs[r], 5, 1, CT_OP_RECV, 1000, (r + 1) % n);
    }
}

static void add(struct job *job, int rank, int class, int ordinal,
                double start_ns, double end_ns)
{
    const int h = host_of(job, rank);
    const double t0 = (double)(int64_t)reading(job, h, 0);

    files_op(job->dbs[rank], ++job->nops, class, ordinal,
             lround(reading(job, h, start_ns) - t0), lround(end_ns - start_ns));
}

/* All ranks come within skew; the op takes ns from the last one on. */
static void reduce(struct job *job, int ordinal, double at_ns, double skew_ns,
                   double ns)
{
    const int n = job->nhosts * job->per_host;
    double starts[64], last = 0;
    int r;

    for (r = 0; r < n; r++) {
        starts[r] = at_ns + skew_ns * draw(job);
        last = fmax(last, starts[r]);
    }
    for (r = 0; r < n; r++)
        add(job, r, 1, ordinal, starts[r],
            last + ns + job->scatter_ns * (2 * draw(job) - 1));
}

/* From rank a to b; the receiver waits for it. */
static void send(struct job *job, int a, int b, int ordinal, double at_ns,
                 double ns, double waits_ns)
{
    const int n = job->nhosts * job->per_host;
    const bool up = b == (a + 1) % n;

    add(job, a, up ? 2 : 4, ordinal, at_ns, at_ns + ns / 2);
    add(job, b, up ? 3 : 5, ordinal, at_ns - waits_ns, at_ns + ns);
}

static struct ct_trace *end(struct job *job)
{
    int r;

    for (r = 0; r < job->nhosts * job->per_host; r++)
        files_end(job->dbs[r]);
    return files_open(job->folder);
}

static int by_size(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* 95 % of the times between from and to, at all hosts, are off by no more. */
static double off_by(const struct job *job, const struct ct_trace *trace,
                     double from_s, double to_s)
{
    enum { TIMES = 400 };
    double *off = calloc((size_t)TIMES * (size_t)job->nhosts, sizeof *off);
    double p95;
    int h, i, n = 0;

    for (h = 1; h < job->nhosts; h++)
        for (i = 0; i < TIMES; i++) {
            const double at = S * (from_s + (to_s - from_s) * i / TIMES);
            const struct ct_process *p = &trace->processes[h * job->per_host];
            const struct ct_clock *clock = &trace->jobs[0].clocks[p->clock];

            off[n++] = fabs(
                (double)ct_clock_common(clock, (int64_t)reading(job, h, at)) -
                (double)(int64_t)reading(job, 0, at));
        }
    qsort(off, (size_t)n, sizeof *off, by_size);
    p95 = off[(int)(.95 * n)];
    printf("off by %.0f ns (95 %%), %.0f ns at most\n", p95, off[n - 1]);
    free(off);
    return p95;
}

static void test_offset_and_drift(void **state)
{
    struct job job = {.nhosts = 4,
                      .per_host = 2,
                      .hosts = {{.ahead_s = 1000, .ppm = .7},
                                {.ahead_s = 2000.00005, .ppm = -1},
                                {.ahead_s = 3., .ppm = 1},
                                {.ahead_s = 5999.99995, .ppm = .2}},
                      .scatter_ns = 2000,
                      .seed = 1};
    struct ct_trace *trace;
    int i;

    (void)state;
    begin(&job);
    for (i = 0; i < 200; i++)
        reduce(&job, i, .5 * S * i, 500e3, 100e3);
    trace = end(&job);
    assert_int_equal(trace->jobs[0].nclocks, 4);
    assert_true(ct_clocks_are_tied(&trace->jobs[0]));
    assert_true(off_by(&job, trace, 0, 100) < 1000);
    for (i = 1; i < 4; i++) {
        const struct ct_clock *c = &trace->jobs[0].clocks[i];
        const double ppm = job.hosts[i].ppm - job.hosts[0].ppm;

        assert_int_equal(c->parent, 0);
        assert_int_equal(c->nprocesses, 2);
        assert_int_equal(c->first, 2 * i);
        assert_int_equal(c->ties, 200);
        assert_true(c->residual_ns > 1000 && c->residual_ns < 4000);
        assert_true(c->error_ns < 3000);
        assert_true(fabs(1e6 * c->pieces[0].rate + ppm) < .05);
    }
    files_close(trace, job.folder);
}

/* Rates that change, and a clock that is set, within an hour. */
static void test_pieces(void **state)
{
    struct job job = {
        .nhosts = 3,
        .per_host = 1,
        .hosts = {{.ahead_s = 10, .ppm = 0},
                  {.ahead_s = 20, .ppm = 1, .wander_ppm = 1},
                  {.ahead_s = 30, .ppm = 0, .jump_ns = 3e6, .jump_at_s = 2000}},
        .scatter_ns = 1000,
        .seed = 2};
    struct ct_trace *trace;
    int i;

    (void)state;
    begin(&job);
    for (i = 0; i < 3600; i++)
        reduce(&job, i, S * i, 100e3, 50e3);
    trace = end(&job);
    assert_true(trace->jobs[0].clocks[1].npieces > 6);
    assert_true(off_by(&job, trace, 0, 3600) < 5000);
    files_close(trace, job.folder);
}

/* Ends that are late by chance, some of them much, do not count. */
static void test_outliers(void **state)
{
    struct job job = {
        .nhosts = 2,
        .per_host = 1,
        .hosts = {{.ahead_s = 10, .ppm = 0}, {.ahead_s = 20, .ppm = 1}},
        .scatter_ns = 1000,
        .seed = 3};
    struct ct_trace *trace;
    int i;

    (void)state;
    begin(&job);
    for (i = 0; i < 400; i++)
        if (i % 5) {
            reduce(&job, i, S * i / 10, 100e3, 50e3);
        } else {
            add(&job, 0, 1, i, S * i / 10, S * i / 10 + 50e3);
            add(&job, 1, 1, i, S * i / 10, S * i / 10 + 1e7);
        }
    trace = end(&job);
    assert_true(off_by(&job, trace, 0, 40) < 1000);
    files_close(trace, job.folder);
}

/* A send/recv between hosts is measured as on one; and so by whatever their
 * clocks are off. */
static void test_transfers(void **state)
{
    int64_t waits[2][200], transfers[2][200];
    int shifted, i;

    (void)state;
    for (shifted = 0; shifted < 2; shifted++) {
        struct job job = {.nhosts = 2,
                          .per_host = 1,
                          .hosts = {{.ahead_s = 1000, .ppm = 0},
                                    {.ahead_s = shifted ? 7.5 : 0, .ppm = 1}},
                          .scatter_ns = 1000,
                          .seed = 4};
        struct ct_trace *trace;
        const struct ct_job *found;

        begin(&job);
        for (i = 0; i < 200; i++) {
            reduce(&job, i, S * i / 10, 100e3, 50e3);
            send(&job, 0, 1, i, S * i / 10 + 1e6, 200e3, 1e6 * draw(&job));
        }
        trace = end(&job);
        found = &trace->jobs[0];
        for (i = 0; i < 200; i++) {
            const struct ct_instance *instance =
                files_instance(trace, 0, 2 * i + 1);

            assert_int_equal(instance->ranks, 2);
            assert_in_range(instance->transfer_ns, 196e3, 204e3);
            assert_false(instance->estimated || instance->bound ||
                         instance->overlapped);
            transfers[shifted][i] = instance->transfer_ns;
            waits[shifted][i] = instance->wait_sum_ns;
        }
        assert_int_equal(found->nusages, 2);
        files_close(trace, job.folder);
    }
    assert_memory_equal(transfers[0], transfers[1], sizeof transfers[0]);
    assert_memory_equal(waits[0], waits[1], sizeof waits[0]);
}

/* Ranks come up to five transfers apart, and transfers differ: each is found by
 * the places of its ranks in time. */
static void test_far_apart(void **state)
{
    struct job job = {
        .nhosts = 2,
        .per_host = 2,
        .hosts = {{.ahead_s = 1000, .ppm = 0}, {.ahead_s = 50, .ppm = 1}},
        .scatter_ns = 300,
        .seed = 8};
    double took[300], skew[300];
    struct ct_trace *trace;
    int i;

    (void)state;
    begin(&job);
    for (i = 0; i < 300; i++) {
        took[i] = 80e3 + 40e3 * draw(&job);
        skew[i] = 5 * took[i] * draw(&job);
        reduce(&job, i, S * i / 10, skew[i], took[i]);
    }
    trace = end(&job);
    for (i = 0; i < 300; i++) {
        const struct ct_instance *instance = files_instance(trace, 0, i);
        const double seen = (double)instance->wait_max_ns;

        assert_false(instance->skewed);
        if (seen > took[i])
            assert_true(fabs((double)instance->transfer_ns - took[i]) <
                        .01 * took[i]);
        assert_true(seen <= skew[i] + 2000);
    }
    files_close(trace, job.folder);
}

/* Nothing but messages: enough where they go both ways. */
static void test_messages(void **state)
{
    int both;

    (void)state;
    for (both = 0; both < 2; both++) {
        struct job job = {.nhosts = 3,
                          .per_host = 1,
                          .hosts = {{.ahead_s = 1000, .ppm = 0},
                                    {.ahead_s = 2000, .ppm = 1},
                                    {.ahead_s = 3000, .ppm = -1}},
                          .seed = 5};
        struct ct_trace *trace;
        int i;

        begin(&job);
        for (i = 0; i < 200; i++) {
            send(&job, 0, 1, i, S * i / 10, 200e3, 1e6);
            send(&job, 1, 2, i, S * i / 10 + 1e7, 200e3, 1e6);
            if (both) {
                send(&job, 2, 1, i, S * i / 10 + 2e7, 200e3, 1e6);
                send(&job, 1, 0, i, S * i / 10 + 3e7, 200e3, 1e6);
            }
        }
        trace = end(&job);
        if (both) {
            const struct ct_clock *clocks = trace->jobs[0].clocks;

            assert_true(ct_clocks_are_tied(&trace->jobs[0]));
            assert_int_equal(clocks[1].tie, CT_TIE_P2P);
            assert_int_equal(clocks[2].parent, 1);
            assert_true(off_by(&job, trace, 0, 20) < 5000);
            /* The way there need not be as long as the way back. */
            assert_true(clocks[1].error_ns > 5e3);
            assert_true(clocks[2].error_ns > clocks[1].error_ns);
            /* Of two only what is between them counts. */
            assert_true(ct_common_error(
                            trace, &trace->processes[2], &trace->processes[1],
                            (int64_t)(10 * S)) == clocks[2].tie_error_ns);
            assert_int_equal(clocks[1].checked, 800);
            assert_int_equal(clocks[1].contradicted, 0);
        } else {
            assert_false(ct_clocks_are_tied(&trace->jobs[0]));
            assert_true(isinf(ct_common_error(trace, &trace->processes[0],
                                              &trace->processes[1], 0)));
            /* All receives took as long; that some waited is not known. */
            assert_int_equal(files_instance(trace, 0, 0)->transfer_ns, 1200000);
        }
        files_close(trace, job.folder);
    }
}

/* Receivers of one way that come late most of the time, by always as much, make
 * it look longer; the messages that were waited for tell. */
static void test_late_receivers(void **state)
{
    struct job job = {.nhosts = 2,
                      .per_host = 1,
                      .hosts = {{.ahead_s = 1000}, {.ahead_s = 2000}},
                      .seed = 5};
    struct ct_trace *trace;
    int i;

    (void)state;
    begin(&job);
    for (i = 0; i < 400; i++) {
        const double there_ns = S * i / 10, back_ns = there_ns + 3e7;
        const double late_ns = i / 16 % 3 ? 300e3 : 0;

        add(&job, 0, 2, i, there_ns, there_ns + 100e3);
        add(&job, 1, 3, i, there_ns - 1e6, there_ns + 200e3);
        add(&job, 1, 4, i, back_ns, back_ns + 100e3);
        add(&job, 0, 5, i, back_ns + late_ns, back_ns + late_ns + 200e3);
    }
    trace = end(&job);
    assert_true(ct_clocks_are_tied(&trace->jobs[0]));
    assert_true(off_by(&job, trace, 0, 40) < 1000);
    assert_true(trace->jobs[0].clocks[1].error_ns < 10e3);
    files_close(trace, job.folder);
}

/* Transfers of 200 us that differ by a tenth. */
static double transfer_ns(struct job *job)
{
    double sum = -6;
    int i;

    for (i = 0; i < 12; i++)
        sum += draw(job);
    return 200e3 * exp(.1 * sum);
}

/* Of one way three quarters are received late, by now this, now that, of the
 * other none: the quickest of many is quicker than that of a few. */
static void test_unequal_numbers(void **state)
{
    struct job job = {.nhosts = 2,
                      .per_host = 1,
                      .hosts = {{.ahead_s = 1000}, {.ahead_s = 2000}},
                      .seed = 10};
    struct ct_trace *trace;
    int i;

    (void)state;
    begin(&job);
    for (i = 0; i < 800; i++) {
        const double late_ns = i % 4 ? 100e3 + 400e3 * draw(&job) : 0;
        const double there_ns = S * i / 10, ns = transfer_ns(&job);

        add(&job, 0, 2, i, there_ns, there_ns + ns);
        if (late_ns > 0)
            add(&job, 1, 3, i, there_ns + late_ns, there_ns + late_ns + ns);
        else
            add(&job, 1, 3, i, there_ns - 1e6, there_ns + ns);
        send(&job, 1, 0, i, there_ns + 3e7, transfer_ns(&job), 1e6);
    }
    trace = end(&job);
    assert_true(ct_clocks_are_tied(&trace->jobs[0]));
    assert_true(off_by(&job, trace, 0, 80) < 2000);
    files_close(trace, job.folder);
}

/* What messages tell in five seconds is six samples: these might lie on a line
 * by chance, but not by far so well. */
static void test_few_messages(void **state)
{
    struct job job = {
        .nhosts = 2,
        .per_host = 1,
        .hosts = {{.ahead_s = 1000}, {.ahead_s = 6000, .ppm = 200}},
        .seed = 12};
    struct ct_trace *trace;
    int i;

    (void)state;
    begin(&job);
    for (i = 0; i < 50; i++) {
        send(&job, 0, 1, i, S * i / 10, transfer_ns(&job), 5e6);
        send(&job, 1, 0, i, S * i / 10 + 3e7, transfer_ns(&job), 5e6);
    }
    trace = end(&job);
    assert_true(ct_clocks_are_tied(&trace->jobs[0]));
    assert_true(off_by(&job, trace, 0, 5) < 50e3);
    files_close(trace, job.folder);
}

/* A few messages of each host to its neighbour, between two stages each of
 * which all-reduces tie: all of them together tell. */
static void test_stages(void **state)
{
    enum { REDUCE = 6, ROUNDS = 36 };
    struct job job = {.nhosts = 8, .per_host = 1, .seed = 11};
    const struct ct_clock *clocks;
    struct ct_trace *trace;
    int i, h;

    (void)state;
    for (h = 0; h < job.nhosts; h++)
        job.hosts[h] = (struct host){.ahead_s = 1000 * (1 + h % 5 + h / 7.)};
    begin(&job);
    for (h = 0; h < job.nhosts; h++) {
        files_sql(job.dbs[h],
                  "INSERT INTO comm (id, uid, origin, nranks, rank, device)"
                  " VALUES (2, %d, 'init', %d, %d, %d)",
                  100 + h % 2, job.nhosts / 2, h / 2, h % 4);
        files_class(job.dbs[h], REDUCE, 2, CT_OP_ALL_REDUCE, 1000, -1);
    }
    for (i = 0; i < ROUNDS; i++)
        for (h = 0; h < job.nhosts; h++) {
            const double at = S * i / 10;

            add(&job, h, REDUCE, i, at + 1e6 * draw(&job), at + 2e6);
            if (h % 2 == 0)
                send(&job, h, h + 1, i, at + 1e7, transfer_ns(&job), 1e6);
            else
                send(&job, h, h - 1, i, at + 2e7, transfer_ns(&job), 1e6);
        }
    trace = end(&job);
    clocks = trace->jobs[0].clocks;
    assert_true(ct_clocks_are_tied(&trace->jobs[0]));
    assert_int_equal(clocks[1].tie, CT_TIE_P2P);
    assert_int_equal(clocks[1].parent, 0);
    for (h = 2; h < job.nhosts; h++) {
        assert_int_equal(clocks[h].tie, CT_TIE_COLLECTIVES);
        assert_int_equal(clocks[h].parent, h % 2);
    }
    assert_true(off_by(&job, trace, 0, 3.6) < 3000);
    assert_true(clocks[1].error_ns > 3e3 && clocks[1].error_ns < 15e3);
    files_close(trace, job.folder);
}

/* A way there that is shorter than the way back, which messages alone do not
 * show: what they tell is more than the ends of a few collectives allow. */
static void test_unequal_ways(void **state)
{
    struct job job = {.nhosts = 2,
                      .per_host = 1,
                      .hosts = {{.ahead_s = 1000}, {.ahead_s = 2000}},
                      .seed = 9};
    struct ct_trace *trace;
    int i;

    (void)state;
    begin(&job);
    for (i = 0; i < 200; i++) {
        if (i % 30 == 0)
            reduce(&job, i / 30, S * i / 10 + 2e7, 100e3, 30e3);
        send(&job, 0, 1, i, S * i / 10, 100e3, 1e6);
        send(&job, 1, 0, i, S * i / 10 + 1e7, 300e3, 1e6);
    }
    trace = end(&job);
    assert_true(ct_clocks_are_tied(&trace->jobs[0]));
    assert_true(off_by(&job, trace, 0, 20) < 15e3);
    assert_true(trace->jobs[0].clocks[1].error_ns > 90e3);
    files_close(trace, job.folder);
}

/* Times of one boot are of one clock, but for what shows that they are not. */
static void test_one_boot(void **state)
{
    enum { ALIKE, APART, APART_UNSEEN, CASES };
    int which, i;

    (void)state;
    for (which = 0; which < CASES; which++) {
        struct job job = {.nhosts = 3,
                          .per_host = 1,
                          .one_boot = true,
                          .hosts = {{.ahead_s = 10},
                                    {.ahead_s = which == ALIKE ? 10 : 15},
                                    {.ahead_s = 10}},
                          .seed = 6};
        struct ct_trace *trace;

        begin(&job);
        for (i = 0; i < 20; i++)
            reduce(&job, i, S * i / 10, 1e6, 50e3);
        if (which == APART_UNSEEN)
            for (i = 0; i < 3; i++)
                files_sql(job.dbs[i], "UPDATE process SET t0_real_ns = NULL");
        if (which == APART) /* of that process CLOCK_MONOTONIC only */
            files_sql(job.dbs[1], "UPDATE process SET t0_real_ns ="
                                  " 1700000010000000000");
        trace = end(&job);
        assert_int_equal(trace->jobs[0].nclocks, which == ALIKE ? 1 : 2);
        assert_int_equal(trace->processes[2].clock, 0);
        assert_int_equal(trace->processes[1].clock, which != ALIKE);
        assert_true(ct_clocks_are_tied(&trace->jobs[0]));
        if (which != ALIKE)
            assert_true(off_by(&job, trace, 0, 2) < 1000);
        files_close(trace, job.folder);
    }
}

/* Messages that would be received before they were sent: no common time. */
static void test_contradiction(void **state)
{
    struct job job = {.nhosts = 3,
                      .per_host = 1,
                      .hosts = {{.ahead_s = 1000, .ppm = 0},
                                {.ahead_s = 2000, .ppm = 0},
                                {.ahead_s = 3000, .ppm = 0}},
                      .seed = 7};
    struct ct_trace *trace;
    int i;

    (void)state;
    begin(&job);
    for (i = 0; i < 100; i++) {
        /* Host 2 ends all-reduces 20 ms after the others. */
        add(&job, 0, 1, i, S * i, S * i + 2e6);
        add(&job, 1, 1, i, S * i, S * i + 2e6);
        add(&job, 2, 1, i, S * i, S * i + 22e6);
        send(&job, 0, 1, i, S * i + 3e7, 100e3, 1e6);
        send(&job, 1, 2, i, S * i + 4e7, 100e3, 1e6);
    }
    trace = end(&job);
    assert_false(trace->jobs[0].clocks[1].distrusted);
    assert_int_equal(trace->jobs[0].clocks[1].group, 0);
    assert_true(trace->jobs[0].clocks[2].distrusted);
    assert_int_equal(trace->jobs[0].clocks[2].group, 2);
    assert_int_equal(trace->jobs[0].clocks[2].contradicted, 100);
    files_close(trace, job.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offset_and_drift),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_outliers),
        cmocka_unit_test(test_transfers),
        cmocka_unit_test(test_far_apart),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_late_receivers),
        cmocka_unit_test(test_unequal_numbers),
        cmocka_unit_test(test_few_messages),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_unequal_ways),
        cmocka_unit_test(test_one_boot),
        cmocka_unit_test(test_contradiction),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
