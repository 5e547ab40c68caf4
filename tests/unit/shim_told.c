/*
 * Calls that no hook sees, as NCCL's profiler tells of them: a communicator and
 * its events are played by hand, from a program that has no NCCL but this test.
 */
#include "commtrace/profiler_abi.h"
#include "shim_test.h"
#include "thread.h"

#include <pthread.h>

extern const struct ct_profiler_v4 ncclProfiler_v4;
extern const struct ct_profiler_v5 ncclProfiler_v6;

/* In the child, which is not cmocka's. */
#define check(right_)                                       \
    do {                                                    \
        if (!(right_)) {                                    \
            fprintf(stderr, "%d: %s\n", __LINE__, #right_); \
            _exit(3);                                       \
        }                                                   \
    } while (0)

enum { HASH = 0x1234, RANKS = 4, RANK = 1 };
#define STREAM ((void *)(uintptr_t)0x5000)

static void on(void)
{
    setenv("COMMTRACE_PROFILER", "coll", 1);
    setenv("COMMTRACE_FLUSH_MS", "60000", 1);
}

static void *context_of(uint64_t hash, int rank)
{
    void *context = NULL;
    int mask = 0;
    check(ncclProfiler_v6.init(&context, hash, &mask, "a name", 1, RANKS, rank,
                               NULL) == 0);
    check(context && mask == (CT_PROFILER_COLL | CT_PROFILER_P2P));
    return context;
}

static void *start(void *context, struct ct_profiler_event_v5 *event)
{
    void *handle = &handle;
    check(ncclProfiler_v6.start(context, &handle, event) == 0);
    return handle;
}

static void stop(void *handle)
{
    check(ncclProfiler_v6.stop(handle) == 0);
}

static void *group(void *context, int depth)
{
    struct ct_profiler_event_v5 event = {.type = CT_PROFILER_GROUP_API};
    event.u.group_api.depth = depth;
    void *handle = start(context, &event);
    ncclProfiler_v6.record(handle, CT_PROFILER_GROUP_STARTED, NULL);
    return handle;
}

static void group_ends(void *handle)
{
    ncclProfiler_v6.record(handle, CT_PROFILER_GROUP_END_BEGINS, NULL);
}

static void *call_coll(void *context, const char *func, size_t count)
{
    struct ct_profiler_event_v5 event = {.type = CT_PROFILER_COLL_API};
    event.u.coll_api.func = func;
    event.u.coll_api.count = count;
    event.u.coll_api.datatype = "ncclBfloat16";
    event.u.coll_api.root = 2;
    event.u.coll_api.stream = STREAM;
    return start(context, &event);
}

static void *call_p2p(void *context, const char *func, bool captured)
{
    struct ct_profiler_event_v5 event = {.type = CT_PROFILER_P2P_API};
    event.u.p2p_api.captured = captured;
    event.u.p2p_api.func = func;
    event.u.p2p_api.count = 5;
    event.u.p2p_api.datatype = "ncclInt64";
    event.u.p2p_api.stream = STREAM;
    void *handle = start(context, &event);
    stop(handle);
    return handle;
}

static void launch_p2p(void *context, const char *func, int peer, void *call)
{
    struct ct_profiler_event_v5 event = {.type = CT_PROFILER_P2P,
                                         .parent = call};
    event.u.p2p.is = (struct ct_profiler_p2p){
        .func = func, .datatype = "ncclInt64", .count = 5, .peer = peer};
    stop(start(context, &event));
}

static const char ops[] =
    "SELECT k.function, c.count, t.name, c.peer, c.redop, c.stream, o.ordinal,"
    " o.grp, o.host_ns NOTNULL, o.flags FROM op o"
    " JOIN op_class c ON c.id = o.class JOIN op_kind k ON k.id = c.kind"
    " LEFT JOIN data_type t ON t.id = c.type ORDER BY o.id";

/* NCCL makes an all-to-all of sends and receives in a group of its own; a lone
 * send is in such a one, too. */
static void transfers(void)
{
    static const char *const funcs[] = {"Send", "Recv"};
    on();
    void *context = context_of(HASH, RANK), *calls[2 * RANKS];
    void *own = group(context, 1);
    for (int i = 0; i < 2 * RANKS; i++)
        calls[i] = call_p2p(context, funcs[i % 2], false);
    group_ends(own);
    for (int i = 0; i < 2 * RANKS; i++)
        launch_p2p(context, funcs[i % 2], i / 2, calls[i]);
    stop(own);
    own = group(context, 1);
    calls[0] = call_p2p(context, "Send", false);
    group_ends(own);
    launch_p2p(context, "Send", 3, calls[0]);
    stop(own);
    check(ncclProfiler_v6.finalize(context) == 0);
}

static void test_transfers(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, transfers);
    assert_answer(&s,
                  "SELECT count(*), count(DISTINCT grp), sum(flags = 2052),"
                  " min(host_ns) >= 0 FROM op WHERE grp NOTNULL",
                  "8|1|8|1");
    assert_answer(&s,
                  "SELECT c.peer, o.ordinal, o.flags, o.host_ns > 0 FROM op o"
                  " JOIN op_class c ON c.id = o.class WHERE grp ISNULL",
                  "3|1|2048|1");
    assert_answer(&s, "SELECT ops, stream, flags FROM launch", "8|20480|0");
    assert_answer(&s,
                  "SELECT name, nranks, rank, origin, end_ns NOTNULL FROM comm",
                  "a name|4|1|told|1");
    assert_answer(&s, "SELECT count(*), count(n) FROM choice", "9|9");
    assert_answer(&s, "SELECT count(*) FROM loss", "0");
    scenario_end(&s);
}

