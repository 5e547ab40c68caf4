/* Children, by every call that makes one. */
#include "ways.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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
    await_child(pid);
    ops(5);
}

/* fork() without the C library, that is without its handlers. */
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
    await_child(pid);
    ops(5);
}

static void fork_in_bracket(void)
{
    ncclGroupStart();
    ops(1);
    pid_t pid = fork();
    ops(1);
    ncclGroupEnd();
    if (pid == 0)
        exit(0);
    await_child(pid);
}

/* A child of a child, and one that was made inside a bracket. */
static void run_fork_deep(char **argv)
{
    (void)argv;
    init(1);
    ops(6);
    pid_t pid = fork();
    if (pid == 0) {
        ops(10);
        pid_t next = fork();
        ops(10);
        if (next)
            await_child(next);
        _exit(0);
    }
    await_child(pid);
    fork_in_bracket();
    ops(2);
}

enum { BUSY_THREADS = 4, BUSY_OPS = 3000, BUSY_CHILDREN = 24 };

static void *use_own(void *id)
{
    for (int i = 0; i < BUSY_OPS / 100; i++) {
        ncclComm_t own = make((int)(intptr_t)id);
        ops_on(own, 100);
        ncclCommDestroy(own);
    }
    return NULL;
}

/* Others are in the middle of everything while children are made, which use
 * what was left to them at that moment. */
static void run_fork_busy(char **argv)
{
    pthread_t threads[BUSY_THREADS];
    (void)argv;
    init(1);
    for (intptr_t i = 0; i < BUSY_THREADS; i++)
        if (pthread_create(&threads[i], NULL, use_own, (void *)(i + 2)) != 0)
            abort();
    for (int i = 0; i < BUSY_CHILDREN; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            ncclComm_t child;
            ncclCommSplit(comm, 0, 0, &child, NULL); /* its first use */
            use_own((void *)(intptr_t)100);
            exit(0);
        }
        await_child(pid);
        ops(10);
    }
    for (int i = 0; i < BUSY_THREADS; i++)
        pthread_join(threads[i], NULL);
    say_issued(BUSY_THREADS * BUSY_OPS + BUSY_CHILDREN * 10);
}

/* The child becomes a program of its own. */
static void run_fork_exec(char **argv)
{
    init(1);
    ops(5);
    pid_t pid = fork();
    if (pid == 0) {
        argv[1] = (char *)"plain";
        execv("/proc/self/exe", argv);
        _exit(1);
    }
    await_child(pid);
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
    await_child(pid);
    ops(10);
}

/* Shells and tools started by a program that uses NCCL. */
static void run_shell(char **argv)
{
    char line[64];
    (void)argv;
    init(1);
    ops(5);
    fflush(NULL);
    if (system("ls / | grep -c tmp; bash -c 'echo $((6 * 7)) $#'") != 0)
        abort();
    FILE *pipe = popen("echo from a pipe", "r");
    if (!pipe || !fgets(line, sizeof(line), pipe) || pclose(pipe) != 0)
        abort();
    fputs(line, stdout);
    ops(5);
}

static void run_exec(char **argv)
{
    init(1);
    ops(7);
    await_trace();
    argv[1] = (char *)"plain";
    execv("/proc/self/exe", argv);
    abort();
}

/* Leaves its parent, session, folder and files, and runs on its own. The
 * parent waits only to be able to tell how it ended. */
static pid_t daemonise(void (*run)(void))
{
    int tell[2];
    pid_t daemon_pid = 0;
    if (pipe(tell) != 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        pid_t next = fork();
        if (next) {
            ssize_t n = write(tell[1], &next, sizeof(next));
            _exit(n != sizeof(next));
        }
        umask(0);
        if (chdir("/") != 0)
            _exit(1);
        for (int fd = 0; fd < 1024; fd++)
            close(fd);
        run();
        exit(0);
    }
    await_child(pid);
    if (read(tell[0], &daemon_pid, sizeof(daemon_pid)) != sizeof(daemon_pid))
        abort();
    return daemon_pid;
}

static void ten(void)
{
    init(1);
    ops(10);
}

static void a_hundred(void)
{
    ops(100);
}

static void run_daemon(char **argv)
{
    (void)argv;
    await_child(daemonise(ten));
}

/* A daemon that was made from a process which uses NCCL is a child like any
 * other. */
static void run_daemon_late(char **argv)
{
    (void)argv;
    init(1);
    ops(5);
    await_child(daemonise(a_hundred));
    ops(5);
}

const struct way fork_ways[] = {
    {"fork", run_fork},
    {"clone", run_clone},
    {"fork_deep", run_fork_deep},
    {"fork_busy", run_fork_busy},
    {"fork_exec", run_fork_exec},
    {"vfork", run_vfork},
    {"shell", run_shell},
    {"exec", run_exec},
    {"daemon", run_daemon},
    {"daemon_late", run_daemon_late},
    {0},
};
