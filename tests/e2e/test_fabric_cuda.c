/*
 * The stand-in driver, runtime and NVML in one process: streams are really
 * asynchronous and in order, events tell the time, errors are CUDA's.
 * Run with tests/fabric/machines/two_hosts.fabric.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda.h>
#include <cuda_runtime.h>
#include <nvml.h>

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

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void wait_ms(void *ms)
{
    long n = *(const long *)ms;
    struct timespec t = {.tv_sec = n / 1000, .tv_nsec = n % 1000 * 1000000};

    nanosleep(&t, NULL);
}

static void test_before_init(void)
{
    CUdevice device;
    int count;

    expect(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED,
           "not initialised yet");
    expect(cuInit(0) == CUDA_SUCCESS, "cuInit");
    expect(cuDeviceGetCount(&count) == CUDA_SUCCESS && count == 4,
           "four devices");
    expect(cuDeviceGet(&device, 4) == CUDA_ERROR_INVALID_DEVICE,
           "no fifth device");
}

static void test_contexts(void)
{
    CUcontext ctx = NULL;
    CUcontext other;
    CUevent event;
    CUdevice device = -1;

    expect(cuCtxGetCurrent(&ctx) == CUDA_SUCCESS && !ctx, "no context yet");
    expect(cuEventCreate(&event, 0) == CUDA_ERROR_INVALID_CONTEXT,
           "events need a context");
    expect(cuDevicePrimaryCtxRetain(&ctx, 1) == CUDA_SUCCESS, "retain");
    expect(cuCtxPushCurrent(ctx) == CUDA_SUCCESS, "push");
    expect(cuCtxGetDevice(&device) == CUDA_SUCCESS && device == 1, "device");
    expect(cuDevicePrimaryCtxRetain(&other, 2) == CUDA_SUCCESS, "retain");
    expect(cuCtxPushCurrent(other) == CUDA_SUCCESS, "push");
    expect(cuCtxPopCurrent(&other) == CUDA_SUCCESS, "pop");
    expect(cuCtxGetDevice(&device) == CUDA_SUCCESS && device == 1, "device");
    expect(cuCtxPopCurrent(NULL) == CUDA_SUCCESS, "pop");
    expect(cuCtxPopCurrent(NULL) == CUDA_ERROR_INVALID_CONTEXT, "empty");
    expect(cuDevicePrimaryCtxRelease(1) == CUDA_SUCCESS, "release");
    expect(cuDevicePrimaryCtxRelease(2) == CUDA_SUCCESS, "release");
    expect(cuDevicePrimaryCtxRelease(2) == CUDA_ERROR_INVALID_CONTEXT,
           "released once too often");
}

static void test_device(void)
{
    char name[64];
    char bus[32];
    CUuuid a;
    CUuuid b;
    int value;
    CUdevice device = -1;

    expect(!cuDeviceGetName(name, sizeof(name), 0) &&
               !strcmp(name, "Fabric H100"),
           "name");
    expect(!cuDeviceGetPCIBusId(bus, sizeof(bus), 2) &&
               !strcmp(bus, "0000:12:00.0"),
           "bus id");
    expect(!cuDeviceGetByPCIBusId(&device, bus) && device == 2, "by bus id");
    expect(!cuDeviceGetUuid(&a, 0) && !cuDeviceGetUuid(&b, 1) &&
               memcmp(&a, &b, sizeof(a)) != 0,
           "uuids differ");
    expect(!cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 3) &&
               value == 0x13,
           "attribute");
    expect(!cuDeviceGetP2PAttribute(
               &value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1) &&
               value == 1,
           "peer access");
}

static float elapsed(cudaEvent_t start, cudaEvent_t stop)
{
    float ms = NAN;

    cuda(cudaEventElapsedTime(&ms, start, stop), "elapsed");
    return ms;
}

static _Atomic int let_go;

static void wait_until_let_go(void *unused)
{
    static long ms = 1;

    (void)unused;
    while (!atomic_load(&let_go))
        wait_ms(&ms);
}

/* However late a busy machine lets a thread run: what an event waits for is
 * between its times, and they are between ours. */
