/*
 * Makes a communicator while 16 threads read the environment, as threads of any
 * program may. Prints what of NCCL's a child sees afterwards.
 */
#include <cuda_runtime.h>
#include <nccl.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READERS = 16 };
static _Atomic int reading;
static _Atomic bool over;

static void must(int error)
{
    if (error)
        abort();
}

static void *read_environment(void *unused)
{
    (void)unused;
    atomic_fetch_add(&reading, 1);
    while (!atomic_load(&over)) {
        const char *value = getenv("GETENV_JOB");
        must(!value || strcmp(value, "yes") != 0);
        must(getenv("GETENV_JOB_NOT") != NULL);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[READERS];
    ncclUniqueId id;
    ncclComm_t comm;
    for (int i = 0; i < READERS; i++)
        must(pthread_create(&threads[i], NULL, read_environment, NULL));
    while (atomic_load(&reading) < READERS)
        sched_yield();
    must(cudaSetDevice(0));
    must(ncclGetUniqueId(&id));
    must(ncclCommInitRank(&comm, 1, id, 0));
    must(getenv("NCCL_DEBUG") != NULL);
    must(ncclCommDestroy(comm));
    atomic_store(&over, true);
    for (int i = 0; i < READERS; i++)
        must(pthread_join(threads[i], NULL));
    fflush(stdout);
    return system("env | grep -E '^NCCL_|PUBLISHED'; echo done");
}
