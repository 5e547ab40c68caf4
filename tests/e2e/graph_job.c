/*
 * CUDA graphs with NCCL calls inside, as unusual programs use them. Started by
 * launch, one process per rank: graph_job CASE. Rank 0 says how many ops were
 * captured and how often they ran; data and CUDA errors are checked here.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>

#include <cuda.h>

#include "fabric_cases.h"

cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream,
                                        enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream);
CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph,
                               CUgraphNode *errorNode, char *logBuffer,
                               size_t bufferSize);

static struct {
    long captured; /* ops */
    long launches; /* of graphs with ops in them */
    long others;   /* launches of other graphs */
    long runs;     /* of captured ops */
} truth;

static void say(const struct test *t)
{
    if (!t->job.rank)
        printf("captured %ld launches %ld others %ld runs %ld\n",
               truth.captured, truth.launches, truth.others, truth.runs);
}

static void begin(cudaStream_t s, enum cudaStreamCaptureMode mode)
{
    check_cuda(cudaStreamBeginCapture(s, mode), "begin");
}

static cudaGraph_t end(cudaStream_t s)
{
    cudaGraph_t graph;

    check_cuda(cudaStreamEndCapture(s, &graph), "end");
    return graph;
}

static void reduce_on(struct test *t, cudaStream_t s)
{
    check_nccl(
        ncclAllReduce(t->d, t->d, COUNT, ncclInt32, ncclSum, t->world, s),
        "captured");
    truth.captured++;
}

static cudaGraph_t capture(struct test *t, int nops)
{
    begin(t->stream, cudaStreamCaptureModeGlobal);
    for (int i = 0; i < nops; i++)
        reduce_on(t, t->stream);
    return end(t->stream);
}

static cudaGraphExec_t instantiate(cudaGraph_t graph)
{
    cudaGraphExec_t exec;

    check_cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    return exec;
}

static void launched(int nops)
{
    truth.launches++;
    truth.runs += nops;
}

static void launch(struct test *t, cudaGraphExec_t exec, int nops)
{
    check_cuda(cudaGraphLaunch(exec, t->stream), "launch");
    launched(nops);
}

static void no_error(const char *what)
{
    expect(cudaGetLastError() == cudaSuccess, what);
}

/* ---- one graph, many streams ---- */

static _Atomic int calls;

static void count_call(void *unused)
{
    (void)unused;
    calls++;
}

/* A fork to another stream, a bracket, and a call that counts. */
static cudaGraphExec_t capture_fork(struct test *t, cudaStream_t side)
{
    int next = (t->job.rank + 1) % t->job.world;
    int last = (t->job.rank + t->job.world - 1) % t->job.world;
    int *more = t->d + COUNT / 2;
    cudaEvent_t fork;
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    check_cuda(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming),
               "event");
    begin(t->stream, cudaStreamCaptureModeGlobal);
    check_nccl(
        ncclAllReduce(t->d, t->d, 100, ncclInt32, ncclSum, t->world, t->stream),
        "captured");
    check_cuda(cudaEventRecord(fork, t->stream), "record");
    check_cuda(cudaStreamWaitEvent(side, fork, 0), "fork");
    check_nccl(ncclGroupStart(), "GroupStart");
    check_nccl(ncclSend(t->d, 100, ncclInt32, next, t->world, side), "send");
    check_nccl(ncclRecv(more, 100, ncclInt32, last, t->world, side), "recv");
    check_nccl(ncclGroupEnd(), "GroupEnd");
    check_cuda(cudaLaunchHostFunc(side, count_call, NULL), "host function");
    check_cuda(cudaEventRecord(fork, side), "record");
    check_cuda(cudaStreamWaitEvent(t->stream, fork, 0), "join");
    graph = end(t->stream);
    exec = instantiate(graph);
    check_cuda(cudaGraphDestroy(graph), "destroy");
    check_cuda(cudaEventDestroy(fork), "destroy");
    truth.captured += 3;
    return exec;
}

static void case_replay(struct test *t)
{
    enum { STREAMS = 5, REPLAYS = 100 };
    cudaStream_t streams[STREAMS];
    cudaGraphExec_t exec;
    int h[COUNT];

    for (int i = 0; i < STREAMS; i++)
        check_cuda(cudaStreamCreateWithFlags(&streams[i],
                                             i % 2 ? cudaStreamNonBlocking : 0),
                   "stream");
    exec = capture_fork(t, streams[0]);
    for (int i = 0; i < REPLAYS; i++) {
        cudaStream_t s = i % 7 ? streams[i % STREAMS] : NULL;

        set(t, i);
        sync(t);
        check_cuda(cudaGraphLaunch(exec, s), "launch");
        launched(3);
        check_cuda(cudaStreamSynchronize(s), "synchronize");
        check_cuda(cudaMemcpy(h, t->d, sizeof(h), cudaMemcpyDeviceToHost),
                   "copy");
        expect(h[0] == i * t->job.world && h[99] == h[0], "sum");
        expect(h[COUNT / 2] == h[0], "from the neighbour");
        expect(h[100] == i, "no more than that");
    }
    expect(calls == REPLAYS, "each ran once");
    check_cuda(cudaGraphExecDestroy(exec), "destroy");
    for (int i = 0; i < STREAMS; i++)
        check_cuda(cudaStreamDestroy(streams[i]), "destroy");
    no_error("replay");
}