static void test_events(void)
{
    static long ms = 50;
    cudaStream_t s;
    cudaEvent_t e[3];
    cudaEvent_t untimed;
    double before;
    float f;

    cuda(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "stream");
    for (int i = 0; i < 3; i++)
        cuda(cudaEventCreate(&e[i]), "event");
    cuda(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), "event");
    expect(cudaEventQuery(e[0]) == cudaSuccess, "never recorded is done");
    expect(cudaEventElapsedTime(&f, e[0], e[1]) ==
               cudaErrorInvalidResourceHandle,
           "never recorded has no time");
    before = now_ms();
    cuda(cudaEventRecord(e[0], s), "record");
    cuda(cudaLaunchHostFunc(s, wait_ms, &ms), "host function");
    cuda(cudaEventRecord(e[1], s), "record");
    cuda(cudaLaunchHostFunc(s, wait_until_let_go, NULL), "host function");
    cuda(cudaEventRecord(e[2], s), "record");
    cuda(cudaEventRecord(untimed, s), "record");
    expect(cudaEventQuery(e[2]) == cudaErrorNotReady, "not ready");
    expect(cudaEventElapsedTime(&f, e[0], e[2]) == cudaErrorNotReady,
           "no time yet");
    cuda(cudaEventSynchronize(e[1]), "synchronize");
    f = elapsed(e[0], e[1]);
    expect(f >= 50 && f <= now_ms() - before, "50 ms");
    expect(cudaStreamQuery(s) == cudaErrorNotReady, "still at work");
    wait_ms(&ms);
    atomic_store(&let_go, 1);
    cuda(cudaStreamSynchronize(s), "synchronize");
    expect(elapsed(e[1], e[2]) >= 50 && elapsed(e[0], e[2]) >= 100 &&
               elapsed(e[0], e[2]) <= now_ms() - before,
           "100 ms");
    expect(elapsed(e[2], e[0]) == -elapsed(e[0], e[2]), "negative time");
    expect(cudaEventElapsedTime(&f, e[0], untimed) ==
               cudaErrorInvalidResourceHandle,
           "an event without time");
    for (int i = 0; i < 3; i++)
        cuda(cudaEventDestroy(e[i]), "destroy");
    cuda(cudaEventDestroy(untimed), "destroy");
    cuda(cudaStreamDestroy(s), "destroy");
}

static _Atomic int counter;

static void count(void *want)
{
    expect(atomic_fetch_add(&counter, 1) == *(const int *)want,
           "host functions run in order");
}

/* A chain over three streams by events; calls return before work is done. */
static void test_order(void)
{
    enum { LINKS = 300 };
    static int number[LINKS];
    static long ms = 100;
    cudaStream_t s[3];
    cudaEvent_t done;
    double start = now_ms();

    cuda(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "event");
    for (int i = 0; i < 3; i++)
        cuda(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking), "stream");
    cuda(cudaLaunchHostFunc(s[0], wait_ms, &ms), "host function");
    for (int i = 0; i < LINKS; i++) {
        number[i] = i;
        cuda(cudaLaunchHostFunc(s[i % 3], count, &number[i]), "host function");
        cuda(cudaEventRecord(done, s[i % 3]), "record");
        cuda(cudaStreamWaitEvent(s[(i + 1) % 3], done, 0), "wait");
    }
    expect(now_ms() - start < 90, "calls return at once");
    cuda(cudaDeviceSynchronize(), "synchronize");
    expect(atomic_load(&counter) == LINKS, "all ran");
    expect(now_ms() - start > 99, "synchronize waits");
    cuda(cudaEventDestroy(done), "destroy");
    for (int i = 0; i < 3; i++)
        cuda(cudaStreamDestroy(s[i]), "destroy");
}

static void set_to(void *value)
{
    int *pair = value;

    pair[0] = pair[1];
}

