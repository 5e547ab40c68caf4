/*
 * two_copies CUDART NCCL NCCL...: a program that is linked with neither CUDA
 * nor NCCL and calls two copies of NCCL and more, all by dlsym: two devices
 * each, groups of two copies open at once, a thread for each as well. It checks
 * the sums itself and prints what it issued:
 *
 *   issued COPY OPS GROUPED
 */
#include "commtrace/nccl_abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { COPIES = 8, DEVICES = 2, COUNT = 1000, ROUNDS = 25, THREAD_ROUNDS = 50 };

static struct {
    int (*set_device)(int);
    int (*malloc)(void **, size_t);
    int (*synchronize)(void);
    int (*stream)(cudaStream_t *);
    int (*copy)(void *, const void *, size_t, int);
} cuda;

struct nccl {
    ncclResult_t (*init_all)(ncclComm_t *, int, const int *);
    ncclResult_t (*all_reduce)(const void *, void *, size_t, ncclDataType_t,
                               ncclRedOp_t, ncclComm_t, cudaStream_t);
    ncclResult_t (*group_start)(void);
    ncclResult_t (*group_end)(void);
    ncclResult_t (*destroy)(ncclComm_t);
    ncclComm_t comms[DEVICES];
    float *data[DEVICES];
    /* Of its own: two communicators whose ops met one stream in another order
     * on each device would wait for each other. */
    cudaStream_t streams[DEVICES];
    int issued, grouped;
};

static void check(int error, const char *what)
{
    if (error) {
        fprintf(stderr, "%s: %d\n", what, error);
        exit(1);
    }
}

static void *open_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    check(!library, path);
    return library;
}

static void look_up(void *library, const char *name, void *function)
{
    *(void **)function = dlsym(library, name);
    check(!*(void **)function, name);
}

static void open_cuda(const char *path)
{
    void *library = open_library(path);
    look_up(library, "cudaSetDevice", &cuda.set_device);
    look_up(library, "cudaMalloc", &cuda.malloc);
    look_up(library, "cudaDeviceSynchronize", &cuda.synchronize);
    look_up(library, "cudaMemcpy", &cuda.copy);
    look_up(library, "cudaStreamCreate", &cuda.stream);
}

static void open_nccl(struct nccl *nccl, const char *path)
{
    void *library = open_library(path);
    look_up(library, "ncclCommInitAll", &nccl->init_all);
    look_up(library, "ncclAllReduce", &nccl->all_reduce);
    look_up(library, "ncclGroupStart", &nccl->group_start);
    look_up(library, "ncclGroupEnd", &nccl->group_end);
    look_up(library, "ncclCommDestroy", &nccl->destroy);
    check(nccl->init_all(nccl->comms, DEVICES, NULL), "ncclCommInitAll");
    for (int d = 0; d < DEVICES; d++) {
        check(cuda.set_device(d), "cudaSetDevice");
        check(cuda.malloc((void **)&nccl->data[d], COUNT * sizeof(float)),
              "cudaMalloc");
        check(cuda.stream(&nccl->streams[d]), "cudaStreamCreate");
    }
}

static void fill(struct nccl *nccl, float value)
{
    float data[COUNT];
    for (int i = 0; i < COUNT; i++)
        data[i] = value;
    for (int d = 0; d < DEVICES; d++)
        check(cuda.copy(nccl->data[d], data, sizeof(data), 1), "cudaMemcpy");
}

static void verify(struct nccl *nccl, float value)
{
    float data[COUNT];
    for (int d = 0; d < DEVICES; d++) {
        check(cuda.set_device(d), "cudaSetDevice");
        check(cuda.synchronize(), "cudaDeviceSynchronize");
        check(cuda.copy(data, nccl->data[d], sizeof(data), 2), "cudaMemcpy");
        check(data[0] != value || data[COUNT - 1] != value, "the sum");
    }
}

static void reduce(struct nccl *nccl, int d)
{
    check(cuda.set_device(d), "cudaSetDevice");
    check(nccl->all_reduce(nccl->data[d], nccl->data[d], COUNT, 7, 0,
                           nccl->comms[d], nccl->streams[d]),
          "ncclAllReduce");
    nccl->issued++;
    nccl->grouped++;
}

/* Each copy's bracket holds its own two ops, whatever the other has open. */
static void interleave(struct nccl *a, struct nccl *b, float value)
{
    fill(a, value);
    fill(b, 10 * value);
    check(a->group_start(), "ncclGroupStart");
    reduce(a, 0);
    check(b->group_start(), "ncclGroupStart");
    reduce(b, 0);
    reduce(a, 1);
    check(a->group_end(), "ncclGroupEnd");
    reduce(b, 1);
    check(b->group_end(), "ncclGroupEnd");
    verify(a, 2 * value);
    verify(b, 20 * value);
}

static void *call_alone(void *data)
{
    struct nccl *nccl = data;
    for (int i = 0; i < THREAD_ROUNDS; i++) {
        check(nccl->group_start(), "ncclGroupStart");
        for (int d = 0; d < DEVICES; d++)
            reduce(nccl, d);
        check(nccl->group_end(), "ncclGroupEnd");
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct nccl copies[COPIES];
    pthread_t threads[COPIES];
    int n = argc - 2;
    check(n < 2 || n > COPIES, "usage: two_copies CUDART NCCL NCCL...");
    open_cuda(argv[1]);
    for (int i = 0; i < n; i++)
        open_nccl(&copies[i], argv[2 + i]);
    for (int i = 0; i < ROUNDS; i++)
        interleave(&copies[i % 2], &copies[1 - i % 2], (float)(1 + i));
    for (int i = 0; i < n; i++)
        check(pthread_create(&threads[i], NULL, call_alone, &copies[i]),
              "pthread_create");
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    for (int d = 0; d < DEVICES; d++) {
        check(cuda.set_device(d), "cudaSetDevice");
        check(cuda.synchronize(), "cudaDeviceSynchronize");
    }
    for (int i = 0; i < n; i++) {
        for (int d = 0; d < DEVICES; d++)
            check(copies[i].destroy(copies[i].comms[d]), "ncclCommDestroy");
        printf("issued %d %d %d\n", i + 1, copies[i].issued, copies[i].grouped);
    }
    return 0;
}