/* ---- handles that come again ---- */

static void case_handles(struct test *t)
{
    enum { ROUNDS = 60 };

    for (int i = 0; i < ROUNDS; i++) {
        int nops = i % 4; /* some hold none */
        cudaGraph_t graph = capture(t, nops);
        cudaGraphExec_t exec = instantiate(graph);
        cudaGraphExec_t again;

        check_cuda(cudaGraphDestroy(graph), "destroy");
        for (int k = 0; k < i % 5; k++) {
            if (nops)
                launch(t, exec, nops);
            else
                check_cuda(cudaGraphLaunch(exec, t->stream), "launch");
            truth.others += !nops;
        }
        sync(t);
        check_cuda(cudaGraphExecDestroy(exec), "destroy");
        /* A graph of nobody's ops, likely at the same address. */
        check_cuda(cudaGraphCreate(&graph, 0), "create");
        again = instantiate(graph);
        check_cuda(cudaGraphLaunch(again, t->stream), "launch");
        truth.others++;
        check_cuda(cudaGraphDestroy(graph), "destroy");
        check_cuda(cudaGraphExecDestroy(again), "destroy");
    }
    sync(t);
    no_error("handles");
}

/* ---- every call that makes or launches a graph ---- */

static void launch_by_all(struct test *t, cudaGraphExec_t exec, int nops)
{
    check_cuda(cudaGraphLaunch(exec, t->stream), "launch");
    check_cuda(cudaGraphLaunch_ptsz(exec, NULL), "launch");
    check_cuda(cudaStreamSynchronize_ptsz(NULL), "synchronize");
    expect(!cuGraphLaunch(exec, t->stream), "launch");
    expect(!cuGraphLaunch_ptsz(exec, t->stream), "launch");
    for (int i = 0; i < 4; i++)
        launched(nops);
    expect(cudaGraphLaunch(NULL, t->stream) != cudaSuccess, "no graph");
    cudaGetLastError();
    truth.others++;
    sync(t);
}

static void instantiate_by_all(struct test *t, cudaGraph_t graph, int nops)
{
    cudaGraphInstantiateParams params = {.flags = 0};
    CUDA_GRAPH_INSTANTIATE_PARAMS driver_params = {.flags = 0};
    cudaGraphExec_t exec[5];
    cudaGraphNode_t node = (cudaGraphNode_t)&params;
    char text[8] = "unset";

    check_cuda(cudaGraphInstantiateWithFlags(&exec[0], graph, 0), "flags");
    check_cuda(cudaGraphInstantiateWithParams(&exec[1], graph, &params),
               "params");
    expect(!cuGraphInstantiateWithFlags(&exec[2], graph, 0), "flags");
    expect(!cuGraphInstantiateWithParams(&exec[3], graph, &driver_params),
           "params");
    expect(!cuGraphInstantiate_v2(&exec[4], graph, &node, text, sizeof(text)),
           "five arguments");
    expect(!node && !*text, "all of them arrive");
    for (int i = 0; i < 5; i++) {
        launch(t, exec[i], nops);
        sync(t);
        check_cuda(cudaGraphExecDestroy(exec[i]), "destroy");
    }
}