/* The default stream and blocking streams take turns; others do not. */
static void test_default_stream(void)
{
    static long ms = 60;
    int *pair; /* page-locked: copies must not take it at the call */
    cudaStream_t blocking;
    cudaStream_t other;
    int *d;
    int *h;

    cuda(cudaStreamCreate(&blocking), "stream");
    cuda(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "stream");
    cuda(cudaMalloc((void **)&d, sizeof(int)), "malloc");
    cuda(cudaMallocHost((void **)&pair, 3 * sizeof(int)), "malloc");
    h = &pair[2];
    memcpy(pair, (int[3]){0, 7, 0}, 3 * sizeof(int));
    cuda(cudaLaunchHostFunc(blocking, wait_ms, &ms), "host function");
    cuda(cudaLaunchHostFunc(blocking, set_to, pair), "host function");
    cuda(
        cudaMemcpyAsync(d, &pair[0], sizeof(int), cudaMemcpyHostToDevice, NULL),
        "copy");
    cuda(cudaMemcpyAsync(h, d, sizeof(int), cudaMemcpyDeviceToHost, blocking),
         "copy");
    expect(cudaStreamQuery(other) == cudaSuccess, "the other one is idle");
    cuda(cudaStreamSynchronize(blocking), "synchronize");
    expect(*h == 7, "the default stream waits for the blocking one");
    cuda(cudaFree(d), "free");
    cuda(cudaFreeHost(pair), "free");
    cuda(cudaStreamDestroy(blocking), "destroy");
    cuda(cudaStreamDestroy(other), "destroy");
}

static void test_memory(void)
{
    unsigned char host[100];
    unsigned char *d;
    size_t before;
    size_t after;
    size_t total;

    cuda(cudaMemGetInfo(&before, &total), "info");
    cuda(cudaMalloc((void **)&d, sizeof(host)), "malloc");
    cuda(cudaMemGetInfo(&after, &total), "info");
    expect(before - after == sizeof(host), "accounted");
    cuda(cudaMemset(d, 5, sizeof(host)), "memset");
    cuda(cudaMemcpy(host, d, sizeof(host), cudaMemcpyDeviceToHost), "memcpy");
    expect(host[0] == 5 && host[99] == 5, "filled");
    cuda(cudaFree(d), "free");
    expect(cudaFree(host) == cudaErrorInvalidValue, "not device memory");
    expect(cudaGetLastError() == cudaErrorInvalidValue, "last error");
    expect(cudaGetLastError() == cudaSuccess, "reading clears it");
    cuda(cudaFree(NULL), "free nothing");
}

/* Destroying what is still in use is allowed; work is finished. */
static void test_early_destroy(void)
{
    static long ms = 30;
    static int pair[2] = {0, 3};
    cudaStream_t s;
    cudaEvent_t e;
    cudaEvent_t last;

    cuda(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "stream");
    cuda(cudaEventCreate(&e), "event");
    cuda(cudaEventCreate(&last), "event");
    cuda(cudaLaunchHostFunc(s, wait_ms, &ms), "host function");
    cuda(cudaEventRecord(e, s), "record");
    cuda(cudaLaunchHostFunc(s, set_to, pair), "host function");
    cuda(cudaEventRecord(last, s), "record");
    cuda(cudaEventDestroy(e), "destroy");
    cuda(cudaStreamDestroy(s), "destroy");
    cuda(cudaEventSynchronize(last), "synchronize");
    expect(pair[0] == 3, "queued work runs");
    cuda(cudaEventDestroy(last), "destroy");
}

static void test_wrong_device(void)
{
    cudaEvent_t e;
    cudaStream_t s;

    cuda(cudaSetDevice(1), "device");
    cuda(cudaEventCreate(&e), "event");
    cuda(cudaSetDevice(0), "device");
    cuda(cudaStreamCreate(&s), "stream");
    expect(cudaEventRecord(e, s) == cudaErrorInvalidResourceHandle,
           "event and stream of two devices");
    cuda(cudaEventDestroy(e), "destroy");
    cuda(cudaStreamDestroy(s), "destroy");
    expect(cudaSetDevice(9) == cudaErrorInvalidDevice, "no such device");
    cudaGetLastError();
}

