/*
 * Calls in a known order, for who listens to NCCL's profiler events:
 * test_profiler_host.py knows them as well. Started by launch, one process per
 * rank: profiler_job CASE.
 */
#include "fabric_cases.h"

static void start(void)
{
    check_nccl(ncclGroupStart(), "ncclGroupStart");
}

static void end(void)
{
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
}

static void reduce(struct test *t, ncclComm_t comm, size_t count)
{
    check_nccl(
        ncclAllReduce(t->d, t->d, count, ncclInt32, ncclSum, comm, t->stream),
        "all-reduce");
}

/* With both neighbours, which of two ranks are one. */
static void exchange(struct test *t, ncclComm_t comm, size_t count)
{
    int next = (t->job.rank + 1) % t->job.world;
    int last = (t->job.rank + t->job.world - 1) % t->job.world;

    start();
    check_nccl(ncclSend(t->d, count, ncclInt32, next, comm, t->stream), "send");
    check_nccl(
        ncclRecv(t->d + COUNT / 2, count, ncclInt32, last, comm, t->stream),
        "recv");
    end();
}

static void case_plain(struct test *t)
{
    reduce(t, t->world, COUNT);
    check_nccl(ncclAllGather(t->d, t->d, 100, ncclInt32, t->world, t->stream),
               "all-gather");
    check_nccl(ncclReduceScatter(t->d, t->d, 100, ncclInt32, ncclSum, t->world,
                                 t->stream),
               "reduce-scatter");
    check_nccl(
        ncclBroadcast(t->d, t->d, 100, ncclInt32, 1, t->world, t->stream),
        "broadcast");
    check_nccl(
        ncclReduce(t->d, t->d, 100, ncclInt32, ncclSum, 0, t->world, t->stream),
        "reduce");
    reduce(t, t->world, 0);
    exchange(t, t->world, 50);
    reduce(t, t->world, 10);
    sync(t);
}

/* Of the type for which NCCL has no word. */
static void case_bytes(struct test *t)
{
    int peer = 1 - t->job.rank;

    for (size_t i = 1; i < 4; i++)
        check_nccl(ncclAllReduce(t->d, t->d, 33 * i, ncclUint8, ncclMax,
                                 t->world, t->stream),
                   "all-reduce");
    start();
    check_nccl(ncclSend(t->d, 77, ncclUint8, peer, t->world, t->stream),
               "send");
    check_nccl(
        ncclRecv(t->d + COUNT / 2, 77, ncclUint8, peer, t->world, t->stream),
        "recv");
    end();
    sync(t);
}

/* NCCL launches the largest first. */
static void case_group(struct test *t)
{
    start();
    reduce(t, t->world, 10);
    reduce(t, t->world, COUNT);
    exchange(t, t->world, 60);
    reduce(t, t->world, 500);
    end();
    sync(t);
}

static void launch(struct test *t, cudaGraphExec_t exec)
{
    check_cuda(cudaGraphLaunch(exec, t->stream), "launch");
}

/* Two graphs, and calls of the same sizes between their launches. */
static void case_graph(struct test *t)
{
    cudaGraph_t graph[2];
    cudaGraphExec_t exec[2];

    for (int i = 0; i < 2; i++) {
        check_cuda(
            cudaStreamBeginCapture(t->stream, cudaStreamCaptureModeGlobal),
            "begin");
        reduce(t, t->world, i ? 300 : 100);
        exchange(t, t->world, 40);
        check_cuda(cudaStreamEndCapture(t->stream, &graph[i]), "end");
        check_cuda(cudaGraphInstantiate(&exec[i], graph[i], 0), "instantiate");
        reduce(t, t->world, 200);
    }
    launch(t, exec[0]);
    reduce(t, t->world, 100);
    launch(t, exec[1]);
    launch(t, exec[0]);
    exchange(t, t->world, 40);
    sync(t);
    for (int i = 0; i < 2; i++) {
        check_cuda(cudaGraphExecDestroy(exec[i]), "destroy");
        check_cuda(cudaGraphDestroy(graph[i]), "destroy");
    }
}

/* Communicators of one rank, and some that come and go. */
static void case_comms(struct test *t)
{
    ncclComm_t alone, child;
    const char *plugin = getenv("NCCL_PROFILER_PLUGIN");
    const char *mine = getenv("JOB_PLUGIN"); /* as it was started with */

    expect(plugin && mine ? !strcmp(plugin, mine) : plugin == mine,
           "the environment is the program's own");

    check_nccl(ncclCommSplit(t->world, t->job.rank, t->job.rank, &alone, NULL),
               "split");
    reduce(t, alone, 10);
    for (int i = 0; i < 3; i++) {
        child = second_world(t);
        reduce(t, child, 100 + (size_t)i);
        reduce(t, t->world, 20);
        sync(t);
        check_nccl(ncclCommDestroy(child), "destroy");
    }
    check_nccl(ncclCommDestroy(alone), "destroy");
}

/* The same kind in and out of groups, many times. */
static void case_mixed(struct test *t)
{
    for (size_t i = 1; i <= 50; i++) {
        reduce(t, t->world, 7 * i);
        start();
        reduce(t, t->world, i);
        reduce(t, t->world, 3 * i);
        reduce(t, t->world, 2 * i);
        end();
        check_nccl(ncclAllGather(t->d, t->d, i, ncclInt32, t->world, t->stream),
                   "all-gather");
    }
    sync(t);
}

/* Groups that launch nothing, and the same calls after them. */
static void case_vain(struct test *t)
{
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;

    for (int i = 0; i < 2; i++) {
        start();
        reduce(t, t->world, 30);
        check_nccl(ncclGroupSimulateEnd(&info), "ncclGroupSimulateEnd");
        reduce(t, t->world, 30);
        start();
        reduce(t, t->world, 40);
        expect(ncclAllReduce(t->d, t->d, 40, (ncclDataType_t)99, ncclSum,
                             t->world, t->stream) == ncclInvalidArgument,
               "a type that is none");
        expect(ncclGroupEnd() == ncclInvalidArgument, "the group fails");
        reduce(t, t->world, 40);
    }
    sync(t);
}

static void case_all(struct test *t)
{
    case_plain(t);
    case_bytes(t);
    case_group(t);
    case_graph(t);
    case_comms(t);
    case_vain(t);
    case_mixed(t);
}

static const struct test_case cases[] = {
    {"plain", case_plain}, {"bytes", case_bytes}, {"group", case_group},
    {"graph", case_graph}, {"comms", case_comms}, {"mixed", case_mixed},
    {"vain", case_vain},   {"all", case_all},
};

int main(int argc, char **argv)
{
    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