/* whole: two, a clone of one, and what is captured into it at last. */
static void join_by_all(struct test *t, cudaGraph_t two)
{
    cudaGraph_t one = capture(t, 1), whole, clone, same;
    cudaGraphExec_t inner = instantiate(two), exec;
    cudaGraphExecUpdateResultInfo info;
    cudaGraphNode_t node;

    check_cuda(cudaGraphCreate(&whole, 0), "create");
    check_cuda(cudaGraphClone(&clone, one), "clone");
    check_cuda(cudaGraphDestroy(one), "destroy");
    check_cuda(cudaGraphAddChildGraphNode(&node, whole, NULL, 0, two), "child");
    exec = instantiate(whole);
    launch(t, exec, 2);
    sync(t);
    check_cuda(cudaGraphExecDestroy(exec), "destroy");
    check_cuda(cudaGraphAddChildGraphNode(&node, whole, &node, 1, clone),
               "child");
    check_cuda(cudaStreamBeginCaptureToGraph(t->stream, whole, &node, NULL, 1,
                                             cudaStreamCaptureModeGlobal),
               "begin");
    reduce_on(t, t->stream);
    check_cuda(cudaGraphLaunch(inner, t->stream), "a launch in a capture");
    same = end(t->stream);
    expect(same == whole, "the same graph");
    exec = instantiate(whole);
    launch_by_all(t, exec, 2 + 1 + 1 + 2);
    check_cuda(cudaGraphExecUpdate(exec, whole, &info), "update");
    launch(t, exec, 6);
    sync(t);
    check_cuda(cudaGraphDestroy(whole), "destroy");
    one = capture(t, 2);
    check_cuda(cudaGraphExecUpdate(inner, one, &info), "update");
    launch(t, inner, 2);
    sync(t);
    check_cuda(cudaGraphDestroy(one), "destroy");
    check_cuda(cudaGraphDestroy(clone), "destroy");
    check_cuda(cudaGraphExecDestroy(exec), "destroy");
    check_cuda(cudaGraphExecDestroy(inner), "destroy");
}

static void per_thread(struct test *t)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    check_cuda(cudaStreamBeginCapture_ptsz(NULL, cudaStreamCaptureModeGlobal),
               "begin");
    reduce_on(t, cudaStreamPerThread);
    check_cuda(cudaStreamEndCapture_ptsz(NULL, &graph), "end");
    exec = instantiate(graph);
    check_cuda(cudaGraphDestroy(graph), "destroy");
    check_cuda(cudaGraphLaunch_ptsz(exec, NULL), "launch");
    launched(1);
    check_cuda(cudaStreamSynchronize_ptsz(NULL), "synchronize");
    check_cuda(cudaGraphExecDestroy(exec), "destroy");
}

static void case_calls(struct test *t)
{
    cudaGraph_t graph = capture(t, 2);
    cudaGraphExec_t exec = instantiate(graph);

    launch_by_all(t, exec, 2);
    check_cuda(cudaGraphExecDestroy(exec), "destroy");
    instantiate_by_all(t, graph, 2);
    join_by_all(t, graph);
    check_cuda(cudaGraphDestroy(graph), "destroy");
    per_thread(t);
    no_error("calls");
}

/* ---- captures that fail ---- */

/* A wait ends the capture; its graph's address may come again at once. */
static void fail_capture(struct test *t)
{
    cudaGraph_t graph;

    begin(t->stream, cudaStreamCaptureModeGlobal);
    reduce_on(t, t->stream);
    expect(cudaStreamSynchronize(t->stream) ==
               cudaErrorStreamCaptureUnsupported,
           "a wait in a capture");
    expect(ncclAllReduce(t->d, t->d, COUNT, ncclInt32, ncclSum, t->world,
                         t->stream) != ncclSuccess,
           "an op in a capture that failed");
    expect(cudaStreamEndCapture(t->stream, &graph) ==
                   cudaErrorStreamCaptureInvalidated &&
               !graph,
           "no graph");
    cudaGetLastError();
}

static void case_failed(struct test *t)
{
    for (int i = 0; i < 10; i++) {
        cudaGraph_t graph;
        cudaGraphExec_t exec;

        fail_capture(t);
        graph = capture(t, 0);
        exec = instantiate(graph);
        check_cuda(cudaGraphLaunch(exec, t->stream), "launch");
        truth.others++;
        sync(t);
        check_cuda(cudaGraphDestroy(graph), "destroy");
        check_cuda(cudaGraphExecDestroy(exec), "destroy");
    }
    no_error("failed");
}

/* ---- nothing of ours may end a capture ---- */

/* Context switches of the thread with that name; -1: there is none. */
static long switches_of(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    long found = -1;

    while (tasks && found < 0 && (task = readdir(tasks))) {
        char path[300], line[128];
        int same = 0;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/self/task/%s/status", task->d_name);
        file = fopen(path, "r");
        while (file && fgets(line, sizeof(line), file)) {
            char word[64];

            if (sscanf(line, "Name: %63s", word) == 1)
                same = !strcmp(word, name);
            if (same)
                sscanf(line, "voluntary_ctxt_switches: %ld", &found);
        }
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return found;
}

/* Until the recorder's thread, if there is one, has looked several times. */
static void let_others_work(void)
{
    long before = switches_of("commtrace");

    while (before >= 0 && switches_of("commtrace") < before + 10)
        sleep_ms(1);
}

static _Atomic int held;

static void hold(void *unused)
{
    (void)unused;
    while (held)
        sleep_ms(1);
}

/* While ops before it are waited for, and others come on another stream. */
static void capture_beside_work(struct test *t, cudaStream_t other,
                                enum cudaStreamCaptureMode mode)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    held = 1;
    check_cuda(cudaLaunchHostFunc(other, hold, NULL), "host function");
    check_nccl(
        ncclAllReduce(t->d, t->d, 10, ncclInt32, ncclSum, t->world, other),
        "on another stream");
    begin(t->stream, mode);
    let_others_work();
    reduce_on(t, t->stream);
    check_nccl(
        ncclAllReduce(t->d, t->d, 10, ncclInt32, ncclSum, t->world, other),
        "on another stream");
    let_others_work();
    graph = end(t->stream);
    held = 0;
    check_cuda(cudaStreamSynchronize(other), "synchronize");
    exec = instantiate(graph);
    check_cuda(cudaGraphDestroy(graph), "destroy");
    launch(t, exec, 1);
    sync(t);
    check_cuda(cudaGraphExecDestroy(exec), "destroy");
}

