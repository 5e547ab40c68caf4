/*
 * What PyTorch needs of the stand-in driver and runtime beyond streams and
 * events: virtual memory, knowledge of addresses, kernels of fat binaries,
 * capture and graphs with their rules, user objects, streams per thread.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime.h>

static void expect(int right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "error: %s\n", what);
    exit(1);
}

static void cuda(cudaError_t error, const char *what)
{
    if (error)
        fprintf(stderr, "%s\n", cudaGetErrorString(error));
    expect(!error, what);
}

static void cu(CUresult result, const char *what)
{
    cuda((cudaError_t)(int)result, what);
}

static void wait_ms(void *ms)
{
    long n = *(const long *)ms;
    struct timespec t = {.tv_sec = n / 1000, .tv_nsec = n % 1000 * 1000000};

    nanosleep(&t, NULL);
}

static void add_one(void *counter)
{
    atomic_fetch_add((_Atomic int *)counter, 1);
}

/* ---- memory ---- */

static const CUmemAllocationProp on_first = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
};

static size_t device_memory(void)
{
    size_t available;
    size_t total;

    cu(cuMemGetInfo(&available, &total), "info");
    return total - available;
}

static CUdeviceptr map(CUdeviceptr at, size_t bytes,
                       CUmemGenericAllocationHandle handle)
{
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                              CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    cu(cuMemMap(at, bytes, 0, handle, 0), "map");
    cu(cuMemSetAccess(at, bytes, &access, 1), "access");
    return at;
}

/* Memory is mapped twice through an exported handle, and outlives the handle;
 * expandable segments live on this. */
