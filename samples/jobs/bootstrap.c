#include "bootstrap.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
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
static void limit_wait(int fd)
{
    struct timeval limit = {.tv_sec = ANSWER_S};

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

/* Answers one caller; 0 when it was a rank that had no answer yet. */
static int serve(int fd, int world, char *served, const void *data,
                 size_t bytes)
{
    struct hello hello;

    limit_wait(fd);
    if (read_all(fd, &hello, sizeof(hello)) || hello.magic != HELLO ||
        hello.rank >= (uint32_t)world || write_all(fd, &hello, sizeof(hello)) ||
        write_all(fd, data, bytes))
        return -1;
    if (served[hello.rank])
        return -1;
    served[hello.rank] = 1;
    return 0;
}

static void serve_all(int world, const void *data, size_t bytes)
{
    int listener = listen_at(port());
    char *served = calloc((size_t)world, 1);

    if (!served)
        die("out of memory");
    for (int left = world - 1; left;) {
        int fd = accept(listener, NULL, NULL);

        if (fd < 0)
            continue;
        if (!serve(fd, world, served, data, bytes))
            left--;
        close(fd);
    }
    free(served);
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
    limit_wait(fd);
    rc = write_all(fd, &hello, sizeof(hello)) ||
         read_all(fd, &answer, sizeof(answer)) || answer.magic != HELLO ||
         read_all(fd, data, bytes);
    close(fd);
    return rc ? -1 : 0;
}

void bootstrap_broadcast(int rank, int world, void *data, size_t bytes)
{
    const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};

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