static void case_modes(struct test *t)
{
    cudaStream_t other;

    check_cuda(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking),
               "stream");
    for (int i = 0; i < 3; i++) {
        capture_beside_work(t, other, cudaStreamCaptureModeGlobal);
        capture_beside_work(t, other, cudaStreamCaptureModeThreadLocal);
        capture_beside_work(t, other, cudaStreamCaptureModeRelaxed);
    }
    check_cuda(cudaStreamDestroy(other), "destroy");
    no_error("modes");
}

/* ---- several threads ---- */

enum { THREADS = 4, THREAD_ROUNDS = 15, THREAD_LAUNCHES = 8 };

struct worker {
    pthread_t thread;
    ncclComm_t comm;
    int device;
    int *d;
};

/* Makes, launches and ends graphs on a stream of its own. */
static void *work(void *arg)
{
    struct worker *w = arg;
    cudaStream_t s;

    check_cuda(cudaSetDevice(w->device), "device");
    check_cuda(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "stream");
    for (int i = 0; i < THREAD_ROUNDS; i++) {
        cudaGraphExec_t exec;
        cudaGraph_t graph;

        begin(s, cudaStreamCaptureModeThreadLocal);
        check_nccl(ncclAllReduce(w->d, w->d, 8, ncclInt32, ncclSum, w->comm, s),
                   "captured");
        graph = end(s);
        exec = instantiate(graph);
        check_cuda(cudaGraphDestroy(graph), "destroy");
        for (int k = 0; k < THREAD_LAUNCHES; k++)
            check_cuda(cudaGraphLaunch(exec, s), "launch");
        check_cuda(cudaStreamSynchronize(s), "synchronize");
        check_cuda(cudaGraphExecDestroy(exec), "destroy");
    }
    check_cuda(cudaStreamDestroy(s), "destroy");
    return NULL;
}

static void case_threads(struct test *t)
{
    struct worker workers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.d = t->d + 8 * i};
        check_cuda(cudaGetDevice(&workers[i].device), "device");
        check_nccl(
            ncclCommSplit(t->world, 0, t->job.rank, &workers[i].comm, NULL),
            "split");
    }
    for (int i = 0; i < THREADS; i++)
        expect(!pthread_create(&workers[i].thread, NULL, work, &workers[i]),
               "thread");
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        check_nccl(ncclCommDestroy(workers[i].comm), "CommDestroy");
    }
    truth.captured += THREADS * THREAD_ROUNDS;
    for (int i = 0; i < THREADS * THREAD_ROUNDS * THREAD_LAUNCHES; i++)
        launched(1);
    no_error("threads");
}

/* ---- launches that nobody sees ---- */

typedef CUresult launch_fn(CUgraphExec exec, CUstream stream);

static void case_blind(struct test *t)
{
    cudaGraph_t graph = capture(t, 2);
    cudaGraphExec_t exec = instantiate(graph);
    CUdriverProcAddressQueryResult status;
    void *found;
    launch_fn *by_address;

    expect(!cuGetProcAddress("cuGraphLaunch", &found, 12000,
                             CU_GET_PROC_ADDRESS_DEFAULT, &status),
           "cuGetProcAddress");
    *(void **)&by_address = found;
    for (int i = 0; i < 20; i++)
        expect(!by_address(exec, t->stream), "launch");
    sync(t);
    check_cuda(cudaGraphDestroy(graph), "destroy");
    check_cuda(cudaGraphExecDestroy(exec), "destroy");
    no_error("blind");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"replay", case_replay},   {"handles", case_handles},
        {"calls", case_calls},     {"failed", case_failed},
        {"modes", case_modes},     {"blind", case_blind},
        {"threads", case_threads},
    };
    struct test t = test_begin(argc, argv);

    barrier(&t);
    run_case(&t, cases, sizeof(cases) / sizeof(*cases), argv[1]);
    barrier(&t);
    say(&t);
    test_end(&t);
    return 0;
}
