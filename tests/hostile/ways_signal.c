/* NCCL in signal handlers, and handlers that come in the middle of NCCL. */
#include "ways.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_signal(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    if (sigaction(signal, &action, NULL) != 0)
        abort();
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
    on_signal(SIGUSR1, check_thread, 0);
    init(1);
    for (int i = 0; i < 10; i++) {
        kill(getpid(), SIGUSR1);
        ops(1);
    }
}

static void use_stack_of_its_own(void)
{
    static _Alignas(16) char room[16384];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
    if (sigaltstack(&stack, NULL) != 0)
        abort();
}

static void use_nccl(int signal)
{
    (void)signal;
    ops(1);
}

static void run_altstack(char **argv)
{
    (void)argv;
    use_stack_of_its_own();
    on_signal(SIGUSR1, use_nccl, SA_ONSTACK);
    init(1);
    for (int i = 0; i < 10; i++)
        raise(SIGUSR1);
}

static void begin_and_use(int signal)
{
    (void)signal;
    init(1);
    ops(10);
}

/* There the process's first call. */
static void run_altstack_first(char **argv)
{
    (void)argv;
    use_stack_of_its_own();
    on_signal(SIGUSR1, begin_and_use, SA_ONSTACK);
    raise(SIGUSR1);
}

/* Another kind of op: where it comes in the middle of one of ours it looks as
 * if NCCL had made it, and is not recorded. */
static void interrupt(int signal)
{
    (void)signal;
    if (ncclReduce(data, data, 4, 7, 0, 0, comm, NULL) != ncclSuccess)
        abort();
}

static pthread_t target;
static _Atomic bool over;

static void *bombard(void *unused)
{
    while (!atomic_load(&over)) {
        pthread_kill(target, SIGUSR1);
        usleep(20);
    }
    return unused;
}

static pthread_t start_bombardment(void (*handler)(int))
{
    pthread_t thread;
    target = pthread_self();
    on_signal(SIGUSR1, handler, SA_RESTART);
    if (pthread_create(&thread, NULL, bombard, NULL) != 0)
        abort();
    return thread;
}

static void end_bombardment(pthread_t thread)
{
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    on_signal(SIGUSR1, SIG_IGN, 0);
}

static void fork_once(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        ops(1);
        _exit(0);
    }
    int status;
    while (waitpid(pid, &status, 0) != pid)
        ;
    if (status != 0)
        abort();
}

/* Communicators come and go and children are made while a handler uses NCCL
 * all the time. */
static void run_storm(char **argv)
{
    enum { TURNS = 400 };
    (void)argv;
    init(1);
    pthread_t thread = start_bombardment(interrupt);
    for (int i = 0; i < TURNS; i++) {
        ncclComm_t own = make(2 + i);
        ops_on(own, 5);
        ncclGroupStart();
        ops_on(own, 5);
        ncclGroupEnd();
        ncclCommDestroy(own);
        if (i % 20 == 0)
            fork_once();
    }
    end_bombardment(thread);
    say_issued(TURNS * 10);
}

/* An error, but no reason to wait for what was interrupted. */
static void use_nothing(int signal)
{
    (void)signal;
    ncclAllReduce(data, data, 4, 7, 0, NULL, NULL);
}

static void run_storm_first(char **argv)
{
    (void)argv;
    free(malloc(64)); /* a handler may not come in the middle of malloc() */
    pthread_t thread = start_bombardment(use_nothing);
    init(1);
    end_bombardment(thread);
    ops(10);
}

static sigjmp_buf back;

static void jump_back(int signal)
{
    (void)signal;
    siglongjmp(back, 1);
}

/* A call that never returns since a handler jumps out of it. */
static void run_jump(char **argv)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    (void)argv;
    on_signal(SIGALRM, jump_back, 0);
    init(1);
    ops(4);
    if (sigsetjmp(back, 1) == 0) {
        setitimer(ITIMER_REAL, &soon, NULL);
        ncclAllReduce(data, data, BLOCKS, 7, 0, comm, NULL);
    }
    ops(5);
}

const struct way signal_ways[] = {
    {"signals", run_signals},
    {"altstack", run_altstack},
    {"altstack_first", run_altstack_first},
    {"storm", run_storm},
    {"storm_first", run_storm_first},
    {"jump", run_jump},
    {0},
};
