/*
 * Jobs on the fabric that do what nobody expects, in one process. The first
 * argument says what; odd.py knows what must be in the trace.
 */
#include <cuda_runtime.h>
#include <nccl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAY(call_) printf("%s = %d\n", #call_, (int)(call_))

static void must(int error)
{
    if (error)
        abort();
}

static cudaStream_t stream;
static float *data;
static ncclUniqueId id;

static void begin(void)
{
    must(cudaSetDevice(0));
    must(cudaMalloc((void **)&data, 4096));
    must(cudaStreamCreate(&stream));
    must(ncclGetUniqueId(&id));
}

/* Arguments that NCCL refuses reach it, and nothing of them is used before. */
static void run_nonsense(void)
{
    ncclComm_t comm = NULL, made = NULL;
    ncclResult_t state;
    begin();
    SAY(ncclCommInitRank(NULL, 1, id, 0));
    SAY(ncclCommInitRank(&made, 0, id, 0));
    SAY(ncclCommInitRank(&made, 1, id, 5));
    SAY(ncclCommInitRank(&made, -3, id, -1));
    SAY(ncclCommInitAll(NULL, 1, NULL));
    SAY(ncclCommInitAll(&made, -1, NULL));
    SAY(ncclCommInitRankConfig(NULL, 1, id, 0, NULL));
    must(ncclCommInitRank(&comm, 1, id, 0));
    SAY(ncclCommSplit(NULL, 0, 0, &made, NULL));
    SAY(ncclCommSplit(comm, 0, 0, NULL, NULL));
    SAY(ncclCommSplit(comm, -5, 0, &made, NULL));
    SAY(ncclCommSplit(comm, NCCL_SPLIT_NOCOLOR, 0, &made, NULL));
#if NCCL_VERSION_CODE >= 22700 /* the first with it */
    int ranks[1] = {0};
    SAY(ncclCommShrink(comm, NULL, 1000000, &made, NULL, 0));
    SAY(ncclCommShrink(comm, ranks, 1000000000, &made, NULL, 0));
    SAY(ncclCommShrink(comm, ranks, -1, &made, NULL, 0));
    SAY(ncclCommShrink(comm, ranks, 1, NULL, NULL, 0));
#endif
    SAY(ncclCommGetAsyncError(comm, NULL));
    SAY(ncclCommGetAsyncError(NULL, &state));
    SAY(ncclCommFinalize(NULL));
    SAY(ncclCommDestroy(NULL));
    SAY(ncclCommAbort(NULL));
    SAY(ncclCommRegister(comm, NULL, 0, NULL));
    SAY(ncclCommDeregister(comm, NULL));
    SAY(ncclGroupEnd());
    SAY(ncclAllReduce(data, data, 10, ncclFloat, ncclSum, NULL, stream));
    SAY(ncclAllReduce(NULL, NULL, 10, ncclFloat, ncclSum, comm, stream));
    SAY(ncclAllReduce(data, data, 10, (ncclDataType_t)99, ncclSum, comm,
                      stream));
    SAY(ncclAllReduce(data, data, 10, ncclFloat, (ncclRedOp_t)-7, comm,
                      stream));
    SAY(ncclSend(data, 10, ncclFloat, 1 << 30, comm, stream));
    SAY(ncclRecv(data, 10, ncclFloat, -2147483647 - 1, comm, stream));
    SAY(ncclBroadcast(data, data, 10, ncclFloat, 77, comm, stream));
    SAY(ncclAllReduce(data, data, 0, ncclFloat, ncclSum, comm, stream));
    SAY(ncclAllReduce(data, data, 16, ncclFloat, ncclSum, comm, stream));
    must(cudaStreamSynchronize(stream));
    SAY(ncclCommDestroy(comm));
}

enum { STREAMS = 100 };

/* One group over more streams than a group's times are taken of. */
static void run_wide_group(void)
{
    static cudaStream_t streams[2][STREAMS];
    ncclComm_t comms[2];
    float *datas[2];
    must(ncclCommInitAll(comms, 2, NULL));
    for (int device = 0; device < 2; device++) {
        must(cudaSetDevice(device));
        must(cudaMalloc((void **)&datas[device], 4096));
        for (int i = 0; i < STREAMS; i++)
            must(cudaStreamCreate(&streams[device][i]));
    }
    must(ncclGroupStart());
    for (int i = 0; i < STREAMS; i++)
        for (int device = 0; device < 2; device++)
            must(ncclAllReduce(datas[device], datas[device], 16, ncclFloat,
                               ncclSum, comms[device], streams[device][i]));
    must(ncclGroupEnd());
    for (int device = 0; device < 2; device++) {
        must(cudaSetDevice(device));
        must(cudaDeviceSynchronize());
        must(ncclCommDestroy(comms[device]));
    }
}

/* The context goes, with the events that we have in it. */
static void run_reset(void)
{
    for (int turn = 0; turn < 3; turn++) {
        ncclComm_t comm;
        begin();
        must(ncclCommInitRank(&comm, 1, id, 0));
        for (int i = 0; i < 50; i++)
            must(ncclAllReduce(data, data, 16, ncclFloat, ncclSum, comm,
                               stream));
        must(cudaStreamSynchronize(stream));
        must(ncclCommDestroy(comm));
        must(cudaDeviceReset());
    }
}

/* A stream per call, and the default ones. */
static void run_streams(void)
{
    ncclComm_t comm;
    cudaStream_t other;
    begin();
    must(ncclCommInitRank(&comm, 1, id, 0));
    for (int i = 0; i < 300; i++) {
        must(cudaStreamCreate(&other));
        must(ncclAllReduce(data, data, 16, ncclFloat, ncclSum, comm, other));
        must(cudaStreamDestroy(other));
    }
    for (int i = 0; i < 3; i++)
        must(ncclAllReduce(data, data, 16, ncclFloat, ncclSum, comm,
                           (cudaStream_t)(size_t)i));
    must(cudaDeviceSynchronize());
    must(ncclCommDestroy(comm));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } ways[] = {
        {"nonsense", run_nonsense},
        {"wide_group", run_wide_group},
        {"reset", run_reset},
        {"streams", run_streams},
    };
    for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(*ways); i++)
        if (!strcmp(argv[1], ways[i].name)) {
            ways[i].run();
            puts("done");
            return 0;
        }
    return 2;
}
