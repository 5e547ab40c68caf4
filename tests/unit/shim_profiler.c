/*
 * Our plugin when things go wrong: NCCL is told of success, and what was lost
 * is counted. The job is played by hand: each table as its NCCL would use it.
 */
#include "commtrace/nccl_hash.h"
#include "commtrace/profiler_abi.h"
#include "profiler.h"
#include "record.h"
#include "shim_test.h"

#include <errno.h>
#include <pthread.h>

extern const struct ct_profiler_v4 ncclProfiler_v4;
extern const struct ct_profiler_v5 ncclProfiler_v5, ncclProfiler_v6,
    ncclProfiler_v7;

int fake_tell_v4(const struct ct_profiler_v4 *plugin, void **context, int *mask,
                 uint64_t hash, int nodes);
int fake_tell_v5(const struct ct_profiler_v5 *plugin, void **context, int *mask,
                 uint64_t hash, int nodes);

/* In the child, which is not cmocka's. */
#define check(right_)                                       \
    do {                                                    \
        if (!(right_)) {                                    \
            fprintf(stderr, "%d: %s\n", __LINE__, #right_); \
            _exit(3);                                       \
        }                                                   \
    } while (0)

static _Thread_local bool no_more; /* of the thread that asks */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
    return no_more ? NULL : __real_calloc(n, size);
}

static void on(const char *mode)
{
    setenv("COMMTRACE_PROFILER", mode, 1);
    setenv("COMMTRACE_FLUSH_MS", "60000", 1);
}

static ncclComm_t comm_of(int id)
{
    ncclComm_t comm;
    check((ncclCommInitRank(&comm, 2, some_id(id), 0)) == (ncclSuccess));
    return comm;
}

static uint64_t hash_of(int id)
{
    ncclUniqueId bytes = some_id(id);
    return ct_nccl_hash_of_id(&bytes);
}

static void *context_of(int id, int wanted_mask)
{
    void *context = &context;
    int mask = -1;
    errno = ENXIO;
    check((fake_tell_v5(&ncclProfiler_v6, &context, &mask, hash_of(id), 1)) ==
          (0));
    check((errno) == (ENXIO));
    check((mask) == (wanted_mask));
    return context;
}

enum { COLL = 2 | 4, KERNEL = COLL | 64 };

static void *start(void *context, size_t count)
{
    struct ct_profiler_event_v5 event = {.type = CT_PROFILER_COLL};
    void *handle = &handle;
    event.u.coll.is = (struct ct_profiler_coll){.func = "AllReduce",
                                                .count = count,
                                                .datatype = "ncclFloat16",
                                                .channels = 1,
                                                .algorithm = "RING",
                                                .protocol = "LL"};
    check((ncclProfiler_v6.start(context, &handle, &event)) == (0));
    return handle;
}

static void *begin_kernel(void *context, void *parent, uint64_t timer)
{
    struct ct_profiler_event_v5 event = {.type = CT_PROFILER_KERNEL_CHANNEL,
                                         .parent = parent};
    void *handle = &handle;
    event.u.kernel.timer = timer;
    check((ncclProfiler_v6.start(context, &handle, &event)) == (0));
    return handle;
}

static void end_kernel(void *handle, uint64_t timer)
{
    union ct_profiler_args args = {.kernel = {timer}};
    check((ncclProfiler_v6.record(handle, CT_PROFILER_KERNEL_STOP, &args)) ==
          (0));
    check((ncclProfiler_v6.stop(handle)) == (0));
}

/* A call that does not return keeps the writer from what comes after. */
static void never_return(void)
{
    uint64_t position;
    struct ct_slot *slot = record_open(CT_SLOT_COMM_EVENT, 1, &position);
    slot->u.event.what = CT_EVENT_REGISTER;
    ring_publish(slot, position, CT_SLOT_OPEN);
}

enum { MORE = 100 };

static void full(void)
{
    on("coll");
    comm_of(1);
    void *context = context_of(1, COLL);
    never_return();
    for (int i = 0; i < PROFILER_EVENTS + MORE; i++)
        check((start(context, 1) != NULL) == (i < PROFILER_EVENTS));
}

static void test_full(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, full);
    assert_answer(&s, "SELECT count(*), count(n) FROM choice", "8192|0");
    assert_answer(&s, "SELECT cause, what, n FROM loss",
                  "profiler_queue|choice|100");
    scenario_end(&s);
}

static void no_memory(void)
{
    void *context = &context;
    int mask = 0;
    on("coll");
    comm_of(1);
    no_more = true;
    int result = fake_tell_v5(&ncclProfiler_v6, &context, &mask, hash_of(1), 1);
    no_more = false;
    check((result) == (0));
    check(!(context));
    check((mask) == (0));
    check(!(start(context, 1)));
    check((ncclProfiler_v6.finalize(context)) == (0));
    ncclComm_t comm = comm_of(2);
    context = context_of(2, COLL);
    check((ncclAllReduce(NULL, NULL, 5, 6, 0, comm, NULL)) == (0));
    start(context, 5);
}

static void test_no_memory(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, no_memory);
    assert_answer(&s, "SELECT cause, what, n FROM loss",
                  "no_memory|profiled comm|1");
    assert_answer(&s,
                  "SELECT k.comm, bytes, n FROM choice"
                  " JOIN choice_class k ON k.id = class",
                  "2|10|0");
    scenario_end(&s);
}