/* What is open when a process dies was being called. Kinds that nobody knows
 * are counted. */
static void endings(void)
{
    on();
    void *context = context_of(HASH, RANK);
    void *own = group(context, 1);
    stop(call_coll(context, "AllReduce", 7));
    group_ends(own);
    stop(own);
    stop(own); /* twice, and after all */
    stop(call_coll(context, "Teleport", 7));
    thread_state.depth = 1; /* a hook has it */
    stop(call_coll(context, "Broadcast", 7));
    thread_state.depth = 0;
    stop(call_coll(context, "Reduce", 8)); /* in no group that was told */
    group(context, 1);
    stop(call_coll(context, "AllGather", 9));
}

static void test_endings(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, endings);
    assert_answer(&s, ops,
                  "ncclAllReduce|7|bfloat16|-|-|20480|0|-|1|2048\n"
                  "ncclReduce|8|bfloat16|2|-|20480|1|-|1|2048\n"
                  "ncclAllGather|9|bfloat16|-|-|20480|2|-|0|2176");
    assert_answer(&s, "SELECT cause, what, n FROM loss", "unknown_kind|op|1");
    scenario_end(&s);
}

/* Each rank of a process is one; what NCCL numbers alike is told apart where
 * one process holds both. */
static void names(void)
{
    on();
    void *first = context_of(HASH, 0), *second = context_of(HASH, 1);
    check(first != second);
    check(ncclProfiler_v6.finalize(first) == 0);
    context_of(HASH, 0);
    context_of(HASH + 1, 0);
}

static void test_names(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, names);
    assert_answer(&s,
                  "SELECT count(*), count(DISTINCT m.uid), a.uid = b.uid"
                  " FROM comm m, (SELECT uid FROM comm WHERE id = 1) a,"
                  " (SELECT uid FROM comm WHERE id = 2) b",
                  "4|3|1");
    scenario_end(&s);
}

/* By all the names that NCCL has for types, and others. */
static void types(void)
{
    static const char *const words[] = {
        "ncclInt8",    "Unknown",     "ncclUint8",     "ncclInt32",
        "ncclUint32",  "ncclInt64",   "ncclUint64",    "ncclFloat16",
        "ncclFloat32", "ncclFloat64", "ncclBfloat16",  "ncclFloat8e4m3",
        "ncclInt80",   "ncclInt",     "ncclFloat8e5m2"};
    on();
    void *context = context_of(HASH, RANK);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        struct ct_profiler_event_v5 event = {.type = CT_PROFILER_COLL_API};
        event.u.coll_api.func = "AllReduce";
        event.u.coll_api.count = 1;
        event.u.coll_api.datatype = words[i];
        event.u.coll_api.stream = STREAM;
        stop(start(context, &event));
    }
}

static void test_types(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, types);
    assert_answer(&s,
                  "SELECT group_concat(name, ' ') FROM (SELECT"
                  " ifnull(t.name, 'none') AS name FROM op o"
                  " JOIN op_class c ON c.id = o.class"
                  " LEFT JOIN data_type t ON t.id = c.type ORDER BY o.id)",
                  "int8 uint8 uint8 int32 uint32 int64 uint64 half float double"
                  " bfloat16 f8e4m3 none none f8e5m2");
    scenario_end(&s);
}