static void test_vmm(void)
{
    CUmemGenericAllocationHandle handle;
    CUmemGenericAllocationHandle other;
    size_t before = device_memory();
    CUdeviceptr range;
    CUdeviceptr second;
    size_t unit;
    int fd;

    cu(cuMemGetAllocationGranularity(&unit, &on_first,
                                     CU_MEM_ALLOC_GRANULARITY_MINIMUM),
       "granularity");
    cu(cuMemAddressReserve(&range, 4 * unit, 0, 0, 0), "reserve");
    expect(device_memory() == before, "addresses are no memory");
    expect(range % unit == 0, "aligned");
    cu(cuMemCreate(&handle, unit, &on_first, 0), "create");
    expect(device_memory() == before + unit, "memory is counted");
    expect(cuMemMap(range + 4 * unit, unit, 0, handle, 0) != CUDA_SUCCESS,
           "outside of the range");
    second = range + 2 * unit;
    map(range, unit, handle);
    cu(cuMemExportToShareableHandle(
           &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
       "export");
    cu(cuMemImportFromShareableHandle(&other, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
       "import");
    close(fd);
    map(second, unit, other);
    cu(cuMemRelease(handle), "release");
    cu(cuMemRelease(other), "release");
    cu(cuMemsetD32(range, 7, 3), "set");
    expect(((int *)(uintptr_t)second)[2] == 7, "the same memory twice");
    cu(cuMemUnmap(range, unit), "unmap");
    cu(cuMemUnmap(second, unit), "unmap");
    expect(cuMemUnmap(second, unit) != CUDA_SUCCESS, "unmapped before");
    cu(cuMemAddressFree(range, 4 * unit), "free");
    expect(device_memory() == before, "all is back");
}

static void test_pointers(void)
{
    struct cudaPointerAttributes a;
    CUdeviceptr base;
    size_t bytes;
    char *device;
    char *locked;
    char *own = malloc(100);

    cuda(cudaMalloc((void **)&device, 1000), "malloc");
    bytes = device_memory();
    cuda(cudaHostAlloc((void **)&locked, 1000, 0), "host");
    expect(device_memory() == bytes, "host memory is no device memory");
    cuda(cudaPointerGetAttributes(&a, device + 999), "device");
    expect(a.type == cudaMemoryTypeDevice && a.device == 0, "device");
    expect(a.devicePointer == device + 999 && !a.hostPointer, "addresses");
    cuda(cudaPointerGetAttributes(&a, locked + 10), "host");
    expect(a.type == cudaMemoryTypeHost && a.hostPointer == locked + 10,
           "host");
    cuda(cudaPointerGetAttributes(&a, own), "pageable");
    expect(a.type == cudaMemoryTypeUnregistered, "pageable");
    cuda(cudaHostRegister(own, 100, 0), "register");
    expect(cudaHostRegister(own + 50, 10, 0) ==
               cudaErrorHostMemoryAlreadyRegistered,
           "twice");
    cuda(cudaPointerGetAttributes(&a, own + 99), "registered");
    expect(a.type == cudaMemoryTypeHost, "registered");
    cuda(cudaHostUnregister(own), "unregister");
    expect(cudaHostUnregister(own) == cudaErrorHostMemoryNotRegistered,
           "unregistered");
    cu(cuMemGetAddressRange(&base, &bytes, (uintptr_t)device + 5), "range");
    expect(base == (uintptr_t)device && bytes == 1000, "range");
    expect(cudaFree(locked) == cudaSuccess, "free finds its block");
    expect(cudaFree(device + 1) == cudaErrorInvalidValue, "not the start");
    cuda(cudaFree(device), "free");
    free(own);
    cudaGetLastError();
}

/* What was in pageable memory at the call arrives, whatever comes after. */
static void test_copies(void)
{
    static long ms = 50;
    int own[6] = {1, 2, 3, 4, 5, 6};
    int back[4] = {0};
    cudaStream_t s;
    int *d;

    cuda(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "stream");
    cuda(cudaMalloc((void **)&d, sizeof(own)), "malloc");
    cuda(cudaLaunchHostFunc(s, wait_ms, &ms), "host function");
    cuda(cudaMemcpyAsync(d, own, sizeof(own), cudaMemcpyHostToDevice, s),
         "copy");
    memset(own, 0, sizeof(own));
    expect(cudaStreamQuery(s) == cudaErrorNotReady, "still waiting");
    /* The second column of three rows. */
    cuda(cudaMemcpy2DAsync(back, sizeof(int), d + 1, 2 * sizeof(int),
                           sizeof(int), 3, cudaMemcpyDeviceToHost, s),
         "copy");
    expect(back[0] == 2 && back[1] == 4 && back[2] == 6 && !back[3],
           "there at the return");
    cu(cuMemsetD16Async((uintptr_t)d, 0x1234, 3, s), "set");
    cu(cuStreamWriteValue32(s, (uintptr_t)(d + 4), 99, 0), "write");
    cuda(cudaMemcpyAsync(own, d, sizeof(own), cudaMemcpyDeviceToHost, s),
         "copy");
    expect(own[0] == 0x12341234 && own[1] == 0x1234 && own[2] == 3, "set");
    expect(own[4] == 99 && own[5] == 6, "written");
    cuda(cudaFree(d), "free");
    cuda(cudaStreamDestroy(s), "destroy");
}

/* ---- kernels ---- */

void **__cudaRegisterFatBinary(void *fatCubin);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int threadLimit, void *tid,
                            void *bid, void *blockDim, void *gridDim,
                            int *warpSize);
void __cudaRegisterVar(void **handle, char *host, char *device,
                       const char *name, int ext, size_t bytes, int constant,
                       int global);

#define KERNELS 40000

static void test_kernels(void)
{
    static char host[KERNELS];
    static char variable;
    static char name[] = "kernel";
    void **binary = __cudaRegisterFatBinary(NULL);
    struct cudaFuncAttributes attributes;
    const char *found;
    cudaFunction_t f;
    dim3 one = {1, 1, 1};
    dim3 none = {0, 1, 1};
    void *p;

    for (int i = 0; i < KERNELS; i++)
        __cudaRegisterFunction(binary, &host[i], name, name, -1, NULL, NULL,
                               NULL, NULL, NULL);
    __cudaRegisterVar(binary, &variable, name, "variable", 0, 8, 0, 0);
    __cudaRegisterFatBinaryEnd(binary);
    cuda(cudaLaunchKernel(&host[KERNELS - 1], one, one, NULL, 0, NULL),
         "launch");
    expect(cudaLaunchKernel(&host[0], none, one, NULL, 0, NULL) ==
               cudaErrorInvalidValue,
           "an empty grid");
    expect(cudaLaunchKernel(name, one, one, NULL, 0, NULL) ==
               cudaErrorInvalidDeviceFunction,
           "nobody registered it");
    cuda(cudaGetFuncBySymbol(&f, &host[7]), "function");
    cu(cuFuncGetName(&found, f), "name");
    expect(!strcmp(found, "kernel"), "name");
    cuda(cudaFuncGetAttributes(&attributes, &host[7]), "attributes");
    expect(attributes.maxThreadsPerBlock == 1024, "attributes");
    cuda(cudaGetSymbolAddress(&p, &variable), "variable");
    memset(p, 0, 8);
    cuda(cudaDeviceSynchronize(), "synchronize");
    __cudaUnregisterFatBinary(binary);
    expect(cudaLaunchKernel(&host[0], one, one, NULL, 0, NULL) ==
               cudaErrorInvalidDeviceFunction,
           "gone with its binary");
    cudaGetLastError();
}

/* ---- capture and graphs ---- */

static void begin(cudaStream_t s, enum cudaStreamCaptureMode mode)
{
    cuda(cudaStreamBeginCapture(s, mode), "begin");
}

static enum cudaStreamCaptureStatus status_of(cudaStream_t s)
{
    enum cudaStreamCaptureStatus status;

    cuda(cudaStreamIsCapturing(s, &status), "status");
    return status;
}

static void expect_invalid(cudaStream_t s, const char *what)
{
    cudaGraph_t graph = (cudaGraph_t)&graph;

    expect(status_of(s) == cudaStreamCaptureStatusInvalidated, what);
    expect(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated,
           what);
    expect(!graph && status_of(s) == cudaStreamCaptureStatusNone, what);
    cudaGetLastError();
}

/* The default mode forbids what may wait, on any stream of any thread. */
static void test_capture_rules(void)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaEvent_t before;
    cudaEvent_t event;
    cudaStream_t s;
    cudaGraph_t graph;
    void *p;

    cuda(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "stream");
    cuda(cudaEventCreate(&event), "event");
    cuda(cudaEventCreate(&before), "event");
    cuda(cudaEventRecord(before, s), "record");
    cuda(cudaStreamSynchronize(s), "synchronize");
    expect(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal) ==
               cudaErrorStreamCaptureUnsupported,
           "the default stream");
    begin(s, cudaStreamCaptureModeGlobal);
    expect(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal) ==
               cudaErrorIllegalState,
           "twice");
    expect(cudaMalloc(&p, 1) == cudaErrorStreamCaptureUnsupported, "malloc");
    expect_invalid(s, "an allocation ends a capture");
    begin(s, cudaStreamCaptureModeGlobal);
    expect(cudaStreamSynchronize(s) == cudaErrorStreamCaptureUnsupported,
           "synchronize");
    expect_invalid(s, "a wait ends a capture");
    begin(s, cudaStreamCaptureModeGlobal);
    expect(cudaStreamWaitEvent(s, before, 0) == cudaErrorStreamCaptureIsolation,
           "isolation");
    expect_invalid(s, "work outside of it ends a capture");
    begin(s, cudaStreamCaptureModeGlobal);
    cuda(cudaThreadExchangeStreamCaptureMode(&mode), "mode");
    expect(mode == cudaStreamCaptureModeGlobal, "the default mode");
    cuda(cudaMalloc(&p, 1), "a relaxed thread may");
    cuda(cudaEventQuery(before), "a relaxed thread may");
    cuda(cudaThreadExchangeStreamCaptureMode(&mode), "mode");
    cuda(cudaEventRecord(event, s), "record");
    expect(cudaEventQuery(event) == cudaErrorCapturedEvent, "captured");
    cuda(cudaStreamEndCapture(s, &graph), "end");
    cuda(cudaGraphDestroy(graph), "destroy");
    cudaGetLastError();
    cuda(cudaFree(p), "free");
    cuda(cudaEventDestroy(event), "destroy");
    cuda(cudaEventDestroy(before), "destroy");
    cuda(cudaStreamDestroy(s), "destroy");
}

