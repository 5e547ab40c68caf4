#include "doctor/child.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_S 20

static size_t read_all(int fd, void *buffer, size_t size)
{
    size_t used = 0;
    ssize_t n;
    char rest[512];

    while (used < size &&
           ((n = read(fd, (char *)buffer + used, size - used)) > 0 ||
            (n < 0 && errno == EINTR)))
        used += n > 0 ? (size_t)n : 0;
    while ((n = read(fd, rest, sizeof rest)) > 0 || (n < 0 && errno == EINTR))
        ; /* the child must not hang on a full pipe */
    return used;
}

/* A child whose output comes through *fd; 0 in the child. */
static pid_t start(int *fd)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC))
        return -1;
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        alarm(PATIENCE_S);
        *fd = ends[1];
        return 0;
    }
    close(ends[1]);
    *fd = ends[0];
    if (pid < 0)
        close(ends[0]);
    return pid;
}

static int finish(pid_t pid, int fd)
{
    int status;

    close(fd);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void silence(int fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null >= 0)
        dup2(null, fd);
}

int child_read(const char *const argv[], const char *const env[], bool both,
               char *text, size_t size)
{
    int fd;
    pid_t pid = start(&fd);

    if (pid == 0) {
        for (; env && *env; env++)
            putenv((char *)(uintptr_t)*env);
        silence(0);
        dup2(fd, 1);
        if (both)
            dup2(fd, 2);
        else
            silence(2);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    *text = 0;
    if (pid < 0)
        return -1;
    text[read_all(fd, text, size - 1)] = 0;
    return finish(pid, fd);
}

typedef int version_fn(int *value);

static void note_path(void *handle, struct answer *answer)
{
    struct link_map *map = NULL;

    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name)
        snprintf(answer->path, sizeof answer->path, "%s", map->l_name);
}

static void ask(const char *library, const char *function,
                struct answer *answer)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    void *found;
    version_fn *call;

    if (!handle) {
        snprintf(answer->error, sizeof answer->error, "%s", dlerror());
        return;
    }
    answer->loaded = true;
    note_path(handle, answer);
    found = function ? dlsym(handle, function) : NULL;
    if (!found)
        return;
    answer->has_symbol = true;
    memcpy(&call, &found, sizeof call);
    answer->status = call(&answer->value);
}

static void count_devices(struct answer *answer)
{
    void *handle = dlopen(answer->path, RTLD_LAZY | RTLD_NOLOAD);
    void *init = handle ? dlsym(handle, "cuInit") : NULL;
    void *count = handle ? dlsym(handle, "cuDeviceGetCount") : NULL;
    int (*call_init)(unsigned);
    version_fn *call_count;
    int n;

    if (!init || !count)
        return;
    memcpy(&call_init, &init, sizeof call_init);
    memcpy(&call_count, &count, sizeof call_count);
    if (call_init(0) == 0 && call_count(&n) == 0)
        answer->devices = n;
}

static void ask_in_child(const char *library, const char *function,
                         void (*more)(struct answer *), struct answer *answer)
{
    int fd;
    pid_t pid = start(&fd);

    *answer = (struct answer){.devices = -1};
    if (pid == 0) {
        silence(0);
        silence(1);
        silence(2);
        ask(library, function, answer);
        if (answer->loaded && more)
            more(answer);
        _exit(write(fd, answer, sizeof *answer) != sizeof *answer);
    }
    if (pid < 0 || read_all(fd, answer, sizeof *answer) != sizeof *answer) {
        *answer = (struct answer){.devices = -1};
        snprintf(answer->error, sizeof answer->error,
                 "%s: does not survive being loaded", library);
    }
    if (pid > 0)
        finish(pid, fd);
}

void child_ask(const char *library, const char *function, struct answer *answer)
{
    ask_in_child(library, function, NULL, answer);
}

void child_ask_driver(const char *library, struct answer *answer)
{
    ask_in_child(library, "cuDriverGetVersion", count_devices, answer);
}
