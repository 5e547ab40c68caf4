/*
 * ways_main CASE FOLDER: look-ups and calls of NCCL from the program and from
 * libraries that come in in several ways. What it prints is the same with and
 * without the recorder.
 */
#include "ways_look.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 16 };

static const char *folder;

static void *open_one(const char *name, int flags)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    void *library = dlopen(path, RTLD_NOW | flags);
    if (!library) {
        printf("%s\n", dlerror());
        exit(2);
    }
    return library;
}

static void run_module(const char *name, const char *who)
{
    void *module = open_one(name, RTLD_LOCAL);
    void *run = dlsym(module, "module_run");
    ((void (*)(const char *))(uintptr_t)run)(who);
}

/* From the program, while libraries come in. */
static void case_program(void)
{
    ways_look_all("before", "RTLD_DEFAULT", RTLD_DEFAULT);
    ways_look_all("before", "RTLD_NEXT", RTLD_NEXT);
    ways_look_all("before", "global", dlopen(NULL, RTLD_LAZY));
    void *first = open_one("libnccl_one.so", RTLD_LOCAL);
    void *second = open_one("libnccl_two.so", RTLD_LOCAL);
    ways_look_all("local", "RTLD_DEFAULT", RTLD_DEFAULT);
    ways_look_all("first", "handle", first);
    ways_look_all("second", "handle", second);
    open_one("libnccl_two.so", RTLD_GLOBAL);
    ways_look_all("global", "RTLD_DEFAULT", RTLD_DEFAULT);
    ways_look_all("global", "RTLD_NEXT", RTLD_NEXT);
    ways_look_all("global", "global", dlopen(NULL, RTLD_LAZY));
}

/* Libraries with a copy of their own; one that finds it in what its opener
 * needs; and one that calls it while it comes in. */
static void case_modules(void)
{
    run_module("libways_one.so", "one");
    run_module("libways_two.so", "two");
    run_module("libways_root.so", "dependency");
    run_module("libways_one.so", "one again");
    open_one("libways_constructor.so", RTLD_LOCAL);
}

/* Copies enough and one more. */
static void case_many(void)
{
    static const char *const names[] = {"libnccl_one.so", "libnccl_two.so",
                                        "libnccl_three.so", "libnccl_four.so",
                                        "libnccl_five.so"};
    for (int i = 0; i < 5; i++)
        ways_look(names[i], "handle", open_one(names[i], RTLD_LOCAL),
                  "ncclGroupStart");
    for (int i = 0; i < 5; i++)
        ways_look(names[i], "handle", open_one(names[i], RTLD_LOCAL),
                  "ncclGroupEnd");
}

static pthread_barrier_t ready;

static void *look_and_call(void *data)
{
    int *got = data;
    void *library =
        open_one(*got ? "libnccl_one.so" : "libnccl_two.so", RTLD_LOCAL);
    pthread_barrier_wait(&ready);
    void *found = dlsym(library, "ncclGroupStart");
    *got = found ? ((int (*)(void))(uintptr_t)found)() : -1;
    return NULL;
}

/* The first look-up and the first call, by all at once. */
static void case_threads(void)
{
    pthread_t threads[THREADS];
    int got[THREADS];
    pthread_barrier_init(&ready, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        got[i] = i & 1;
        if (pthread_create(&threads[i], NULL, look_and_call, &got[i]) != 0)
            exit(2);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        printf("thread %d: %d\n", i, got[i]);
    }
}

#ifdef LINKED
int ncclGroupStart(void);
int ncclGroupSimulateEnd(void *) __attribute__((weak));

/* Of a tool that is preloaded as well. */
static void case_linked(void)
{
    for (int i = 0; i < 3; i++)
        printf("linked: %d\n", ncclGroupStart());
    ways_look_all("linked", "RTLD_DEFAULT", RTLD_DEFAULT);
    ways_look_all("linked", "RTLD_NEXT", RTLD_NEXT);
    run_module("libways_one.so", "one");
}
#else
static void case_linked(void)
{
}
#endif

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"program", case_program},
                 {"modules", case_modules},
                 {"many", case_many},
                 {"threads", case_threads},
                 {"linked", case_linked}};
    folder = argc == 3 ? argv[2] : "";
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (argc == 3 && !strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            return 0;
        }
    return 2;
}
