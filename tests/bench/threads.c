/*
 * Sixteen threads that call on sixteen communicators at once: what an op costs
 * its thread, in CPU time since there may be fewer processors, beside the same
 * calls by one thread. Each op is a row of the trace or counted as lost.
 */
#include "bench.h"
#include "bench_trace.h"
#include "commtrace/nccl_abi.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>

ncclResult_t ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);
ncclResult_t ncclAllReduce(const void *, void *, size_t, ncclDataType_t,
                           ncclRedOp_t, ncclComm_t, cudaStream_t);

/* Few enough for the ring to take all that the writer has not: nothing may be
 * lost. */
enum { THREADS = 16, OPS = 4000, PAUSE_EVERY = 100 };

static pthread_barrier_t ready;

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *call(void *result)
{
    static float data[4];
    double *cost = result, spent = 0;
    ncclComm_t comm;
    ncclUniqueId id = {{0}};
    memcpy(id.internal, &result, sizeof(result));
    if (ncclCommInitRank(&comm, 2, id, 0) != ncclSuccess)
        abort();
    ncclAllReduce(data, data, 4, 7, 0, comm, NULL);
    pthread_barrier_wait(&ready);
    for (int i = 1; i < OPS; i += PAUSE_EVERY) {
        double start = cpu_ns();
        for (int j = i; j < OPS && j < i + PAUSE_EVERY; j++)
            ncclAllReduce(data, data, 4, 7, 0, comm, NULL);
        spent += cpu_ns() - start;
        usleep(20000); /* the writer catches up */
    }
    *cost = spent / (OPS - 1);
    return NULL;
}

static double run(int n)
{
    static double costs[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_init(&ready, NULL, (unsigned)n);
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, call, &costs[i]) != 0)
            abort();
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&ready);
    return bench_median(costs, n);
}

/* The recorder writes its last rows when the process ends. */
static int check(const char *dir)
{
    int64_t ops = bench_trace_ask(dir, "SELECT count(*) FROM op");
    int64_t lost = bench_trace_ask(dir, "SELECT coalesce(sum(n), 0) FROM loss"
                                        " WHERE what = 'op'");
    if (ops == (THREADS + 1) * OPS && lost == 0)
        return 0;
    printf("bench threads: %lld ops of %d recorded, %lld lost FAILED\n",
           (long long)ops, (THREADS + 1) * OPS, (long long)lost);
    return 1;
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/bench-threads-XXXXXX";
    if (argc > 1) {
        double alone = run(1);
        return bench_report("threads", "ns", run(THREADS), alone, AT_MOST,
                            INFINITY);
    }
    if (!mkdtemp(dir))
        return 2;
    pid_t pid = fork();
    if (pid == 0) {
        char again[] = "threads", *twice[] = {argv[0], again, NULL};
        setenv("COMMTRACE_DIR", dir, 1);
        setenv("COMMTRACE_TIMING", "off", 1);
        bench_preload(twice);
    }
    int status = 0;
    int failed = waitpid(pid, &status, 0) != pid || status != 0;
    failed |= check(dir);
    bench_remove(dir);
    return failed;
}
