/* Resource limits, set before the first call and after it. */
#include "ways.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void limit(int what, rlim_t most)
{
    const struct rlimit limit = {most, most};
    if (setrlimit(what, &limit) != 0)
        abort();
}

/* All that the limit allows is the program's. */
static void open_all(void)
{
    int n = 0;
    while (open("/dev/null", O_RDONLY) >= 0)
        n++;
    printf("%d files\n", n);
}

static void run_nofile(char **argv)
{
    (void)argv;
    limit(RLIMIT_NOFILE, 8);
    init(1);
    ops(10);
    usleep(50000); /* a writer would have begun */
    open_all();
}

static void run_nofile_late(char **argv)
{
    (void)argv;
    init(1);
    ops(5);
    await_trace();
    limit(RLIMIT_NOFILE, 8);
    ops(5);
    open_all();
}

static void run_fsize(char **argv)
{
    (void)argv;
    limit(RLIMIT_FSIZE, 0);
    init(1);
    ops(10);
    usleep(50000);
}

/* The trace that is there can grow no more, and the signal kills who does not
 * handle it. */
static void run_fsize_late(char **argv)
{
    (void)argv;
    init(1);
    ops(5);
    await_trace();
    limit(RLIMIT_FSIZE, 4096);
    ops(5);
    usleep(100000);
}

static rlim_t address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu", &pages) != 1)
        abort();
    fclose(file);
    return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Ever a little more than the program itself needs: memory ends at another
 * place each time. */
static void run_as(char **argv)
{
    (void)argv;
    free(malloc(65536)); /* what NCCL allocates fits in there */
    for (rlim_t kib = 4; kib <= 32768; kib += kib / 4 < 4 ? 4 : kib / 4) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            limit(RLIMIT_AS, address_space() + kib * 1024);
            init(1);
            ops(10);
            exit(0);
        }
        int status;
        waitpid(pid, &status, 0);
        printf("%lu KiB: %d\n", (unsigned long)kib, status);
    }
}

#define REFUSE(call_, errno_)                           \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call_), 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (errno_))

/* A sandbox without threads. */
static void run_sandbox(char **argv)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_clone3, ENOSYS),
        REFUSE(SYS_clone, EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};
    (void)argv;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        abort();
    init(1);
    ops(10);
}

const struct way limit_ways[] = {
    {"nofile", run_nofile},
    {"nofile_late", run_nofile_late},
    {"fsize", run_fsize},
    {"fsize_late", run_fsize_late},
    {"as", run_as},
    {"sandbox", run_sandbox},
    {0},
};
