/*
 * What the facts about the machine cost the writer's thread, once: all GPUs of
 * a host with eight and ten RDMA ports, from files in the form of sysfs, beside
 * bare reads of as many small files.
 */
#include "bench.h"

#include "common/config.h"
#include "common/sysfs.h"
#include "nics.h"
#include "sysfs.h"

#include <fcntl.h>
#include <sys/wait.h>

enum { ROUNDS = 31, GPUS = 8, FILES = 150 };

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void describe(const char *folder)
{
    struct batch batch = {0};
    char address[PCIE_ADDRESS];
    sysfs_set_root(folder);
    for (int gpu = 0; gpu < GPUS; gpu++) {
        snprintf(address, sizeof(address), "0000:%02x:00.0", 0x10 + gpu);
        nics_describe(&batch, gpu, pcie_find(address));
    }
    /* Ten ports and their interfaces, and one more. */
    if (batch.n != 21 + GPUS * 21)
        exit(2);
}

static void read_files(const char *folder)
{
    char path[300], line[64];
    snprintf(path, sizeof(path), "%s/class/net/eth0/speed", folder);
    for (int i = 0; i < FILES; i++) {
        int fd = open(path, O_RDONLY);
        if (read(fd, line, sizeof(line)) <= 0 || close(fd) != 0)
            exit(2);
    }
}

/* Each in a process of its own, since facts are read once. */
static double spent(void (*work)(const char *), const char *folder)
{
    int ends[2];
    double ns = 0;
    if (pipe(ends) != 0)
        exit(2);
    pid_t pid = fork();
    if (pid == 0) {
        double start = cpu_ns();
        work(folder);
        ns = cpu_ns() - start;
        _exit(write(ends[1], &ns, sizeof(ns)) != sizeof(ns));
    }
    if (read(ends[0], &ns, sizeof(ns)) != sizeof(ns))
        exit(2);
    waitpid(pid, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    return ns;
}

int main(void)
{
    struct fabric_config config = *fabric_config();
    char folder[] = "/dev/shm/bench-sysfs-XXXXXX";
    double facts[ROUNDS], files[ROUNDS];
    config.ranks_per_host = GPUS;
    config.hardware.network = FABRIC_ROCE;
    config.hardware.nics = 10;
    if (!mkdtemp(folder) || fabric_sysfs_write(&config, 0, folder) != 0)
        return 2;
    for (int i = 0; i < ROUNDS; i++) {
        facts[i] = spent(describe, folder);
        files[i] = spent(read_files, folder);
    }
    fabric_sysfs_remove(folder);
    return bench_report("topology", "us", bench_median(facts, ROUNDS) / 1e3,
                        bench_median(files, ROUNDS) / 1e3, AT_MOST, 6);
}