/* Version 4: launches, a broadcast as bytes; and handles of nobody's. */
static void launches(void)
{
    struct ct_profiler_event_v4 event = {.type = CT_PROFILER_COLL};
    void *context = NULL, *handle;
    int mask = 0;
    on();
    check(ncclProfiler_v4.init(&context, &mask, NULL, HASH, 1, RANKS, RANK,
                               NULL) == 0);
    event.u.coll = (struct ct_profiler_coll){.func = "Broadcast",
                                             .count = 40,
                                             .root = 3,
                                             .datatype = "ncclInt8",
                                             .channels = 1,
                                             .algorithm = "RING",
                                             .protocol = "LL"};
    check(ncclProfiler_v4.start(context, &handle, &event) == 0);
    check(ncclProfiler_v4.stop(handle) == 0);
    for (uintptr_t odd = 0; odd < 64; odd++) {
        check(ncclProfiler_v4.stop((void *)(odd << 3 | 5)) == 0);
        check(ncclProfiler_v4.stop((void *)(odd << 3 | 6)) == 0);
        check(ncclProfiler_v4.record((void *)(odd << 3 | 4),
                                     CT_PROFILER_GROUP_END_BEGINS, NULL) == 0);
    }
}

static void test_launches(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, launches);
    assert_answer(&s, ops, "ncclBroadcast|40|int8|3|-|-|0|-|0|2048");
    assert_answer(&s,
                  "SELECT why LIKE '%launches alone%' FROM absence"
                  " WHERE what = 'calls'",
                  "1");
    scenario_end(&s);
}

/* Threads in groups of their own; a child that says nothing. */
enum { THREADS = 4, EACH = 1500 };

static void *exchange(void *context)
{
    for (int i = 0; i < EACH; i++) {
        void *brackets = group(context, 2);
        void *send = call_p2p(context, "Send", false),
             *recv = call_p2p(context, "Recv", false);
        stop(call_coll(context, "AllReduce", 1));
        group_ends(brackets);
        launch_p2p(context, "Recv", 0, recv);
        launch_p2p(context, "Send", 0, send);
        stop(brackets);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t thread[THREADS];
    setenv("COMMTRACE_RING_SLOTS", "131072", 1);
    on();
    void *context = context_of(HASH, RANK);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, exchange, context);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    pid_t pid = fork();
    if (pid == 0) {
        exchange(context);
        _exit(0);
    }
    int status;
    check(waitpid(pid, &status, 0) == pid && status == 0);
}

static void test_threads(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, threads);
    assert_answer(&s,
                  "SELECT count(*), count(DISTINCT grp),"
                  " sum(flags = 2052) FROM op",
                  "18000|6000|18000");
    assert_answer(&s,
                  "SELECT count(*), sum(ops = 3), min(host_ns) > 0"
                  " FROM launch",
                  "6000|6000|1");
    assert_answer(&s,
                  "SELECT count(*), max(n) FROM (SELECT count(*) AS n FROM op o"
                  " JOIN op_class c ON c.id = o.class GROUP BY c.kind,"
                  " o.ordinal)",
                  "18000|1");
    scenario_end(&s);
}

static _Atomic bool enough;

static void *meet_and_part(void *unused)
{
    for (uint64_t hash = HASH + 1; !enough; hash++)
        check(ncclProfiler_v6.finalize(context_of(hash, RANK)) == 0);
    return unused;
}

/* A child that is forked while communicators come and go elsewhere, and ends
 * its own: what other threads had locked stays locked there. */
static void forks(void)
{
    enum { CHILDREN = 200 };
    pthread_t thread;
    on();
    void *context = context_of(HASH, RANK);
    pthread_create(&thread, NULL, meet_and_part, NULL);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(ncclProfiler_v6.finalize(context));
        int status;
        check(waitpid(pid, &status, 0) == pid && status == 0);
    }
    enough = true;
    pthread_join(thread, NULL);
}

static void test_forks(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, forks);
    assert_answer(&s, "SELECT count(*) > 1 FROM comm", "1");
    scenario_end(&s);
}

/* Launched when others have long taken its place: a launch is told all the
 * same; but a graph's may be the second one. */
static void late(void)
{
    enum { OTHERS = 1 << 14 };
    on();
    void *context = context_of(HASH, RANK);
    void *old = call_p2p(context, "Send", false);
    void *captured = call_p2p(context, "Recv", true);
    launch_p2p(context, "Recv", 2, captured);
    launch_p2p(context, "Recv", 2, captured);
    for (int i = 0; i < OTHERS; i++)
        call_p2p(context, "Send", false);
    launch_p2p(context, "Recv", 2, captured);
    launch_p2p(context, "Send", 3, old);
}

static void test_late(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, late);
    assert_answer(&s, ops,
                  "ncclRecv|5|int64|2|-|20480|0|-|1|2080\n"
                  "ncclSend|5|int64|3|-|-|0|-|0|2048");
    scenario_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transfers), cmocka_unit_test(test_endings),
        cmocka_unit_test(test_names),     cmocka_unit_test(test_launches),
        cmocka_unit_test(test_threads),   cmocka_unit_test(test_late),
        cmocka_unit_test(test_forks),     cmocka_unit_test(test_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
