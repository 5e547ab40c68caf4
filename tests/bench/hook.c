/*
 * What a hooked operation costs without GPU timing, beside the least that any
 * recorder pays: two clock readings and a 128-byte store; and what it costs to
 * know its call site, once all call sites were met. How that is done is chosen
 * when a process starts, so there are two of them. Blocks alternate, so that
 * the machine's mood hits all alike. What is not recorded costs nothing, so
 * their traces must hold what they issued.
 */
#include "bench.h"
#include "bench_server.h"
#include "bench_trace.h"
#include "commtrace/nccl_abi.h"

#include <stdint.h>
#include <unistd.h>

ncclResult_t ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);
ncclResult_t ncclAllReduce(const void *, void *, size_t, ncclDataType_t,
                           ncclRedOp_t, ncclComm_t, cudaStream_t);

enum { BLOCKS = 400, OPS = 2000, SLOTS = 8192 };
enum { COUNTS = 32 }; /* each is a call site of its own */
enum request { FLOOR, HOOK };

struct slot {
    int64_t enter;
    int64_t leave;
    uint64_t rest[14];
};

static struct slot *slots;
static ncclComm_t comm;

static int64_t now(void)
{
    return (int64_t)bench_ns();
}

static double floor_block(void)
{
    static unsigned at;
    double start = bench_ns();
    for (int i = 0; i < OPS; i++) {
        struct slot *slot = &slots[at++ % SLOTS];
        struct slot filled = {.enter = now(), .rest = {(uint64_t)i, 1, 2, 3}};
        filled.leave = now();
        *(volatile struct slot *)slot = filled;
    }
    return (bench_ns() - start) / OPS;
}

static double hook_block(void)
{
    static float data[4 + COUNTS];
    double start = bench_ns();
    for (int i = 0; i < OPS; i++)
        ncclAllReduce(data, data, 4 + i % COUNTS, 7, 0, comm, NULL);
    return (bench_ns() - start) / OPS;
}

/* ns per operation */
static double block(int request)
{
    return request == FLOOR ? floor_block() : hook_block();
}

static int serve(void)
{
    ncclUniqueId id = {{1}};
    slots = calloc(SLOTS, sizeof(*slots));
    if (!slots || ncclCommInitRank(&comm, 2, id, 0) != ncclSuccess)
        return 2;
    return bench_serve(block);
}

static struct bench_server start(const char *stacks, char **argv)
{
    const char *settings[] = {"COMMTRACE_TIMING=off", stacks, NULL};
    return bench_start(argv, settings);
}

/* Lost is what met a full ring: too little to matter to a median. */
static int check(const char *stacks, const struct bench_server *server,
                 bool has_stacks)
{
    const char *dir = server->dir;
    int64_t ops = bench_trace_ask(dir, "SELECT count(*) FROM op");
    int64_t lost = bench_trace_ask(dir, "SELECT coalesce(sum(n), 0) FROM loss"
                                        " WHERE what = 'op'");
    int64_t known = bench_trace_ask(dir, "SELECT count(*) FROM stack");
    bench_remove(dir);
    if (ops + lost == BLOCKS * OPS && lost <= ops / 4 &&
        (known > 0) == has_stacks)
        return 0;
    printf("bench hook, stacks %s: %lld ops of %d recorded, %lld lost, %lld "
           "stacks FAILED\n",
           stacks, (long long)ops, BLOCKS * OPS, (long long)lost,
           (long long)known);
    return 1;
}

int main(int argc, char **argv)
{
    static double off[BLOCKS], first[BLOCKS], least[BLOCKS];
    (void)argc;
    if (bench_is_server())
        return serve();
    struct bench_server without = start("COMMTRACE_STACKS=off", argv);
    struct bench_server with = start("COMMTRACE_STACKS=first", argv);
    for (int i = 0; i < BLOCKS; i++) {
        least[i] = bench_ask(&with, FLOOR);
        for (int k = 0; k < 2; k++) /* either one first, in turn */
            if ((i ^ k) & 1)
                first[i] = bench_ask(&with, HOOK);
            else
                off[i] = bench_ask(&without, HOOK);
        usleep(4000); /* the writers catch up: a full ring costs nothing */
    }
    bench_stop(&without);
    bench_stop(&with);
    int failed = check("off", &without, false) | check("first", &with, true);
    double with_ns = bench_median(first, BLOCKS);
    double without_ns = bench_median(off, BLOCKS);
    double floor_ns = bench_median(least, BLOCKS);
    return failed |
           bench_report("hook", "ns", with_ns, floor_ns, AT_MOST, 1.5) |
           bench_report("hook_stacks", "ns", with_ns, without_ns, AT_MOST, 1.1);
}
