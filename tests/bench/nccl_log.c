/* nccl_log: how fast NCCL's log is read, and in how much memory: 200 MB of the
 * lines of many processes, whose numbers never come back. The floor only finds
 * the ends of the lines. */
#include "nccl_log.h"
#include "bench.h"

#include <sys/resource.h>

enum { TOTAL = 200 << 20, PIECE = 1 << 16, MIN_MB_S = 200 };
/* What tables of fixed size may take: they fill up before the end. */
enum { MAX_GROWTH_KB = 24 << 10 };

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Lines of one process that makes a communicator and uses it. */
static size_t write_process(char *to, size_t size, int pid)
{
    size_t n = 0;
#define LINE(tid_, ...)                                                        \
    do {                                                                       \
        n += (size_t)snprintf(to + n, size - n, "node%d:%d:%d [0] NCCL INFO ", \
                              pid % 64, pid, pid + (tid_));                    \
        n += (size_t)snprintf(to + n, size - n, __VA_ARGS__);                  \
    } while (0)
    LINE(1, "NCCL_SOCKET_IFNAME set by environment to eth0\n");
    LINE(1, "Using network IB\n");
    LINE(1,
         "ncclCommInitRank comm 0x7f%06d010 rank 0 nranks 16 cudaDev 0 nvmlDev "
         "0 busId 6000 commId 0x%x - Init START\n",
         pid, pid);
    LINE(1, "+ PCI[48.0] - DEV/0-10000 (10de233010de16c1)\n");
    for (int i = 0; i < 8; i++)
        LINE(1, "Ring %02d : 15 -> 0 -> 1\n", i);
    LINE(1, "Trees [0] 1/8/-1->0->-1 [1] 1/-1/-1->0->8 [2] 1/-1/-1->0->-1\n");
    LINE(1,
         "ncclCommInitRank comm 0x7f%06d010 rank 0 nranks 16 cudaDev 0 nvmlDev "
         "0 busId 6000 commId 0x%x - Init COMPLETE\n",
         pid, pid);
    for (int i = 0; i < 16; i++)
        LINE(2 + i % 2, "Channel %02d/0 : 0[0] -> 1[1] via P2P/CUMEM\n", i % 8);
    LINE(2, "Connected all rings\n");
    for (int i = 0; i < 24; i++)
        LINE(0,
             "AllReduce: %d Bytes -> Algo RING proto SIMPLE "
             "channel{Lo..Hi}={0..%d}\n",
             4096 << i % 12, i % 8);
    LINE(0, "A line that nobody knows %d\n", pid);
#undef LINE
    n += (size_t)snprintf(to + n, size - n,
                          "%12d %12d float sum -1 17.05 0.00 0.00 0\n", pid,
                          pid);
    return n;
}

/* Fills the piece with whole processes, and cuts the last one. */
static void fill(char *piece, int *pid)
{
    static char process[16384];
    for (size_t at = 0; at < PIECE;) {
        size_t n = write_process(process, sizeof(process), ++*pid);
        size_t part = n < PIECE - at ? n : PIECE - at;
        memcpy(piece + at, process, part);
        at += part;
    }
}

static void count(void *arg, const struct nccl_log_fact *fact)
{
    ((uint64_t *)arg)[fact->kind]++;
}

static uint64_t count_lines(const char *bytes, size_t n)
{
    uint64_t lines = 0;
    for (const char *at = bytes, *end = bytes + n;
         (at = memchr(at, '\n', (size_t)(end - at))); at++)
        lines++;
    return lines;
}

static long used_kb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

int main(void)
{
    static char piece[PIECE];
    uint64_t facts[NCCL_LOG_MESSAGE + 1] = {0};
    uint64_t lines = 0;
    double parse_ns = 0, floor_ns = 0;
    int pid = 100000;
    struct nccl_log *log = nccl_log_open(0, NULL, count, facts);
    if (!log)
        return 1;
    fill(piece, &pid);
    long before_kb = used_kb();
    for (size_t done = 0; done < TOTAL; done += PIECE) {
        fill(piece, &pid);
        double start = cpu_ns();
        lines += count_lines(piece, PIECE);
        double middle = cpu_ns();
        nccl_log_feed(log, piece, PIECE);
        floor_ns += middle - start;
        parse_ns += cpu_ns() - middle;
    }
    long growth_kb = used_kb() - before_kb;
    bool whole = nccl_log_counted(log)->lines == lines &&
                 facts[NCCL_LOG_CONN] > lines / 8 &&
                 facts[NCCL_LOG_CHOICE] > lines / 4;
    nccl_log_close(log);
    double mb_s = TOTAL / 1e6 / (parse_ns / 1e9);
    bool good = whole && mb_s >= MIN_MB_S && growth_kb <= MAX_GROWTH_KB;
    printf("bench nccl_log_memory %ld kB%s\n", growth_kb,
           growth_kb <= MAX_GROWTH_KB ? "" : " FAILED");
    int slow = bench_report("nccl_log", "MB/s", mb_s,
                            TOTAL / 1e6 / (floor_ns / 1e9), AT_LEAST, 0.01);
    if (!whole)
        puts("bench nccl_log: not all lines were read FAILED");
    if (mb_s < MIN_MB_S)
        printf("bench nccl_log: less than %d MB/s FAILED\n", (int)MIN_MB_S);
    return good && !slow ? 0 : 1;
}
