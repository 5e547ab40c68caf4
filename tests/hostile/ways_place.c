/* Surroundings: where NCCL comes from, the environment, the trace's folder. */
#include "ways.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

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

typedef ncclResult_t all_reduce_function(const void *, void *, size_t,
                                         ncclDataType_t, ncclRedOp_t,
                                         ncclComm_t, cudaStream_t);

static void use_found(void *place, int n)
{
    all_reduce_function *function;
    void *found = dlsym(place, "ncclAllReduce");
    memcpy(&function, &found, sizeof(function));
    for (int i = 0; i < n; i++)
        if (!found || function(data, data, 4, 7, 0, comm, NULL) != ncclSuccess)
            abort();
}

/* Nothing is called by its name, as with vLLM's pynccl and JAX. */
static void run_lookup(char **argv)
{
    (void)argv;
    init(1);
    use_found(dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD), 6);
    use_found(RTLD_DEFAULT, 4);
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

static void say_environment(const char *when)
{
    printf("%s:\n", when);
    for (char **at = environ; at && *at; at++)
        if (strncmp(*at, "LD_PRELOAD=", 11) != 0 &&
            strncmp(*at, "HOSTILE_TRACED=", 15) != 0)
            printf("  %s\n", *at);
}

static void say_it_late(void)
{
    say_environment("late");
    fflush(stdout);
}

/* Variables come, go and lie in memory of the program's own. */
static void run_environment(char **argv)
{
    static char mine[] = "MINE=first";
    static char *other[] = {mine, NULL};
    (void)argv;
    atexit(say_it_late);
    setenv("BEFORE", "1", 1);
    unsetenv("HOME");
    char **given = environ;
    init(1);
    ops(3);
    if (environ != given)
        puts("another environ");
    say_environment("between");
    setenv("BETWEEN", "2", 1);
    environ = other;
    ncclComm_t second = make(2);
    ops_on(second, 3);
    memcpy(mine, "MINE=again", sizeof(mine));
    if (environ != other || strcmp(getenv("MINE"), "again") != 0)
        abort();
    say_environment("mine");
    environ = NULL;
    ops_on(make(3), 2);
    environ = given;
    setenv("AFTER", "3", 1);
    clearenv();
    ops(2);
    putenv(mine);
    ncclCommDestroy(second);
    say_environment("after");
}

/* The folder and the variables of the start are gone before NCCL is called. */
static void run_start(char **argv)
{
    (void)argv;
    if (chdir("/") != 0 || clearenv() != 0)
        abort();
    init(1);
    ops(10);
    say_environment("after");
}

static void run_no_environ(char **argv)
{
    (void)argv;
    environ = NULL;
    init(1);
    ops(10);
    if (environ)
        abort();
}

/* Somebody has cleaned up where our trace was. */
static void run_removed(char **argv)
{
    (void)argv;
    init(1);
    ops(5);
    await_trace();
    usleep(20000);
    remove_trace();
    ops(5);
    usleep(200000);
    ops(5);
}

const struct way place_ways[] = {
    {"local", run_local},
    {"lookup", run_lookup},
    {"config", run_config},
    {"environment", run_environment},
    {"start", run_start},
    {"no_environ", run_no_environ},
    {"disabled", run_start},
    {"removed", run_removed},
    {0},
};
