/*
 * What a collective's call costs longer where NCCL's profiler is asked, on the
 * stand-in NCCL: two ranks in one process, whose all-reduces are too small to
 * take any time. And what one event costs by itself, beside the least that any
 * recorder pays for it: a store of its size. Processes with the profiler off,
 * for collectives and for kernels take turns, so that the machine's mood hits
 * all alike.
 */
#include "bench.h"
#include "bench_server.h"
#include "bench_trace.h"
#include "commtrace/profiler_abi.h"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nccl.h>
#include <stdint.h>

enum { BLOCKS = 120, OPS = 50, EVENTS = 500, RANKS = 2 };
enum request { CALL, EVENT, STORE };
enum mode { OFF, COLL, KERNEL, MODES };
static const char *const modes[] = {"off", "coll", "kernel"};

static ncclComm_t comms[RANKS];
static cudaStream_t streams[RANKS];
static float *data[RANKS];
static const struct ct_profiler_v5 *plugin;
static void *context;

static int set_up(void)
{
    int mask = 0;
    for (int i = 0; i < RANKS; i++)
        if (cudaSetDevice(i) || cudaStreamCreate(&streams[i]) ||
            cudaMalloc((void **)&data[i], 64))
            return -1;
    if (ncclCommInitAll(comms, RANKS, NULL) != ncclSuccess)
        return -1;
    if (!strcmp(getenv("COMMTRACE_PROFILER"), modes[OFF]))
        return 0; /* nobody finds it */
    plugin = dlsym(RTLD_DEFAULT, "ncclProfiler_v6");
    return plugin ? plugin->init(&context, 77, &mask, NULL, 1, 2, 0, NULL) : -1;
}

static int group(void)
{
    int failed = ncclGroupStart();
    for (int i = 0; i < RANKS; i++)
        failed |= ncclAllReduce(data[i], data[i], 4, ncclFloat, ncclSum,
                                comms[i], streams[i]);
    return failed | ncclGroupEnd();
}

/* Per call; the work itself is not in it, as it is not in a program's. */
static double call_block(void)
{
    double spent = 0;
    for (int i = 0; i < OPS; i++) {
        double start = bench_ns();
        if (group())
            exit(2);
        spent += bench_ns() - start;
        if (i % 10 == 9)
            for (int k = 0; k < RANKS; k++)
                cudaStreamSynchronize(streams[k]);
    }
    return spent / OPS / RANKS;
}

static double event_block(void)
{
    struct ct_profiler_event_v5 event = {.type = CT_PROFILER_COLL};
    event.u.coll.is = (struct ct_profiler_coll){.func = "AllReduce",
                                                .count = 4,
                                                .datatype = "ncclFloat32",
                                                .channels = 1,
                                                .algorithm = "RING",
                                                .protocol = "LL"};
    double start = bench_ns();
    for (int i = 0; i < EVENTS; i++) {
        void *handle;
        plugin->start(context, &handle, &event);
        plugin->stop(handle);
    }
    return (bench_ns() - start) / EVENTS;
}

static double store_block(void)
{
    static struct {
        uint64_t words[16];
    } slots[8192];
    static unsigned at;
    double start = bench_ns();
    for (int i = 0; i < EVENTS; i++) {
        volatile uint64_t *words = slots[at++ % 8192].words;
        for (int k = 0; k < 16; k++)
            words[k] = (uint64_t)i;
    }
    return (bench_ns() - start) / EVENTS;
}

static double block(int request)
{
    return request == CALL    ? call_block()
           : request == EVENT ? event_block()
                              : store_block();
}

static int serve(void)
{
    int status = set_up() ? 2 : bench_serve(block);
    for (int i = 0; status == 0 && i < RANKS; i++)
        ncclCommDestroy(comms[i]);
    return status;
}

static struct bench_server start(enum mode mode, char **argv)
{
    char profiler[64];
    const char *settings[] = {"FABRIC=" BENCH_MACHINE, "COMMTRACE_NCCL_LOG=off",
                              profiler, NULL};
    snprintf(profiler, sizeof(profiler), "COMMTRACE_PROFILER=%s", modes[mode]);
    return bench_start(argv, settings);
}

/* What is not recorded costs nothing. */
static int check(const struct bench_server *server, enum mode mode)
{
    int64_t wanted = mode == OFF ? 0 : BLOCKS * OPS * RANKS;
    int64_t found = bench_trace_ask(server->dir, "SELECT count(n) FROM choice");
    int64_t timed =
        bench_trace_ask(server->dir, "SELECT count(gpu_ns) FROM choice");
    bench_remove(server->dir);
    if (found >= wanted * 9 / 10 && found <= wanted &&
        (timed > 0) == (mode == KERNEL))
        return 0;
    printf("bench profiler, %s: %lld choices of %lld, %lld timed FAILED\n",
           modes[mode], (long long)found, (long long)wanted, (long long)timed);
    return 1;
}

int main(int argc, char **argv)
{
    static double calls[MODES][BLOCKS], events[BLOCKS], stores[BLOCKS];
    struct bench_server servers[MODES];
    double ns[MODES];
    int failed = 0;
    (void)argc;
    if (bench_is_server())
        return serve();
    for (int m = 0; m < MODES; m++)
        servers[m] = start((enum mode)m, argv);
    for (int i = 0; i < BLOCKS; i++) {
        for (int m = 0; m < MODES; m++) {
            int mode = (i + m) % MODES;
            calls[mode][i] = bench_ask(&servers[mode], CALL);
        }
        events[i] = bench_ask(&servers[COLL], EVENT);
        stores[i] = bench_ask(&servers[COLL], STORE);
        usleep(2000); /* the writer catches up: a full queue costs nothing */
    }
    for (int m = 0; m < MODES; m++) {
        bench_stop(&servers[m]);
        failed |= check(&servers[m], (enum mode)m);
        ns[m] = bench_median(calls[m], BLOCKS);
    }
    failed |=
        bench_report("profiler_coll", "ns", ns[COLL], ns[OFF], AT_MOST, 2);
    failed |=
        bench_report("profiler_kernel", "ns", ns[KERNEL], ns[OFF], AT_MOST, 3);
    return failed |
           bench_report("profiler_event", "ns", bench_median(events, BLOCKS),
                        bench_median(stores, BLOCKS), AT_MOST, 10);
}