/* Of a communicator that the program never got. */
static void strangers(void)
{
    on("coll");
    ncclComm_t comm = comm_of(1);
    void *stranger = context_of(77, COLL), *context = context_of(1, COLL);
    check((ncclAllReduce(NULL, NULL, 5, 6, 0, comm, NULL)) == (0));
    start(stranger, 5);
    start(context, 5);
    start(stranger, 5);
    check((ncclProfiler_v6.finalize(stranger)) == (0));
}

static void test_strangers(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, strangers);
    assert_answer(&s, "SELECT cause, what, n FROM loss",
                  "unknown_comm|choice|2");
    assert_answer(&s, "SELECT id, n FROM choice", "3|0");
    assert_answer(&s, "SELECT comm, nodes, source FROM nccl_comm",
                  "1|1|plugin");
    scenario_end(&s);
}

/* Whatever NCCL passes for a handle, and however late. */
static void handles(void)
{
    on("kernel");
    ncclComm_t comm = comm_of(1);
    void *context = context_of(1, KERNEL);
    void *odd[] = {NULL, (void *)1, (void *)(uintptr_t)0x7fffffffffff, context,
                   (void *)(uintptr_t)-2};
    check((ncclAllReduce(NULL, NULL, 5, 6, 0, comm, NULL)) == (0));
    void *task = start(context, 5);
    void *kernel = begin_kernel(context, task, 1000);
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        check(!(begin_kernel(context, odd[i], 1)));
        end_kernel(odd[i], 1);
    }
    check((ncclProfiler_v6.record(kernel, 99, NULL)) == (0));
    check((ncclProfiler_v6.record(kernel, CT_PROFILER_KERNEL_STOP, NULL)) ==
          (0));
    end_kernel(kernel, 1234);
    end_kernel(kernel, 1); /* twice is no news */
}

static void test_handles(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, handles);
    assert_answer(&s, "SELECT n, start_ns, gpu_ns FROM choice", "0|1000|234");
    scenario_end(&s);
}

/* The writer has to see that room is scarce. */
static void await_room(uint64_t events)
{
    for (int i = 0; i < 30000; i++) {
        if (profiler_head() - profiler_tail() + events <= PROFILER_EVENTS)
            return;
        usleep(1000);
    }
}

/* The writer gives room back before kernels have ended, if it must. */
static void slow_kernels(void)
{
    enum { CALLS = 3 * PROFILER_EVENTS, SOME = PROFILER_EVENTS / 8 };
    on("kernel");
    setenv("COMMTRACE_FLUSH_MS", "10", 1);
    comm_of(1);
    void *context = context_of(1, KERNEL);
    void *first = start(context, 1);
    for (int i = 1; i < CALLS; i++) {
        if (i % SOME == 0)
            await_room(SOME);
        check(start(context, 1));
    }
    begin_kernel(context, first, 1);
}

static void test_slow_kernels(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, slow_kernels);
    assert_answer(&s, "SELECT count(*), count(gpu_ns) FROM choice", "24576|0");
    assert_answer(&s, "SELECT cause, what, n FROM loss ORDER BY 1",
                  "not_told|kernel|24576\nprofiler_queue|kernel|1");
    scenario_end(&s);
}

/* Threads of NCCL's tell at once; every event is one row. */
enum { THREADS = 4, EACH = 1500 };

static void *tell(void *context)
{
    for (int i = 0; i < EACH; i++) {
        void *task = start(context, 3);
        end_kernel(begin_kernel(context, task, 10), 30);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t thread[THREADS];
    on("kernel");
    comm_of(1);
    void *context = context_of(1, KERNEL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, tell, context);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

static void test_threads(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, threads);
    assert_answer(&s, "SELECT count(*), sum(gpu_ns) FROM choice",
                  "6000|120000");
    assert_answer(&s, "SELECT count(*) FROM loss", "0");
    scenario_end(&s);
}

/* All versions of the table are ours; version 4 has an order of its own. */
static void old(void)
{
    struct ct_profiler_event_v4 event = {.type = CT_PROFILER_P2P};
    void *context = NULL, *handle;
    int mask = 0;
    on("coll");
    ncclComm_t comm = comm_of(1);
    check((fake_tell_v4(&ncclProfiler_v4, &context, &mask, hash_of(1), 3)) ==
          (0));
    check((mask) == (COLL));
    check((ncclSend(NULL, 9, 7, 1, comm, NULL)) == (0));
    event.u.p2p = (struct ct_profiler_p2p){
        .func = "Send", .datatype = "ncclFloat32", .count = 9, .peer = 1};
    check((ncclProfiler_v4.start(context, &handle, &event)) == (0));
    check(ncclProfiler_v5.start == ncclProfiler_v6.start);
    check(ncclProfiler_v7.start == ncclProfiler_v6.start);
}

static void test_old(void **state)
{
    struct scenario s;
    (void)state;
    scenario_run(&s, old);
    assert_answer(&s,
                  "SELECT o.function, k.peer, k.bytes, k.channels, c.n"
                  " FROM choice c JOIN choice_class k ON k.id = c.class"
                  " JOIN op_kind o ON o.id = k.kind",
                  "ncclSend|1|36|-|0");
    assert_answer(&s, "SELECT nodes FROM nccl_comm", "3");
    scenario_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),         cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_strangers),    cmocka_unit_test(test_handles),
        cmocka_unit_test(test_slow_kernels), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