/* Captured work runs at every launch, also after its graph is destroyed; the
 * user object goes with the last of them. */
static void test_graph(void)
{
    static _Atomic int calls;
    static _Atomic int released;
    cudaUserObject_t object;
    unsigned long long id = 0;
    enum cudaStreamCaptureStatus status;
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    cudaStream_t s;
    size_t nodes = 0;
    int *d;
    int h = 5;

    cuda(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "stream");
    cuda(cudaMalloc((void **)&d, 2 * sizeof(int)), "malloc");
    begin(s, cudaStreamCaptureModeThreadLocal);
    cuda(cudaStreamGetCaptureInfo(s, &status, &id, &graph, NULL, NULL, NULL),
         "info");
    expect(status == cudaStreamCaptureStatusActive && id && graph, "info");
    cuda(cudaMemcpyAsync(d, &h, sizeof(h), cudaMemcpyHostToDevice, s), "copy");
    cuda(cudaMemcpyAsync(d + 1, d, sizeof(h), cudaMemcpyDeviceToDevice, s),
         "copy");
    cuda(cudaLaunchHostFunc(s, add_one, (void *)&calls), "host function");
    cuda(cudaStreamEndCapture(s, &graph), "end");
    expect(calls == 0, "nothing has run");
    cuda(cudaGraphGetNodes(graph, NULL, &nodes), "nodes");
    expect(nodes == 3, "nodes");
    cuda(cudaUserObjectCreate(&object, (void *)&released, add_one, 1,
                              CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
         "object");
    cuda(cudaGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE),
         "retain");
    cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    cuda(cudaGraphDestroy(graph), "destroy");
    for (int i = 0; i < 100; i++)
        cuda(cudaGraphLaunch(exec, s), "launch");
    cuda(cudaGraphExecDestroy(exec), "destroy while it runs");
    cuda(cudaStreamSynchronize(s), "synchronize");
    expect(calls == 100 && released == 1, "ran, then went");
    cuda(cudaMemcpy(&h, d + 1, sizeof(h), cudaMemcpyDeviceToHost), "copy");
    expect(h == 5, "copied");
    cuda(cudaFree(d), "free");
    cuda(cudaStreamDestroy(s), "destroy");
}