static void test_lookup(void)
{
    void *fn = NULL;
    void *old = NULL;
    CUdriverProcAddressQueryResult found;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;

    expect(!cuGetProcAddress("cuEventElapsedTime", &fn, 13000, 0, &found) &&
               fn && !found,
           "look up");
    expect(!cuGetProcAddress("cuEventElapsedTime", &old, 11000, 0, NULL) &&
               old && old != fn,
           "look up of an old version");
    expect(cuGetProcAddress("cuNoSuchCall", &fn, 13000, 0, &found) ==
                   CUDA_ERROR_NOT_FOUND &&
               !fn && found == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
           "not there");
    expect(!cuThreadExchangeStreamCaptureMode(&mode) &&
               mode == CU_STREAM_CAPTURE_MODE_GLOBAL,
           "capture mode of the thread");
    expect(!cuThreadExchangeStreamCaptureMode(&mode) &&
               mode == CU_STREAM_CAPTURE_MODE_RELAXED,
           "capture mode of the thread");
    expect(!cuStreamIsCapturing(NULL, &status) &&
               status == CU_STREAM_CAPTURE_STATUS_NONE,
           "no capture");
}

static void test_nvml(void)
{
    unsigned int count = 0;
    nvmlDevice_t a = NULL;
    nvmlDevice_t b = NULL;
    nvmlGpuP2PStatus_t p2p;
    nvmlEnableState_t state;
    nvmlPciInfo_t pci;
    nvmlC2cModeInfo_v1_t c2c;
    nvmlGpuTopologyLevel_t level;
    nvmlGpuFabricInfoV_t info = {.version = nvmlGpuFabricInfo_v2};

    expect(nvmlDeviceGetCount_v2(&count) == NVML_ERROR_UNINITIALIZED, "init");
    expect(!nvmlInit_v2() && !nvmlDeviceGetCount_v2(&count) && count == 4,
           "count");
    expect(!nvmlDeviceGetHandleByIndex_v2(0, &a) &&
               !nvmlDeviceGetHandleByPciBusId_v2("00000000:11:00.0", &b) &&
               a != b,
           "handles");
    expect(!nvmlDeviceGetP2PStatus(a, b, NVML_P2P_CAPS_INDEX_NVLINK, &p2p) &&
               p2p == NVML_P2P_STATUS_OK,
           "NVLink between them");
    expect(!nvmlDeviceGetNvLinkState(a, 17, &state) &&
               state == NVML_FEATURE_ENABLED &&
               nvmlDeviceGetNvLinkState(a, 18, &state),
           "18 links");
    expect(!nvmlDeviceGetNvLinkRemotePciInfo_v2(a, 0, &pci) &&
               pci.pciDeviceId == 0x22a310de,
           "to an NVSwitch");
    expect(!nvmlDeviceGetGpuFabricInfoV(a, &info) &&
               info.state == NVML_GPU_FABRIC_STATE_NOT_SUPPORTED,
           "no NVLink domain beyond the host");
    info.version = nvmlGpuFabricInfo_v3 + 1;
    expect(nvmlDeviceGetGpuFabricInfoV(a, &info) ==
               NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
           "versions of a struct");
    expect(!nvmlDeviceGetC2cModeInfoV(a, &c2c) && !c2c.isC2cEnabled, "no C2C");
    expect(!nvmlDeviceGetTopologyCommonAncestor(a, b, &level) &&
               level == NVML_TOPOLOGY_HOSTBRIDGE,
           "PCIe between them");
    expect(!nvmlShutdown() && nvmlShutdown() == NVML_ERROR_UNINITIALIZED,
           "shutdown");
}

int main(void)
{
    test_before_init();
    test_contexts();
    test_device();
    test_events();
    test_order();
    test_default_stream();
    test_memory();
    test_early_destroy();
    test_wrong_device();
    test_lookup();
    test_nvml();
    return 0;
}
