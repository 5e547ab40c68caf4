/*
 * op_cost LIBCUDA LIBNCCL SECONDS: what ncclAllReduce costs its caller, on a
 * communicator of one rank and a side stream of device 0. Prints one line per
 * kind of call: its name, the median over blocks of ns per op, and the number
 * of ops. Run with the recorder in front or without, as the same process.
 *
 *   in_place   NCCL launches nothing: the call alone
 *   copy       NCCL launches a copy
 *
 * Libraries are opened at run time, so that one binary serves every machine.
 */
#include "../bench/bench.h"
#include "commtrace/nccl_abi.h"

#include <dlfcn.h>

/* A block fits the recorder's pool of events and is followed by a pause in
 * which its writer catches up: an op that finds no events costs too little. */
enum { OPS = 256, BLOCKS_MAX = 1000, PAUSE_US = 25000, START_US = 300000 };
enum { BYTES = 4096, COUNT = BYTES / 4, FLOAT = 7, SUM = 0, NON_BLOCKING = 1 };

static struct {
    int (*init)(unsigned);
    int (*device_get)(int *, int);
    int (*primary_retain)(void **, int);
    int (*ctx_set_current)(void *);
    int (*mem_alloc)(unsigned long long *, size_t);
    int (*stream_create)(void **, unsigned);
    int (*stream_synchronize)(void *);
} cuda;

static struct {
    ncclResult_t (*get_unique_id)(ncclUniqueId *);
    ncclResult_t (*comm_init_rank)(ncclComm_t *, int, ncclUniqueId, int);
    ncclResult_t (*all_reduce)(const void *, void *, size_t, ncclDataType_t,
                               ncclRedOp_t, ncclComm_t, cudaStream_t);
    ncclResult_t (*comm_destroy)(ncclComm_t);
} nccl;

static void die(const char *what)
{
    fprintf(stderr, "op_cost: %s\n", what);
    exit(1);
}

static void check(int error, const char *what)
{
    if (!error)
        return;
    fprintf(stderr, "op_cost: %s gave %d\n", what, error);
    exit(1);
}

static void look_up(void *where, const char *name, void *function)
{
    void *found = dlsym(where, name);
    if (!found)
        die(name);
    *(void **)function = found;
}

static void open_libraries(const char *libcuda, const char *libnccl)
{
    void *driver = dlopen(libcuda, RTLD_NOW | RTLD_GLOBAL);
    if (!driver || !dlopen(libnccl, RTLD_NOW | RTLD_GLOBAL))
        die(dlerror());
    look_up(driver, "cuInit", &cuda.init);
    look_up(driver, "cuDeviceGet", &cuda.device_get);
    look_up(driver, "cuDevicePrimaryCtxRetain", &cuda.primary_retain);
    look_up(driver, "cuCtxSetCurrent", &cuda.ctx_set_current);
    look_up(driver, "cuMemAlloc_v2", &cuda.mem_alloc);
    look_up(driver, "cuStreamCreate", &cuda.stream_create);
    look_up(driver, "cuStreamSynchronize", &cuda.stream_synchronize);
    /* Where a program that is linked to NCCL finds it: preloaded ones first. */
    look_up(RTLD_DEFAULT, "ncclGetUniqueId", &nccl.get_unique_id);
    look_up(RTLD_DEFAULT, "ncclCommInitRank", &nccl.comm_init_rank);
    look_up(RTLD_DEFAULT, "ncclAllReduce", &nccl.all_reduce);
    look_up(RTLD_DEFAULT, "ncclCommDestroy", &nccl.comm_destroy);
}

struct call {
    const char *name;
    void *send, *recv;
};

static double block(const struct call *call, ncclComm_t comm, void *stream)
{
    double start = bench_ns();
    for (int i = 0; i < OPS; i++)
        check(nccl.all_reduce(call->send, call->recv, COUNT, FLOAT, SUM, comm,
                              stream),
              "ncclAllReduce");
    double ns = (bench_ns() - start) / OPS;
    check(cuda.stream_synchronize(stream), "cuStreamSynchronize");
    usleep(PAUSE_US);
    return ns;
}

static void measure(const struct call *calls, int n, double seconds,
                    ncclComm_t comm, void *stream)
{
    static double blocks[2][BLOCKS_MAX];
    int done = 0;
    usleep(START_US); /* threads that the communicator brought come up */
    for (int k = 0; k < n; k++)
        block(&calls[k], comm, stream); /* the first is not like the others */
    double until = bench_ns() + seconds * 1e9;
    while (done < BLOCKS_MAX && (done < 4 || bench_ns() < until)) {
        for (int k = 0; k < n; k++)
            blocks[k][done] = block(&calls[k], comm, stream);
        done++;
    }
    for (int k = 0; k < n; k++)
        printf("%s %.1f %d\n", calls[k].name, bench_median(blocks[k], done),
               (done + 1) * OPS);
}

int main(int argc, char **argv)
{
    int device;
    void *context, *stream;
    unsigned long long memory;
    ncclUniqueId id;
    ncclComm_t comm;
    if (argc != 4)
        die("usage: op_cost LIBCUDA LIBNCCL SECONDS");
    open_libraries(argv[1], argv[2]);
    check(cuda.init(0), "cuInit");
    check(cuda.device_get(&device, 0), "cuDeviceGet");
    check(cuda.primary_retain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuda.ctx_set_current(context), "cuCtxSetCurrent");
    check(cuda.mem_alloc(&memory, (size_t)2 * BYTES), "cuMemAlloc");
    check(cuda.stream_create(&stream, NON_BLOCKING), "cuStreamCreate");
    check(nccl.get_unique_id(&id), "ncclGetUniqueId");
    check(nccl.comm_init_rank(&comm, 1, id, 0), "ncclCommInitRank");

    char *data = (char *)(uintptr_t)memory;
    const struct call calls[] = {{"in_place", data, data},
                                 {"copy", data, data + BYTES}};
    measure(calls, 2, atof(argv[3]), comm, stream);
    check(nccl.comm_destroy(comm), "ncclCommDestroy");
    return 0;
}
