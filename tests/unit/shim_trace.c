/* From calls to rows: every column of what a small program records. */
#include "shim_test.h"

#include "policy.h"
#include "record.h"

#include <errno.h>
#include <pthread.h>

static float data[64], other[64];
static void *const stream = (void *)0x1234;

static void some_ops(void)
{
    ncclComm_t comm, child, none;
    ncclCommInitRank(&comm, 4, some_id(1), 2);
    ncclAllReduce(data, data, 8, 7, 0, comm, stream);
    ncclAllGather(data, other, 8, 7, comm, stream);
    ncclBcast(data, 8, 9, 3, comm, stream);
    ncclReduce(data, other, 0, 7, 2, 1, comm, stream);
    ncclSend(data, 5, 0, 1, comm, stream);
    ncclSignal(1, 0, 0, 0, comm, stream);
    ncclSend(data, 5, 0, 1, comm, stream);
    ncclSend(data, 5, 0, 3, comm, stream);
    ncclRecv(data, 5, 0, 1, comm, stream);
    ncclAllReduce(data, other, 8, 7, 0, comm, stream);
    ncclCommSplit(comm, -1, 0, &none, NULL);
    ncclCommSplit(comm, 5, 0, &child, NULL);
    ncclAllReduce(data, data, 1, 100, 0, child, stream);
    ncclCommDestroy(child);
    ncclCommDestroy(comm);
}

static void test_ops(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, some_ops);
    assert_answer(
        &s,
        "SELECT op, comm, count, bytes, type, redop, peer, ordinal, stream,"
        " flags, state FROM v_op",
        "all_reduce|1|8|32|float|sum|-|0|4660|in_place|done\n"
        "all_gather|1|8|128|float|-|-|1|4660|-|done\n"
        "bcast|1|8|16|bfloat16|-|3|2|4660|in_place|done\n"
        "reduce|1|0|0|float|max|1|3|4660|zero|done\n"
        "send|1|5|5|int8|-|1|0|4660|-|done\n"
        "signal|1|0|0|-|-|1|0|4660|-|done\n"
        "send|1|5|5|int8|-|1|1|4660|-|done\n"
        "send|1|5|5|int8|-|3|0|4660|-|done\n"
        "recv|1|5|5|int8|-|1|0|4660|-|done\n"
        "all_reduce|1|8|32|float|sum|-|4|4660|-|done\n"
        "all_reduce|2|1|-|100|sum|-|0|4660|in_place|failed");
    assert_answer(&s, "SELECT flags >> 16 FROM op ORDER BY id DESC LIMIT 1",
                  "4");
    assert_answer(&s,
                  "SELECT count(*) FROM op WHERE host_ns < 0 OR enter_ns < 0 "
                  "OR host_ns IS NULL OR gpu_ns NOTNULL",
                  "0");
    /* Order of id is order of calls, and calls do not overlap here. */
    assert_answer(&s,
                  "SELECT count(*) FROM op a JOIN op b ON b.id > a.id "
                  "WHERE a.enter_ns + a.host_ns > b.enter_ns",
                  "0");
    scenario_end(&s);
}

static void test_comms(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, some_ops);
    assert_answer(&s,
                  "SELECT id, origin, parent, color, child, nranks, rank,"
                  " device, library, ready_ns >= enter_ns, end_ns > ready_ns"
                  " FROM comm",
                  "1|init|-|-|-|4|2|0|1|1|1\n2|split|1|5|2|4|2|0|1|1|1");
    assert_answer(&s, "SELECT comm, what, result FROM comm_event",
                  "2|destroy|0\n1|destroy|0");
    assert_answer(&s, "SELECT count(DISTINCT uid) FROM comm", "2");
    assert_answer(&s, "SELECT id, version FROM library", "1|23203");
    assert_answer(&s, "SELECT count(*) FROM op_class", "11");
    scenario_end(&s);
}