static cudaGraph_t captured_call(cudaStream_t s, void *calls)
{
    cudaGraph_t graph;

    begin(s, cudaStreamCaptureModeGlobal);
    cuda(cudaLaunchHostFunc(s, add_one, calls), "host function");
    cuda(cudaStreamEndCapture(s, &graph), "end");
    return graph;
}

static void launch_all(cudaGraphExec_t exec, cudaStream_t s, int n)
{
    for (int i = 0; i < n; i++)
        cuda(cudaGraphLaunch(exec, s), "launch");
    cuda(cudaStreamSynchronize(s), "synchronize");
}

/* Copies hold what was there when they were made. */
static void test_graph_copies(void)
{
    static _Atomic int a;
    static _Atomic int b;
    cudaGraphExecUpdateResultInfo info;
    cudaGraphExec_t exec;
    cudaGraphExec_t both;
    cudaGraph_t first;
    cudaGraph_t second;
    cudaGraph_t whole;
    cudaGraph_t clone;
    cudaGraphNode_t node;
    cudaStream_t s;
    size_t nodes = 0;

    cuda(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "stream");
    first = captured_call(s, (void *)&a);
    second = captured_call(s, (void *)&b);
    cuda(cudaGraphInstantiate(&exec, first, 0), "instantiate");
    cuda(cudaGraphClone(&clone, first), "clone");
    cuda(cudaGraphDestroy(first), "destroy");
    launch_all(exec, s, 3);
    expect(a == 3 && b == 0, "the first");
    cuda(cudaGraphExecUpdate(exec, second, &info), "update");
    launch_all(exec, s, 4);
    expect(a == 3 && b == 4, "the second");
    cuda(cudaGraphCreate(&whole, 0), "create");
    cuda(cudaGraphAddChildGraphNode(&node, whole, NULL, 0, clone), "child");
    cuda(cudaGraphAddChildGraphNode(&node, whole, &node, 1, second), "child");
    expect(cudaGraphExecUpdate(exec, whole, &info) ==
                   cudaErrorGraphExecUpdateFailure &&
               info.result == cudaGraphExecUpdateErrorTopologyChanged,
           "another graph");
    cudaGetLastError();
    cuda(cudaGraphInstantiate(&both, whole, 0), "instantiate");
    cuda(cudaStreamBeginCaptureToGraph(s, whole, NULL, NULL, 0,
                                       cudaStreamCaptureModeGlobal),
         "begin");
    cuda(cudaGraphLaunch(both, s), "a launch in a capture");
    cuda(cudaStreamEndCapture(s, &first), "end");
    expect(first == whole, "the same graph");
    cuda(cudaGraphGetNodes(whole, NULL, &nodes), "nodes");
    expect(nodes == 3, "three children");
    expect(a == 3 && b == 4, "nothing has run");
    launch_all(both, s, 1);
    expect(a == 4 && b == 5, "as it was");
    cuda(cudaGraphExecDestroy(both), "destroy");
    cuda(cudaGraphInstantiate(&both, whole, 0), "instantiate");
    cuda(cudaGraphDestroy(whole), "destroy");
    cuda(cudaGraphDestroy(clone), "destroy");
    cuda(cudaGraphDestroy(second), "destroy");
    launch_all(both, s, 10);
    expect(a == 24 && b == 25, "both, twice");
    cuda(cudaGraphExecDestroy(both), "destroy");
    cuda(cudaGraphExecDestroy(exec), "destroy");
    cuda(cudaStreamDestroy(s), "destroy");
}

