/*
 * What a hooked operation costs without GPU timing, beside the least that any
 * recorder pays: two clock readings and a 128-byte store; and what it costs to
 * know its call site, once all call sites were met. How that is done is chosen
 * when a process starts, so there are two of them. Blocks alternate, so that
 * the machine's mood hits all alike. What is not recorded costs nothing, so
 * their traces must hold what they issued.
 */
#include "bench.h"
#include "bench_trace.h"
#include "commtrace/nccl_abi.h"

#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

ncclResult_t ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);
ncclResult_t ncclAllReduce(const void *, void *, size_t, ncclDataType_t,
                           ncclRedOp_t, ncclComm_t, cudaStream_t);

enum { BLOCKS = 400, OPS = 2000, SLOTS = 8192 };
enum { COUNTS = 32 }; /* each is a call site of its own */
enum request { FLOOR, HOOK };

struct slot {
    int64_t enter;
    int64_t leave;
    uint64_t rest[14];
};

static struct slot *slots;

static int64_t now(void)
{
    return (int64_t)bench_ns();
}

static double floor_block(void)
{
    static unsigned at;
    double start = bench_ns();
    for (int i = 0; i < OPS; i++) {
        struct slot *slot = &slots[at++ % SLOTS];
        struct slot filled = {.enter = now(), .rest = {(uint64_t)i, 1, 2, 3}};
        filled.leave = now();
        *(volatile struct slot *)slot = filled;
    }
    return (bench_ns() - start) / OPS;
}

static double hook_block(ncclComm_t comm)
{
    static float data[4 + COUNTS];
    double start = bench_ns();
    for (int i = 0; i < OPS; i++)
        ncclAllReduce(data, data, 4 + i % COUNTS, 7, 0, comm, NULL);
    return (bench_ns() - start) / OPS;
}

/* Answers requests with ns per operation, until there are no more. */
static int serve(void)
{
    unsigned char request;
    ncclComm_t comm;
    ncclUniqueId id = {{1}};
    slots = calloc(SLOTS, sizeof(*slots));
    if (!slots || ncclCommInitRank(&comm, 2, id, 0) != ncclSuccess)
        return 2;
    while (read(STDIN_FILENO, &request, 1) == 1) {
        double ns = request == FLOOR ? floor_block() : hook_block(comm);
        if (write(STDOUT_FILENO, &ns, sizeof(ns)) != sizeof(ns))
            return 2;
    }
    return 0;
}

struct server {
    int requests, answers;
    pid_t pid;
};

/* This program again, with the recorder in front. */
static struct server start(const char *stacks, const char *dir, char **argv)
{
    char library[4096];
    int requests[2], answers[2];
    if (pipe(requests) != 0 || pipe(answers) != 0)
        exit(2);
    struct server server = {requests[1], answers[0], fork()};
    if (server.pid != 0) {
        close(requests[0]);
        close(answers[1]);
        return server;
    }
    dup2(requests[0], STDIN_FILENO);
    dup2(answers[1], STDOUT_FILENO);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    bench_library(library, sizeof(library));
    setenv("BENCH_HOOK_SERVE", "1", 1);
    setenv("LD_PRELOAD", library, 1);
    setenv("COMMTRACE_DIR", dir, 1);
    setenv("COMMTRACE_TIMING", "off", 1);
    setenv("COMMTRACE_STACKS", stacks, 1);
    execv("/proc/self/exe", argv);
    _exit(2);
}

static double ask(const struct server *server, enum request request)
{
    unsigned char byte = (unsigned char)request;
    double ns;
    if (write(server->requests, &byte, 1) != 1 ||
        read(server->answers, &ns, sizeof(ns)) != sizeof(ns))
        exit(2);
    return ns;
}

static void stop(const struct server *server)
{
    int status;
    close(server->requests);
    if (waitpid(server->pid, &status, 0) != server->pid || status != 0)
        exit(2);
}

/* Lost is what met a full ring: too little to matter to a median. */
static int check(const char *stacks, const char *dir, bool has_stacks)
{
    int64_t ops = bench_trace_ask(dir, "SELECT count(*) FROM op");
    int64_t lost = bench_trace_ask(dir, "SELECT coalesce(sum(n), 0) FROM loss"
                                        " WHERE what = 'op'");
    int64_t known = bench_trace_ask(dir, "SELECT count(*) FROM stack");
    if (ops + lost == BLOCKS * OPS && lost <= ops / 4 &&
        (known > 0) == has_stacks)
        return 0;
    printf("bench hook, stacks %s: %lld ops of %d recorded, %lld lost, %lld "
           "stacks FAILED\n",
           stacks, (long long)ops, BLOCKS * OPS, (long long)lost,
           (long long)known);
    return 1;
}

int main(int argc, char **argv)
{
    static double off[BLOCKS], first[BLOCKS], least[BLOCKS];
    char off_dir[] = "/tmp/bench-hook-XXXXXX";
    char first_dir[] = "/tmp/bench-hook-XXXXXX";
    (void)argc;
    if (getenv("BENCH_HOOK_SERVE"))
        return serve();
    if (!mkdtemp(off_dir) || !mkdtemp(first_dir))
        return 2;
    struct server without = start("off", off_dir, argv);
    struct server with = start("first", first_dir, argv);
    for (int i = 0; i < BLOCKS; i++) {
        least[i] = ask(&with, FLOOR);
        for (int k = 0; k < 2; k++) /* either one first, in turn */
            if ((i ^ k) & 1)
                first[i] = ask(&with, HOOK);
            else
                off[i] = ask(&without, HOOK);
        usleep(4000); /* the writers catch up: a full ring costs nothing */
    }
    stop(&without);
    stop(&with);
    int failed = check("off", off_dir, false) | check("first", first_dir, true);
    bench_remove(off_dir);
    bench_remove(first_dir);
    double with_ns = bench_median(first, BLOCKS);
    double without_ns = bench_median(off, BLOCKS);
    double floor_ns = bench_median(least, BLOCKS);
    return failed |
           bench_report("hook", "ns", with_ns, floor_ns, AT_MOST, 1.5) |
           bench_report("hook_stacks", "ns", with_ns, without_ns, AT_MOST, 1.1);
}
