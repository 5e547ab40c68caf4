/*
 * callers WAY [FILE...]: calls NCCL from known places. test_stacks.py knows
 * which stacks must be in the trace.
 */
#include "calls.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static float data[256];
static struct comm *comm;

static struct comm *make(int id)
{
    struct comm *made;
    unique_id unique = {{(char)id}};
    if (ncclCommInitRank(&made, 2, unique, 0) != 0)
        abort();
    return made;
}

FRAME void f2(size_t count);
FRAME void f2(size_t count)
{
    if (ncclAllReduce(data, data, count, FLOAT, SUM, comm, NULL) != 0) /*f2*/
        abort();
    NO_TAIL_CALL;
}

FRAME void f1(size_t count);
FRAME void f1(size_t count)
{
    f2(count); /*f1*/
    NO_TAIL_CALL;
}

static void run_chain(char **files)
{
    (void)files;
    volatile int n = 5;
    for (int i = 0; i < n; i++)
        f1(4); /*chain*/
}

/* More call sites than a communicator may have; another has its own. */
static void run_many(char **files)
{
    (void)files;
    for (int round = 0; round < 2; round++)
        for (size_t i = 1; i <= 100; i++)
            f1(i);
    comm = make(2);
    f1(1);
}

FRAME static void either(int directly)
{
    if (directly)
        f2(4);
    else
        f1(4);
    NO_TAIL_CALL;
}

/* One address, two ways to it. */
static void run_twice(char **files)
{
    (void)files;
    volatile int n = 3; /* no copies of the loop's body */
    for (int i = 0; i < n; i++)
        either(i == 1);
}

static pthread_barrier_t barrier;

static void *race(void *unused)
{
    pthread_barrier_wait(&barrier);
    f1(4);
    return unused;
}

static void in_thread(void *(*run)(void *), size_t bytes)
{
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (pthread_attr_setstacksize(&attr, bytes) != 0 ||
        pthread_create(&thread, &attr, run, NULL) != 0)
        abort();
    pthread_join(thread, NULL);
}

static void run_race(char **files)
{
    pthread_t threads[16];
    (void)files;
    pthread_barrier_init(&barrier, NULL, 16);
    for (int i = 0; i < 16; i++)
        pthread_create(&threads[i], NULL, race, NULL);
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
}

static void *call(void *unused)
{
    f1(5);
    return unused;
}

/* Little of the stack is left, and enough for all but a stack walk. */
static void *call_deep(void *unused)
{
    char much[6 * 1024];
    __asm__ volatile("" : : "r"(much) : "memory");
    f1(6);
    __asm__ volatile("" : : "r"(much) : "memory");
    return unused;
}

static void run_small(char **files)
{
    (void)files;
    in_thread(call, 16 * 1024);
    in_thread(call_deep, 16 * 1024);
    call_deep(NULL);
}

static ucontext_t here, there;

static void fiber(void)
{
    f1(7);
}

static void on_signal(int number)
{
    (void)number;
    f1(8);
}

/* On stacks that are not the thread's. */
static void run_elsewhere(char **files)
{
    static char stacks[2][64 * 1024];
    stack_t alternate = {.ss_sp = stacks[0], .ss_size = sizeof(stacks[0])};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    (void)files;
    getcontext(&there);
    there.uc_stack.ss_sp = stacks[1];
    there.uc_stack.ss_size = sizeof(stacks[1]);
    there.uc_link = &here;
    makecontext(&there, fiber, 0);
    swapcontext(&here, &there);
    sigaltstack(&alternate, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

/* Modules that come to the same place, one after the other. */
static void run_modules(char **files)
{
    for (; *files; files++) {
        void *handle = dlopen(*files, RTLD_NOW | RTLD_LOCAL);
        void *found = handle ? dlsym(handle, "enter") : NULL;
        void (*enter)(void (*back)(size_t));
        if (!found)
            abort();
        memcpy(&enter, &found, sizeof(enter));
        enter(f1);
        dlclose(handle);
    }
}

/* Code made at run time, with a frame pointer and nothing else to go by. */
static void run_made(char **files)
{
    (void)files;
#if defined(__x86_64__)
    static const unsigned char code[] = {
        0x55,             /* push %rbp */
        0x48, 0x89, 0xe5, /* mov %rsp,%rbp */
        0x48, 0x89, 0xf8, /* mov %rdi,%rax */
        0x48, 0x89, 0xf7, /* mov %rsi,%rdi */
        0xff, 0xd0,       /* call *%rax */
        0x5d, 0xc3        /* pop %rbp; ret */
    };
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void (*made)(void (*)(size_t), size_t);
    if (page == MAP_FAILED)
        abort();
    memcpy(page, code, sizeof(code));
    memcpy(&made, &page, sizeof(made));
    made(f1, 4);
    NO_TAIL_CALL;
#endif
}

static volatile int enough;

static void *call_on(void *unused)
{
    while (!enough)
        f1(4);
    return unused;
}

static int count_modules(struct dl_phdr_info *info, size_t size, void *n)
{
    (void)info, (void)size;
    ++*(int *)n;
    return 0;
}

/* Children need the loader's locks, which others of us take all the time. */
static void run_forks(char **files)
{
    pthread_t threads[4];
    (void)files;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, call_on, NULL);
    for (int i = 0; i < 200; i++) {
        int status, n = 0;
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20); /* instead of for ever */
            dl_iterate_phdr(count_modules, &n);
            _exit(n < 2);
        }
        if (waitpid(pid, &status, 0) != pid || status != 0)
            abort();
    }
    enough = 1;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* What libraries show to the whole program, after the first call. */
static void run_scope(char **files)
{
    static const char *const names[] = {
        "_Unwind_Backtrace", "_Unwind_RaiseException",
        "unw_backtrace",     "_ULx86_64_step",
        "_Ux86_64_step",     "_Uaarch64_step",
        "lzma_code",         "backtrace",
    };
    (void)files;
    f1(4);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        printf("%s: %s\n", names[i],
               dlsym(RTLD_DEFAULT, names[i]) ? "there" : "not there");
}

static const struct {
    const char *name;
    void (*run)(char **files);
} ways[] = {
    {"chain", run_chain},     {"many", run_many},
    {"twice", run_twice},     {"race", run_race},
    {"small", run_small},     {"elsewhere", run_elsewhere},
    {"modules", run_modules}, {"made", run_made},
    {"forks", run_forks},     {"scope", run_scope},
};

int main(int argc, char **argv)
{
    comm = make(1);
    for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(*ways); i++)
        if (!strcmp(argv[1], ways[i].name))
            ways[i].run(argv + 2); /*main*/
    puts("done");
    return 0;
}
