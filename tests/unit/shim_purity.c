/*
 * The hook path: once a communicator, its stream, a bracket and the place of a
 * call have been used, an operation allocates nothing and enters the kernel
 * never. The first is counted, the second enforced by seccomp.
 */
#include "shim_test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static _Thread_local bool armed;
static _Thread_local unsigned allocations;

void *malloc(size_t size)
{
    allocations += armed;
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    allocations += armed;
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    allocations += armed;
    return __libc_realloc(old, size);
}

int cudaGraphLaunch(void *exec, void *stream);

static float data[4];
static int refused; /* launches of graphs */

/* The only place of each call, since the first one from a place asks the
 * loader: neither copied into its caller nor left before the last one. */
static __attribute__((noinline)) void use(ncclComm_t comm)
{
    ncclAllReduce(data, data, 4, 7, 0, comm, NULL);
    ncclGroupStart();
    ncclSend(data, 4, 7, 1, comm, NULL);
    ncclRecv(data, 4, 7, 1, comm, NULL);
    ncclGroupEnd();
    refused += cudaGraphLaunch(data, NULL) != 0;
    __asm__ volatile("");
}

/* Any system call of this thread but its own end fails with a number. */
static int forbid_system_calls(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof(rules) / sizeof(*rules), rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void child(void)
{
    ncclComm_t comm;
    ncclCommInitRank(&comm, 2, some_id(1), 0);
    use(comm);
    if (forbid_system_calls() != 0)
        _exit(77);
    armed = true;
    for (int i = 0; i < 100000; i++)
        use(comm);
    armed = false;
    syscall(SYS_exit_group, allocations || refused ? 1 : 0);
}

static void test_hook_path(void **state)
{
    char dir[] = "/tmp/shim-purity-XXXXXX", command[64];
    int status;
    (void)state;
    assert_non_null(mkdtemp(dir));
    setenv("COMMTRACE_DIR", dir, 1);
    pid_t pid = fork();
    if (pid == 0)
        child();
    waitpid(pid, &status, 0);
    snprintf(command, sizeof(command), "rm -rf %s /dev/shm/commtrace.*.%d.*",
             dir, (int)pid);
    assert_int_equal(system(command), 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hook_path)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