/* ---- streams ---- */

static int threads(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    int n = 0;

    expect(file != NULL, "status");
    while (fgets(line, sizeof(line), file))
        sscanf(line, "Threads: %d", &n);
    fclose(file);
    return n;
}

static void test_many_streams(void)
{
    enum { N = 128 };
    cudaStream_t s[N];
    int before = threads();
    int priority;

    for (int i = 0; i < N; i++)
        cuda(cudaStreamCreateWithPriority(&s[i], cudaStreamNonBlocking, -i % 6),
             "stream");
    expect(threads() <= before, "an idle stream has no thread");
    cuda(cudaStreamGetPriority(s[5], &priority), "priority");
    expect(priority == -5, "priority");
    for (int i = 0; i < N; i++)
        cuda(cudaStreamDestroy(s[i]), "destroy");
}

typedef CUresult synchronize_fn(CUstream stream);

static void *other_thread(void *arg)
{
    static long ms = 100;
    unsigned long long *id = arg;

    cuda(cudaSetDevice(0), "device");
    cu(cuStreamGetId(CU_STREAM_PER_THREAD, id), "id");
    cu(cuLaunchHostFunc(CU_STREAM_PER_THREAD, wait_ms, &ms), "host function");
    return NULL;
}

static void test_per_thread(void)
{
    CUdriverProcAddressQueryResult found;
    synchronize_fn *synchronize;
    unsigned long long other;
    unsigned long long mine;
    unsigned long long legacy;
    pthread_t thread;
    void *plain;
    void *own;

    cu(cuGetProcAddress("cuStreamSynchronize", &plain, 13000,
                        CU_GET_PROC_ADDRESS_DEFAULT, &found),
       "look-up");
    cu(cuGetProcAddress("cuStreamSynchronize", &own, 13000,
                        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &found),
       "look-up");
    expect(plain != own, "a function of its own");
    cu(cuStreamGetId(CU_STREAM_LEGACY, &legacy), "id");
    cu(cuStreamGetId(CU_STREAM_PER_THREAD, &mine), "id");
    expect(!pthread_create(&thread, NULL, other_thread, &other), "thread");
    pthread_join(thread, NULL);
    expect(mine != other && mine != legacy && other != legacy, "three streams");
    *(void **)&synchronize = own;
    cu(synchronize(NULL), "only mine, which is idle");
}

int main(void)
{
    cuda(cudaSetDevice(0), "device");
    test_vmm();
    test_pointers();
    test_copies();
    test_kernels();
    test_capture_rules();
    test_graph();
    test_graph_copies();
    test_many_streams();
    test_per_thread();
    cuda(cudaDeviceSynchronize(), "synchronize");
    return 0;
}
