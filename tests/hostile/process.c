/* The first argument names the way; see ways.h. */
#include "ways.h"

#include "commtrace/ring.h"

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

ncclComm_t comm;
float data[4];

ncclComm_t make(int id)
{
    ncclComm_t made;
    ncclUniqueId unique = {{(char)id, (char)(id >> 8)}};
    if (ncclCommInitRank(&made, 2, unique, 0) != ncclSuccess)
        abort();
    return made;
}

void init(int id)
{
    comm = make(id);
}

void ops_on(ncclComm_t on, int n)
{
    for (int i = 0; i < n; i++)
        if (ncclAllReduce(data, data, 4, 7, 0, on, NULL) != ncclSuccess)
            abort();
}

void ops(int n)
{
    ops_on(comm, n);
}

/* The writer moves the ring's tail when something is in the database. */
static bool has_stored(int fd)
{
    uint64_t tail = 0;
    off_t at = offsetof(struct ct_ring_header, tail);
    return pread(fd, &tail, sizeof(tail), at) == sizeof(tail) && tail;
}

/* On tmpfs, else beside the trace. */
static int open_ring(void)
{
    char pattern[600];
    glob_t found;
    const char *dir = getenv("COMMTRACE_DIR");
    snprintf(pattern, sizeof(pattern), "/dev/shm/commtrace.*.%d.*",
             (int)getpid());
    int missing = glob(pattern, 0, NULL, &found);
    if (missing) {
        snprintf(pattern, sizeof(pattern), "%s/*.%d.*.ring", dir ? dir : ".",
                 (int)getpid());
        missing = glob(pattern, 0, NULL, &found);
    }
    if (missing)
        return -1;
    int fd = open(found.gl_pathv[0], O_RDONLY);
    globfree(&found);
    return fd;
}

void await_trace(void)
{
    int fd = getenv("HOSTILE_TRACED") ? open_ring() : -1;
    if (fd < 0)
        return;
    while (!has_stored(fd))
        usleep(1000);
    close(fd);
}

static int remove_one(const char *path, const struct stat *st, int kind,
                      struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

void remove_trace(void)
{
    if (nftw(getenv("COMMTRACE_DIR"), remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0)
        abort();
}

void await_child(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "child: %x\n", (unsigned)status);
        abort();
    }
}

void say_issued(long n)
{
    printf("issued %ld\n", n);
}

int main(int argc, char **argv)
{
    static const struct way *const tables[] = {
        end_ways,  file_ways,  fork_ways,   limit_ways,
        many_ways, place_ways, signal_ways, thread_ways,
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
        const struct way *way = tables[i];
        while (argc > 1 && way->name && strcmp(argv[1], way->name) != 0)
            way++;
        if (argc < 2 || !way->name)
            continue;
        way->run(argv);
        puts("done");
        return 0;
    }
    return 2;
}