static void test_facts(void **state)
{
    struct scenario s;
    (void)state;
    setenv("RANK", "3000000000", 1);
    setenv("LOCAL_RANK", "-1", 1);
    setenv("TORCHELASTIC_RESTART_COUNT", "99999999999999999999", 1);
    setenv("OMPI_COMM_WORLD_RANK", "6", 1);
    setenv("WORLD_SIZE", "8", 1);
    setenv("TORCHELASTIC_RUN_ID", "abc", 1);
    setenv("SLURM_JOB_ID", "77", 1);
    setenv("SLURM_STEP_ID", "3", 1);
    setenv("NCCL_HOSTID", "rack1", 1);
    scenario_run(&s, some_ops);
    assert_answer(
        &s,
        "SELECT rank, rank_source, world_size, local_rank, restart,"
        " run_id, job_id, host_id, end_ns > 0, length(uuid), t0_ns > 0"
        " FROM process",
        "6|OMPI_COMM_WORLD_RANK|8|-|-|abc|77.3|rack1|1|36|1");
    assert_answer(&s,
                  "SELECT value FROM meta WHERE key IN ('closed', 'schema')"
                  " ORDER BY key",
                  "1\n3");
    assert_answer(&s,
                  "SELECT value = (SELECT max(id) + 2 FROM op) FROM meta"
                  " WHERE key = 'ring_tail'",
                  "1");
    assert_answer(&s, "SELECT timing, sample_shift FROM policy", "auto|0");
    assert_answer(&s, "PRAGMA user_version", "3");
    assert_answer(&s, "PRAGMA application_id", "1129599555");
    assert_answer(&s, "SELECT count(*) FROM loss", "0");
    assert_answer(&s, "SELECT source FROM device", "no CUDA driver");
    assert_answer(&s, "SELECT count(*) >= 2 FROM clock", "1");
    assert_answer(&s,
                  "SELECT sql LIKE '%/* the call was entered */%' FROM"
                  " sqlite_schema WHERE name = 'op'",
                  "1");
    scenario_end(&s);
    unsetenv("RANK");
    unsetenv("LOCAL_RANK");
    unsetenv("TORCHELASTIC_RESTART_COUNT");
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("WORLD_SIZE");
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_STEP_ID");
    unsetenv("NCCL_HOSTID");
}

static void group_ops(void)
{
    ncclComm_t comm, alone, made[2];
    ncclCommInitRank(&comm, 2, some_id(1), 0);
    ncclCommInitRank(&alone, 1, some_id(2), 0);
    ncclGroupStart();
    ncclGroupEnd();
    ncclGroupStart();
    ncclGroupStart();
    ncclSend(data, 4, 7, 1, comm, stream);
    ncclGroupEnd();
    ncclRecv(data, 4, 7, 1, comm, stream);
    ncclAllReduce(data, data, 0, 7, 0, comm, NULL);
    ncclAllReduce(data, data, 4, 7, 0, alone, stream);
    ncclGroupEnd();
    ncclGroupStart();
    ncclSend(data, 4, 7, 1, comm, NULL);
    ncclGroupEnd();
    ncclGroupStart();
    ncclCommInitRank(&made[0], 2, some_id(3), 1);
    ncclCommSplit(comm, 0, 0, &made[1], NULL);
    ncclGroupEnd();
    ncclAllReduce(data, data, 4, 7, 0, made[0], NULL);
    ncclAllReduce(data, data, 4, 7, 0, made[1], NULL);
}

static void test_groups(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, group_ops);
    assert_answer(&s, "SELECT op, comm, grp, flags FROM v_op",
                  "send|1|1|grouped\n"
                  "recv|1|1|grouped\n"
                  "all_reduce|1|1|grouped in_place zero\n"
                  "all_reduce|2|1|grouped in_place\n"
                  "send|1|2|grouped\n"
                  "all_reduce|3|-|in_place\n"
                  "all_reduce|4|-|in_place");
    assert_answer(&s, "SELECT grp, comm, stream, ops FROM launch",
                  "1|1|4660|2\n2|1|0|1");
    assert_answer(&s, "SELECT id, origin, rank, parent, child FROM comm",
                  "1|init|0|-|-\n2|init|0|-|-\n3|init|1|-|-\n"
                  "4|split|0|1|1");
    scenario_end(&s);
}

