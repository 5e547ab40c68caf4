/*
 * A program that treats its process badly while it uses NCCL. The first
 * argument says how; process.py knows what must be in the trace.
 */
#include "commtrace/nccl_abi.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

ncclResult_t ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclAllReduce(const void *, void *, size_t, ncclDataType_t,
                           ncclRedOp_t, ncclComm_t, cudaStream_t);

static float data[4];
static ncclComm_t comm;

static void init(int id)
{
    ncclUniqueId unique = {{(char)id}};
    if (ncclCommInitRank(&comm, 2, unique, 0) != ncclSuccess)
        abort();
}

static void ops(int n)
{
    for (int i = 0; i < n; i++)
        if (ncclAllReduce(data, data, 4, 7, 0, comm, NULL) != ncclSuccess)
            abort();
}

static void await(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0)
        abort();
}

static void run_plain(char **argv)
{
    (void)argv;
    init(1);
    ops(10);
}

/* The child uses NCCL, and ends in every handler there is. */
static void run_fork(char **argv)
{
    (void)argv;
    init(1);
    ops(5);
    pid_t pid = fork();
    if (pid == 0) {
        ops(100);
        init(2);
        ops(100);
        exit(0);
    }
    await(pid);
    ops(5);
}

static void run_clone(char **argv)
{
    (void)argv;
    init(1);
    ops(5);
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        ops(100);
        _exit(0);
    }
    await(pid);
    ops(5);
}

static void run_vfork(char **argv)
{
    (void)argv;
    init(1);
    pid_t pid = vfork(); /* NOLINT: what is tested */
    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    await(pid);
    ops(10);
}

static void run_exec(char **argv)
{
    init(1);
    ops(7);
    usleep(100000); /* time for a database */
    argv[1] = (char *)"plain";
    execv("/proc/self/exe", argv);
    abort();
}

static void run__exit(char **argv)
{
    run_plain(argv);
    usleep(100000); /* time for a database */
    _exit(0);
}

static void run_abort(char **argv)
{
    run_plain(argv);
    usleep(100000);
    abort();
}

static void late(void)
{
    ops(3);
    ncclCommDestroy(comm);
}

static void run_atexit(char **argv)
{
    atexit(late);
    init(1);
    ops(7);
    (void)argv;
}

static void *use_forever(void *unused)
{
    for (;;)
        ops(1);
    return unused;
}

/* exit() while others are inside NCCL. */
static void run_busy_exit(char **argv)
{
    (void)argv;
    init(1);
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, use_forever, NULL);
    }
    usleep(50000);
}

static pthread_barrier_t barrier;

static void *first_call(void *arg)
{
    ncclComm_t own;
    ncclUniqueId id = {{(char)(intptr_t)arg}};
    pthread_barrier_wait(&barrier);
    if (ncclCommInitRank(&own, 2, id, 0) != ncclSuccess ||
        ncclAllReduce(data, data, 4, 7, 0, own, NULL) != ncclSuccess)
        abort();
    return NULL;
}

/* Sixteen threads make the first call at once, on stacks of 16 KiB. */
static void run_race(char **argv)
{
    enum { THREADS = 16 };
    pthread_t threads[THREADS];
    pthread_attr_t attr;
    (void)argv;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 16384);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (intptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &attr, first_call, (void *)i) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* NCCL has come in where RTLD_NEXT does not look, as with python. */
static void run_local(char **argv)
{
    void *handle = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    int (*use)(void);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    void *found = dlsym(handle, "module_use");
    memcpy(&use, &found, sizeof(use));
    if (!found || use() != 0)
        exit(1);
}

/* The writer must not take the program's signals: there is no other thread. */
static void check_thread(int signal)
{
    (void)signal;
    /* NOLINTNEXTLINE(bugprone-signal-handler): plain system calls */
    if (syscall(SYS_gettid) != syscall(SYS_getpid))
        _exit(1);
}

static void run_signals(char **argv)
{
    (void)argv;
    signal(SIGUSR1, check_thread);
    init(1);
    for (int i = 0; i < 10; i++) {
        kill(getpid(), SIGUSR1);
        ops(1);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(char **argv);
    } ways[] = {
        {"plain", run_plain},         {"fork", run_fork},
        {"clone", run_clone},         {"vfork", run_vfork},
        {"exec", run_exec},           {"_exit", run__exit},
        {"abort", run_abort},         {"atexit", run_atexit},
        {"busy_exit", run_busy_exit}, {"race", run_race},
        {"local", run_local},         {"signals", run_signals},
    };
    for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(*ways); i++) {
        if (strcmp(argv[1], ways[i].name) != 0)
            continue;
        ways[i].run(argv);
        puts("done");
        return 0;
    }
    return 2;
}
