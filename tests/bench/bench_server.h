/* Recorded processes of a benchmark, which answer requests of one byte with
 * one number each. */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H

#include "bench.h"

#include <sys/wait.h>

struct bench_server {
    int requests, answers;
    pid_t pid;
    char dir[40]; /* of its trace */
};

/* In such a process? */
static inline bool bench_is_server(void)
{
    return getenv("BENCH_SERVE") != NULL;
}

/* Answers requests until there are no more. */
static inline int bench_serve(double (*answer)(int request))
{
    unsigned char request;
    while (read(STDIN_FILENO, &request, 1) == 1) {
        double value = answer(request);
        if (write(STDOUT_FILENO, &value, sizeof(value)) != sizeof(value))
            return 2;
    }
    return 0;
}

/* This program again, with the recorder in front, and settings NAME=VALUE up to
 * a NULL. */
static inline struct bench_server bench_start(char **argv,
                                              const char *const *settings)
{
    char library[4096];
    int requests[2], answers[2];
    struct bench_server server = {.dir = "/tmp/bench-XXXXXX"};
    if (!mkdtemp(server.dir) || pipe(requests) != 0 || pipe(answers) != 0)
        exit(2);
    server.requests = requests[1];
    server.answers = answers[0];
    server.pid = fork();
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
    setenv("BENCH_SERVE", "1", 1);
    setenv("LD_PRELOAD", library, 1);
    setenv("COMMTRACE_DIR", server.dir, 1);
    for (; *settings; settings++)
        putenv((char *)*settings);
    execv("/proc/self/exe", argv);
    _exit(2);
}

static inline double bench_ask(const struct bench_server *server, int request)
{
    unsigned char byte = (unsigned char)request;
    double value;
    if (write(server->requests, &byte, 1) != 1 ||
        read(server->answers, &value, sizeof(value)) != sizeof(value)) {
        puts("bench: a recorded process does not answer FAILED");
        exit(2);
    }
    return value;
}

static inline void bench_stop(const struct bench_server *server)
{
    int status;
    close(server->requests);
    if (waitpid(server->pid, &status, 0) != server->pid || status != 0)
        exit(2);
}

#endif