static void *many_ops(void *arg)
{
    ncclComm_t comm = arg;
    for (int i = 0; i < 20000; i++)
        ncclAllReduce(data, data, 4, 7, 0, comm, NULL);
    return NULL;
}

static void many_threads(void)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        ncclComm_t comm;
        ncclCommInitRank(&comm, 2, some_id(i), 0);
        pthread_create(&threads[i], NULL, many_ops, comm);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* What the ring had no room for is counted, and shifts no ordinal. */
static void test_nothing_is_lost_silently(void **state)
{
    struct scenario s;
    (void)state;
    setenv("COMMTRACE_RING_SLOTS", "256", 1);
    scenario_run(&s, many_threads);
    unsetenv("COMMTRACE_RING_SLOTS");
    assert_answer(&s,
                  "SELECT (SELECT count(*) FROM op) + (SELECT coalesce(sum(n),"
                  " 0) FROM loss WHERE what = 'op')",
                  "80000");
    assert_answer(&s,
                  "SELECT count(*) FROM (SELECT ordinal FROM op JOIN op_class"
                  " c ON c.id = class GROUP BY comm, ordinal"
                  " HAVING count(*) > 1)",
                  "0");
    assert_answer(&s,
                  "SELECT count(*) FROM (SELECT max(ordinal) m FROM op JOIN"
                  " op_class c ON c.id = class GROUP BY comm) WHERE m > 19999",
                  "0");
    scenario_end(&s);
}

static void many_comms(void)
{
    for (int i = 0; i < 4096; i++) {
        ncclComm_t comm;
        ncclCommInitRank(&comm, 2, some_id(i), 0);
        ncclAllReduce(data, data, 4, 7, 0, comm, NULL);
        ncclCommDestroy(comm);
    }
}

static void test_many_comms(void **state)
{
    struct scenario s;
    (void)state;
    /* Room for all, should the writer get no processor. */
    setenv("COMMTRACE_RING_SLOTS", "32768", 1);
    scenario_run(&s, many_comms);
    unsetenv("COMMTRACE_RING_SLOTS");
    assert_answer(&s,
                  "SELECT count(*), count(DISTINCT uid), count(end_ns) FROM"
                  " comm",
                  "4096|4096|4096");
    assert_answer(&s,
                  "SELECT count(*) FROM op WHERE ordinal = 0"
                  " AND (SELECT count(*) FROM loss) = 0",
                  "4096");
    scenario_end(&s);
}

/* With room for 1 MB of trace only, and for all calls in the ring: a writer
 * that gets no processor must not lose them for another reason. */
static void scenario_run_small(struct scenario *s, void (*body)(void))
{
    setenv("COMMTRACE_MAX_MB", "1", 1);
    setenv("COMMTRACE_QUIET", "1", 1);
    setenv("COMMTRACE_RING_SLOTS", "131072", 1);
    scenario_run(s, body);
    unsetenv("COMMTRACE_MAX_MB");
    unsetenv("COMMTRACE_QUIET");
    unsetenv("COMMTRACE_RING_SLOTS");
}

/* The writer turns GPU times off when the trace is full. */
static void await_limit(void)
{
    for (int i = 0; i < 6000; i++) {
        if (atomic_load(&policy_shift) == POLICY_OFF)
            return;
        usleep(5000);
    }
}

static void big_trace(void)
{
    ncclComm_t comm;
    ncclCommInitRank(&comm, 2, some_id(1), 0);
    for (int i = 0; i < 100000; i++)
        ncclAllReduce(data, data, (size_t)i, 7, 0, comm, NULL);
    await_limit();
}

