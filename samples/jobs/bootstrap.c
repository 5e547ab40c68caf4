#include "bootstrap.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

#define HELLO UINT32_C(0x6a6f6221)
#define PATIENCE_MS 60000
#define RETRY_MS 10
#define ANSWER_S 5

struct hello {
    uint32_t magic;
    uint32_t rank;
};

/* What stays open for barriers: rank 0 holds a connection to every rank, the
 * others the one to rank 0. */
static struct {
    int rank;
    int *peers; /* of rank 0, by rank */
    int root;   /* of the others */
} star;

static const char *address(void)
{
    const char *name = getenv("MASTER_ADDR");

    return name && *name ? name : "127.0.0.1";
}

/* mpirun sets no port: all ranks make the same one of the job's own name. */
static int port_of_job(void)
{
    static const char *const names[] = {"PMIX_NAMESPACE",
                                        "OMPI_MCA_ess_base_jobid", "PMI_JOBID",
                                        "SLURM_JOB_ID"};
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *text = getenv(names[i]);

        for (; text && *text; text++)
            hash = (hash ^ (unsigned char)*text) * 16777619u;
    }
    return 20000 + (int)(hash % 20000);
}

/* Under torchrun the agent itself listens on MASTER_PORT: take the next. */
static int port(void)
{
    const char *text = getenv("MASTER_PORT");
    const char *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
    int number =
        text && *text ? (int)parse_count("MASTER_PORT", text) : port_of_job();

    return number + (agent && !strcmp(agent, "True"));
}

static int read_all(int fd, void *data, size_t bytes)
{
    for (char *p = data; bytes;) {
        ssize_t n = recv(fd, p, bytes, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        p += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static int write_all(int fd, const void *data, size_t bytes)
{
    for (const char *p = data; bytes;) {
        ssize_t n = send(fd, p, bytes, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        p += n;
        bytes -= (size_t)n;
    }
    return 0;
}

/* Whoever else listens or calls must not block us for ever. */
static void limit_wait(int fd, int seconds)
{
    struct timeval limit = {.tv_sec = seconds};

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

static int listen_at(int number)
{
    struct sockaddr_in any = {.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)number)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0)
        die("socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, 128))
        die("port %d: %s", number, strerror(errno));
    return fd;
}

/* Small messages to and fro: neither end may wait for more. */
static void keep(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    limit_wait(fd, PATIENCE_MS / 1000);
}

/* Answers one caller; 0 when it was a rank that had no answer yet. */
static int serve(int fd, int world, const void *data, size_t bytes)
{
    struct hello hello;

    limit_wait(fd, ANSWER_S);
    if (read_all(fd, &hello, sizeof(hello)) || hello.magic != HELLO ||
        hello.rank >= (uint32_t)world || write_all(fd, &hello, sizeof(hello)) ||
        write_all(fd, data, bytes))
        return -1;
    if (star.peers[hello.rank])
        return -1;
    star.peers[hello.rank] = fd;
    keep(fd);
    return 0;
}

static void serve_all(int world, const void *data, size_t bytes)
{
    int listener = listen_at(port());

    star.peers = calloc((size_t)world, sizeof(*star.peers));
    if (!star.peers)
        die("out of memory");
    for (int left = world - 1; left;) {
        int fd = accept(listener, NULL, NULL);

        if (fd < 0)
            continue;
        if (!serve(fd, world, data, bytes))
            left--;
        else
            close(fd);
    }
    close(listener);
}

static int connect_to(const char *name, int number)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char service[16];
    int fd;

    snprintf(service, sizeof(service), "%d", number);
    if (getaddrinfo(name, service, &hints, &found))
        die("%s: no such host", name);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen)) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

static int ask(int rank, void *data, size_t bytes)
{
    struct hello hello = {HELLO, (uint32_t)rank};
    struct hello answer;
    int fd = connect_to(address(), port());
    int rc;

    if (fd < 0)
        return -1;
    limit_wait(fd, ANSWER_S);
    rc = write_all(fd, &hello, sizeof(hello)) ||
         read_all(fd, &answer, sizeof(answer)) || answer.magic != HELLO ||
         read_all(fd, data, bytes);
    if (rc) {
        close(fd);
        return -1;
    }
    keep(fd);
    star.root = fd;
    return 0;
}

void bootstrap_broadcast(int rank, int world, void *data, size_t bytes)
{
    const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};

    star.rank = rank;
    if (world == 1)
        return;
    if (rank == 0) {
        serve_all(world, data, bytes);
        return;
    }
    for (int i = 0; i < PATIENCE_MS / RETRY_MS; i++) {
        if (!ask(rank, data, bytes))
            return;
        nanosleep(&pause, NULL);
    }
    die("rank 0 does not answer at %s:%d", address(), port());
}

/* Every rank of the barrier says that it is there; when all have, rank 0 lets
 * them go. */
static int gather_and_release(const int *ranks, int n)
{
    char byte = 0;
    int rc = 0;

    for (int i = 0; i < n; i++)
        if (ranks[i])
            rc |= read_all(star.peers[ranks[i]], &byte, 1);
    for (int i = 0; i < n; i++)
        if (ranks[i])
            rc |= write_all(star.peers[ranks[i]], &byte, 1);
    return rc;
}

void bootstrap_barrier(const int *ranks, int n)
{
    char byte = 0;

    if (star.rank == 0
            ? gather_and_release(ranks, n)
            : write_all(star.root, &byte, 1) || read_all(star.root, &byte, 1))
        die("a rank left the barrier");
}
