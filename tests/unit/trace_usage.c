/* What usages say of generated jobs, whose true costs are known. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace_files.h"

#define BYTES (4L << 20)

static struct ct_trace *generate(const char *folder, const char *options)
{
    char command[1024];

    snprintf(command, sizeof(command), "%s %s --hidden %ld --out %s", TRACEGEN,
             options, BYTES, folder);
    assert_int_equal(system(command), 0);
    return files_open(folder);
}

static void near(double value, double truth, double tolerance)
{
    if (!(fabs(value - truth) <= tolerance * truth))
        fail_msg("%g instead of %g", value, truth);
}

/* Ranks compute for very different times, so that waits are many times the
 * transfers; what remains is alpha + wire * S / bandwidth all the same. */
static void test_transfers_under_waits(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace = generate(
        folder, "--tp 4 --pp 2 --hosts 2 --layers 8 --steps 6 --jitter 0.1"
                " --alpha-us 20,80 --GBps 100,10 --order pp,tp,dp");
    const struct ct_job *job = &trace->jobs[0];
    int i, all_reduces = 0, sends = 0;

    (void)state;
    for (i = 0; i < job->nusages; i++) {
        const struct ct_usage *u = &job->usages[i];

        if (u->bytes != BYTES)
            continue;
        if (u->base == CT_OP_ALL_REDUCE) { /* over both hosts */
            assert_int_equal(u->link, CT_LINK_NETWORK);
            near((double)u->median_ns, 80e3 + 1.5 * BYTES / 10.0, 0.02);
            assert_int_equal(u->nsamples, u->calls - 5);
            assert_true(u->wait_ns > u->transfer_ns / 20);
            all_reduces++;
        }
        if (u->base == CT_OP_SEND && u->nsamples) { /* inside one */
            assert_int_equal(u->link, CT_LINK_NVSWITCH);
            near((double)u->median_ns, 20e3 + BYTES / 100.0, 0.15);
            sends++;
        }
    }
    assert_int_equal(all_reduces, 2);
    assert_int_equal(sends, 8);
    files_close(trace, folder);
}

static void test_warm_up(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int n, i;

    (void)state;
    for (n = 0; n < 2; n++) {
        sqlite3 *db = files_begin(folder, n, 1, 0);

        files_sql(db, "UPDATE comm SET uid = %d, rank = 0", n);
        files_class(db, 1, 1, CT_OP_ALL_REDUCE, 1000, -1);
        for (i = 0; i < 14 + n; i++)
            files_op(db, i + 1, 1, i, 1000 * i, i < 5 ? 900 : 100 + i);
        files_end(db);
    }
    trace = files_open(folder);
    assert_int_equal(trace->njobs, 2);
    assert_int_equal(trace->jobs[0].usages[0].nsamples, 14);
    assert_int_equal(trace->jobs[1].usages[0].nsamples, 10);
    assert_int_equal(trace->jobs[1].usages[0].samples[0], 105);
    assert_int_equal(trace->jobs[1].usages[0].median_ns, 110);
    files_close(trace, folder);
}

static void test_missing_file(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace = generate(folder, "--tp 2 --dp 2 --steps 6");
    char path[256];
    int i;

    (void)state;
    snprintf(path, sizeof(path), "%s", trace->processes[3].path);
    ct_trace_free(trace);
    assert_int_equal(unlink(path), 0);
    trace = files_open(folder);
    assert_int_equal(trace->jobs[0].nprocesses, 3);
    assert_int_equal(trace->jobs[0].world_size, 4);
    assert_int_equal(trace->jobs[0].missing, 3); /* of world, TP and DP */
    assert_int_equal(trace->jobs[0].nsteps, 6);
    for (i = 0; i < trace->jobs[0].ninstances; i++) {
        const struct ct_instance *instance = &trace->jobs[0].instances[i];
        const struct ct_comm *comm = &trace->jobs[0].comms[instance->comm];

        assert_int_equal(instance->bound, comm->nknown < comm->nranks);
        assert_int_equal(instance->ranks, comm->nknown);
    }
    files_close(trace, folder);
}

static void same_usages(const struct ct_job *a, const struct ct_job *b)
{
    int i;

    assert_int_equal(a->nusages, b->nusages);
    for (i = 0; i < a->nusages; i++) {
        const struct ct_usage *ua = &a->usages[i], *ub = &b->usages[i];

        assert_int_equal(ua->comm, ub->comm);
        assert_int_equal(ua->bytes, ub->bytes);
        assert_int_equal(ua->calls, ub->calls);
        assert_int_equal(ua->transfer_ns, ub->transfer_ns);
        assert_int_equal(ua->median_ns, ub->median_ns);
        assert_int_equal(ua->nsamples, ub->nsamples);
        assert_memory_equal(ua->samples, ub->samples,
                            (size_t)ua->nsamples * sizeof(*ua->samples));
    }
}

static void same_instances(const struct ct_job *a, const struct ct_job *b)
{
    int i;

    assert_int_equal(a->ninstances, b->ninstances);
    for (i = 0; i < a->ninstances; i++) {
        const struct ct_instance *ia = &a->instances[i];
        const struct ct_instance *ib = &b->instances[i];

        assert_int_equal(ia->comm, ib->comm);
        assert_int_equal(ia->ordinal, ib->ordinal);
        assert_int_equal(ia->usage, ib->usage);
        assert_int_equal(ia->transfer_ns, ib->transfer_ns);
        assert_int_equal(ia->wait_sum_ns, ib->wait_sum_ns);
    }
}

/* Whatever thread loads which file first. */
static void test_deterministic(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *a =
        generate(folder, "--tp 2 --pp 2 --dp 4 --hosts 2 --steps 4");
    int round;

    (void)state;
    for (round = 0; round < 5; round++) {
        struct ct_trace *b = files_open(folder);

        same_instances(&a->jobs[0], &b->jobs[0]);
        same_usages(&a->jobs[0], &b->jobs[0]);
        ct_trace_free(b);
    }
    ct_trace_free(a);
    files_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transfers_under_waits),
        cmocka_unit_test(test_warm_up),
        cmocka_unit_test(test_missing_file),
        cmocka_unit_test(test_deterministic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