static void test_size_limit(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run_small(&s, big_trace);
    assert_answer(&s,
                  "SELECT (SELECT count(*) FROM op) + (SELECT sum(n) FROM loss"
                  " WHERE what = 'op')",
                  "100000");
    assert_answer(&s, "SELECT n > 1000 FROM loss WHERE cause = 'size_limit'",
                  "1");
    assert_answer(&s, "SELECT timing FROM policy ORDER BY at_ns DESC LIMIT 1",
                  "off");
    assert_answer(&s, "SELECT value FROM meta WHERE key = 'closed'", "1");
    scenario_end(&s);
}

static void late_comms(void)
{
    big_trace();
    for (int i = 0; i < 1000; i++) {
        ncclComm_t comm;
        ncclCommInitRank(&comm, 2, some_id(2), 0);
        ncclCommDestroy(comm);
    }
}

/* They are counted then, and not kept for ever. */
static void test_comms_beyond_the_limit(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run_small(&s, late_comms);
    assert_answer(&s,
                  "SELECT (SELECT count(*) FROM comm) + n FROM loss"
                  " WHERE cause = 'size_limit' AND what = 'comm'",
                  "1001");
    scenario_end(&s);
}

static void errors_pass(void)
{
    ncclComm_t comm;
    void *handle;
    ncclCommInitRank(&comm, 2, some_id(1), 0);
    errno = 77;
    if (ncclAllReduce(data, data, 4, 200, 0, comm, NULL) !=
            ncclInvalidArgument ||
        ncclAllReduce(data, data, 4, 7, 0, NULL, NULL) != ncclInvalidArgument ||
        ncclCommRegister(comm, data, 4, &handle) != ncclSuccess ||
        handle != data || errno != 77)
        _exit(1);
}

static void test_errors_pass(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, errors_pass);
    assert_answer(&s, "SELECT state, result FROM v_op", "failed|4");
    assert_answer(&s, "SELECT what FROM comm_event", "register");
    scenario_end(&s);
}

ncclResult_t shim_fake_thread(ncclComm_t comm);

static void inner_calls(void)
{
    ncclComm_t comm;
    ncclCommInitRank(&comm, 4, some_id(1), 2);
    ncclAllReduce(data, data, 8, 7, 0, comm, stream);
    if (shim_fake_thread(comm) != ncclSuccess)
        _exit(1);
    ncclAllReduce(data, data, 16, 7, 0, comm, stream);
}

/* What the library calls by its own public names is no call of the program. */
static void test_inner_calls(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, inner_calls);
    assert_answer(&s, "SELECT op, count, ordinal FROM v_op",
                  "all_reduce|8|0\nall_reduce|16|1");
    scenario_end(&s);
}

static void end_inside_a_hook(void)
{
    ncclComm_t comm;
    uint64_t position;
    ncclCommInitRank(&comm, 4, some_id(1), 2);
    ncclAllReduce(data, data, 8, 7, 0, comm, stream);
    ring_reserve(&recorder.ring, &position); /* never published */
    ncclAllReduce(data, data, 8, 7, 0, comm, stream);
}

/* What follows the hole stays in the ring, and the trace does not say that it
 * has everything. */
static void test_end_inside_a_hook(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, end_inside_a_hook);
    assert_answer(&s, "SELECT count(*) FROM op", "1");
    assert_answer(&s,
                  "SELECT end_ns IS NULL, (SELECT value FROM meta WHERE key ="
                  " 'closed') FROM process",
                  "1|0");
    const char *ring =
        scenario_ask(&s, "SELECT value FROM meta WHERE key = 'ring_path'");
    assert_int_equal(access(ring, R_OK), 0);
    unlink(ring);
    scenario_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops),
        cmocka_unit_test(test_comms),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_nothing_is_lost_silently),
        cmocka_unit_test(test_many_comms),
        cmocka_unit_test(test_size_limit),
        cmocka_unit_test(test_comms_beyond_the_limit),
        cmocka_unit_test(test_end_inside_a_hook),
        cmocka_unit_test(test_errors_pass),
        cmocka_unit_test(test_inner_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
