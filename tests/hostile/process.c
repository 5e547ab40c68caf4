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
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

ncclResult_t ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *, int, ncclUniqueId, int,
                                    ncclConfig_t *);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
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

/* The program's files get the numbers that they get without us. */
static void run_numbers(char **argv)
{
    (void)argv;
    int before = dup(0);
    init(1);
    ops(10);
    usleep(100000); /* time for a database */
    if (dup(0) != before + 1)
        abort();
}

/* Closes all files, as daemons do, and opens its own: they stay its own. */
static void run_close_all(char **argv)
{
    enum { FILES = 8 };
    FILE *out[FILES], *own[FILES];
    char text[16];
    (void)argv;
    init(1);
    ops(5);
    usleep(100000);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    for (int i = 0; i < FILES; i++) {
        own[i] = tmpfile();
        out[i] = fdopen(dup(1), "w");
        if (fputs("mine", own[i]) < 0 || fflush(own[i]) != 0)
            abort();
    }
    ops(5);
    usleep(100000);
    for (int i = 0; i < FILES; i++) {
        rewind(own[i]);
        if (!fgets(text, sizeof(text), own[i]) || strcmp(text, "mine") != 0)
            abort();
        fprintf(out[i], "%d\n", i); /* written when stdio ends, after us */
    }
}

/* What it prints goes nowhere, and not into files of ours. */
static void run_no_stdio(char **argv)
{
    (void)argv;
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    init(1);
    ops(10);
    usleep(100000);
    for (int fd = 0; fd < 3; fd++)
        if (write(fd, data, sizeof(data)) != -1)
            abort();
}

static void *leave_bracket_open(void *unused)
{
    ncclComm_t born;
    ncclUniqueId id = {{2}};
    ncclGroupStart();
    ops(1);
    if (ncclCommInitRank(&born, 2, id, 0) != ncclSuccess)
        abort();
    return unused;
}

static void *use_bracket(void *unused)
{
    ncclGroupStart();
    ops(1);
    ncclGroupEnd();
    return unused;
}

/* A thread ends in its bracket; what the next one does is not its. */
static void run_open_bracket(char **argv)
{
    pthread_t thread;
    (void)argv;
    init(1);
    pthread_create(&thread, NULL, leave_bracket_open, NULL);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, use_bracket, NULL);
    pthread_join(thread, NULL);
}

/* The program has taken all keys of thread-specific data. */
static void run_keys(char **argv)
{
    pthread_key_t last = 0, key;
    (void)argv;
    while (pthread_key_create(&key, NULL) == 0)
        last = key;
    for (key = 0; key <= last; key++)
        pthread_setspecific(key, data);
    init(1);
    use_bracket(NULL);
    for (key = 0; key <= last; key++)
        if (pthread_getspecific(key) != data)
            abort();
}

static void *ask_to_be_cancelled(void *reached)
{
    pthread_cancel(pthread_self());
    init(1);
    ops(5);
    *(bool *)reached = true;
    pthread_testcancel();
    return NULL;
}

/* NCCL's calls are no cancellation points; neither are ours. */
static void run_cancel(char **argv)
{
    bool reached = false;
    pthread_t thread;
    (void)argv;
    pthread_create(&thread, NULL, ask_to_be_cancelled, &reached);
    pthread_join(thread, NULL);
    if (!reached)
        abort();
    ops(5);
}

/* NCCL refuses a configuration that nobody has initialised. */
static void run_config(char **argv)
{
    _Alignas(ncclConfig_t) char rubbish[256];
    ncclUniqueId id = {{1}};
    (void)argv;
    memset(rubbish, 0x41, sizeof(rubbish));
    ncclCommInitRankConfig(&comm, 2, id, 0, (void *)rubbish);
    ops(1);
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
        {"numbers", run_numbers},     {"close_all", run_close_all},
        {"no_stdio", run_no_stdio},   {"open_bracket", run_open_bracket},
        {"keys", run_keys},           {"cancel", run_cancel},
        {"config", run_config},
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
