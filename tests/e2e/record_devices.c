/*
 * One process with four GPUs: communicators of ncclCommInitAll, which is its
 * first use of CUDA, or a thread per GPU of which the last comes late.
 * record_devices all|threads
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "job.h"

enum { DEVICES = 4, COUNT = 1000 };

struct device {
    ncclComm_t comm;
    ncclUniqueId id;
    cudaStream_t stream;
    int *d;
    int number;
};

static void prepare(struct device *device)
{
    check_cuda(cudaSetDevice(device->number), "cudaSetDevice");
    check_cuda(
        cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking),
        "cudaStreamCreate");
    check_cuda(cudaMalloc((void **)&device->d, COUNT * sizeof(int)), "malloc");
}

static void reduce_in(struct device *device, cudaStream_t stream)
{
    check_nccl(ncclAllReduce(device->d, device->d, COUNT, ncclInt32, ncclSum,
                             device->comm, stream),
               "ncclAllReduce");
}

static void reduce(struct device *device)
{
    reduce_in(device, device->stream);
}

static int current(void)
{
    int number;

    check_cuda(cudaGetDevice(&number), "cudaGetDevice");
    return number;
}

/* Which GPU a default stream belongs to, the current context says: that is the
 * program's before and after. */
static void reduce_by_default(struct device *devices)
{
    const int before = current();

    check_nccl(ncclGroupStart(), "start");
    for (int i = 0; i < DEVICES; i++) {
        reduce_in(&devices[i], NULL);
        if (current() != before)
            die("a call changes the current device");
    }
    check_nccl(ncclGroupEnd(), "end");
    if (current() != before)
        die("a group changes the current device");
    check_cuda(cudaDeviceSynchronize(), "synchronize");
}

static void finish(struct device *device)
{
    check_cuda(cudaSetDevice(device->number), "cudaSetDevice");
    check_cuda(cudaStreamSynchronize(device->stream), "synchronize");
    check_nccl(ncclCommDestroy(device->comm), "ncclCommDestroy");
}

static void run_all(struct device *devices)
{
    ncclComm_t comms[DEVICES];

    check_nccl(ncclCommInitAll(comms, DEVICES, NULL), "ncclCommInitAll");
    for (int i = 0; i < DEVICES; i++) {
        devices[i].comm = comms[i];
        prepare(&devices[i]);
    }
    for (int k = 0; k < 3; k++) {
        check_nccl(ncclGroupStart(), "start");
        for (int i = 0; i < DEVICES; i++)
            reduce(&devices[i]);
        check_nccl(ncclGroupEnd(), "end");
    }
    reduce_by_default(devices);
    for (int i = 0; i < DEVICES; i++)
        finish(&devices[i]);
}

static _Atomic int waiting; /* threads whose second call has returned */

/* Behind the others, however slow they are. */
static void come_late(void)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    const struct timespec late = {.tv_nsec = 200000000};

    while (atomic_load(&waiting) < DEVICES - 1)
        nanosleep(&ms, NULL);
    nanosleep(&late, NULL);
}

static void *run_thread(void *arg)
{
    struct device *device = arg;

    prepare(device);
    check_nccl(
        ncclCommInitRank(&device->comm, DEVICES, device->id, device->number),
        "ncclCommInitRank");
    reduce(device);
    check_cuda(cudaStreamSynchronize(device->stream), "synchronize");
    if (device->number == DEVICES - 1)
        come_late();
    reduce(device);
    atomic_fetch_add(&waiting, 1);
    finish(device);
    return NULL;
}

static void run_threads(struct device *devices)
{
    pthread_t threads[DEVICES];
    ncclUniqueId id;

    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    for (int i = 0; i < DEVICES; i++) {
        devices[i].id = id;
        pthread_create(&threads[i], NULL, run_thread, &devices[i]);
    }
    for (int i = 0; i < DEVICES; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    struct device devices[DEVICES] = {0};

    for (int i = 0; i < DEVICES; i++)
        devices[i].number = i;
    if (argc == 2 && !strcmp(argv[1], "all"))
        run_all(devices);
    else if (argc == 2 && !strcmp(argv[1], "threads"))
        run_threads(devices);
    else
        die("usage: record_devices all|threads");
    return 0;
}
