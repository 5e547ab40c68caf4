/*
 * Starts a job of several ranks on this machine, as torchrun would: sets RANK,
 * LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT; with more
 * than one virtual host also NCCL_HOSTID. With a FABRIC file, each rank gets a
 * COMMTRACE_SYSFS of its host, and where the file asks for one of the fabric's
 * releases of NCCL, ranks find that one first. Passes signals on; when a rank
 * fails, ends the others and returns that rank's status.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/config.h"
#include "trees.h"

/* After SIGTERM; then SIGKILL. */
#define GRACE_S 5

struct launch {
    int n;
    int hosts;
    int per_host;
    char **command;
    pid_t *pid; /* 0: ended */
    int running;
    int status; /* of the first rank that failed */
    struct trees trees;
};

static void fail(const char *what)
{
    fprintf(stderr, "launch: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void usage(FILE *out)
{
    fputs(
        "usage: launch -n RANKS [--hosts HOSTS] [--] PROGRAM [ARGUMENTS]\n"
        "  --hosts HOSTS   virtual hosts that share the ranks evenly; without\n"
        "                  it, the ranks per host of the FABRIC file, else 1\n"
        "example: launch -n 8 --hosts 2 -- train3d --tp 8\n",
        out);
}

static int positive(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end || value < 1 || value > 4096) {
        fprintf(stderr, "launch: '%s' is not a number of ranks or hosts\n",
                text);
        exit(2);
    }
    return (int)value;
}

static void parse(struct launch *l, int argc, char **argv)
{
    static const struct option options[] = {
        {"hosts", required_argument, NULL, 'H'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "+n:", options, NULL)) != -1) {
        if (option == 'n')
            l->n = positive(optarg);
        else if (option == 'H')
            l->hosts = positive(optarg);
        else {
            usage(option == 'h' ? stdout : stderr);
            exit(option == 'h' ? 0 : 2);
        }
    }
    if (!l->n || optind == argc) {
        usage(stderr);
        exit(2);
    }
    l->command = argv + optind;
}

static void place_ranks(struct launch *l)
{
    const char *file = getenv("FABRIC");

    if (l->hosts)
        l->per_host = (l->n + l->hosts - 1) / l->hosts;
    else if (file && *file)
        l->per_host = fabric_config()->ranks_per_host;
    else
        l->per_host = l->n;
    l->hosts = (l->n + l->per_host - 1) / l->per_host;
}

/* The system picks it. It stays bound as long as we run, so that nobody else is
 * given it; rank 0 may bind it, too, and listen, since both say that they do
 * not mind. */
static int reserve_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
        getsockname(fd, (struct sockaddr *)&address, &size) ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
        fail("no free port");
    return ntohs(address.sin_port);
}

static void set(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

/* ../fabric/nccl-A.B beside this program, before what the library path has. */
static void choose_nccl(void)
{
    const char *file = getenv("FABRIC"), *before = getenv("LD_LIBRARY_PATH");
    const char *release =
        file && *file ? fabric_nccl_release(fabric_config()) : NULL;
    char here[PATH_MAX], path[2 * PATH_MAX];
    ssize_t n =
        release ? readlink("/proc/self/exe", here, sizeof(here) - 1) : 0;

    if (n <= 0)
        return;
    here[n] = '\0';
    *strrchr(here, '/') = '\0';
    snprintf(path, sizeof(path), "%s/../fabric/nccl-%s%s%s", here, release,
             before && *before ? ":" : "", before ? before : "");
    setenv("LD_LIBRARY_PATH", path, 1);
}

/* What the ranks are to take for /sys; theirs, unless somebody has chosen. */
static void choose_sysfs(struct launch *l)
{
    const char *file = getenv("FABRIC");

    if (!file || !*file || getenv("COMMTRACE_SYSFS"))
        return;
    if (trees_make(&l->trees, l->hosts))
        fail("files of the hosts");
}

static void set_environment(const struct launch *l, int rank, int port)
{
    int host = rank / l->per_host;
    int left = l->n - host * l->per_host;
    char id[sizeof(l->trees.folder) + 32];

    set("RANK", rank);
    set("LOCAL_RANK", rank % l->per_host);
    set("WORLD_SIZE", l->n);
    set("LOCAL_WORLD_SIZE", left < l->per_host ? left : l->per_host);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    set("MASTER_PORT", port);
    if (l->hosts > 1) {
        snprintf(id, sizeof(id), "host%d", host);
        setenv("NCCL_HOSTID", id, 1);
    }
    if (l->trees.pid) {
        snprintf(id, sizeof(id), "%s/host%d", l->trees.folder, host);
        setenv("COMMTRACE_SYSFS", id, 1);
    }
}

static pid_t start(const struct launch *l, int rank, int port,
                   const sigset_t *mask)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid) {
        if (pid > 0)
            setpgid(pid, pid); /* whichever of the two comes first */
        return pid;
    }
    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, mask, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    set_environment(l, rank, port);
    execvp(l->command[0], l->command);
    fprintf(stderr, "launch: %s: %s\n", l->command[0], strerror(errno));
    _exit(127);
}

/* A rank is a process group: it may be a shell around the program. */
static void signal_all(const struct launch *l, int sig)
{
    for (int i = 0; i < l->n; i++) {
        if (l->pid[i] > 0)
            kill(-l->pid[i], sig);
    }
}

static int exit_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void note_end(struct launch *l, pid_t pid, int status)
{
    int code = exit_code(status);

    for (int i = 0; i < l->n; i++) {
        if (l->pid[i] != pid)
            continue;
        l->pid[i] = 0;
        l->running--;
        if (!code || l->status)
            return;
        l->status = code;
        fprintf(stderr, "launch: rank %d ended with status %d\n", i, code);
        signal_all(l, SIGTERM);
        signal_all(l, SIGCONT); /* a stopped rank must hear it, too */
    }
}

static void reap(struct launch *l)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        note_end(l, pid, status);
}

/* All signals are blocked; they are taken one at a time here. */
static void wait_for_all(struct launch *l, const sigset_t *set)
{
    const struct timespec grace = {.tv_sec = GRACE_S};

    while (l->running) {
        int sig = l->status ? sigtimedwait(set, NULL, &grace)
                            : sigwaitinfo(set, NULL);

        if (sig < 0 && errno == EAGAIN)
            signal_all(l, SIGKILL);
        else if (sig > 0 && sig != SIGCHLD)
            signal_all(l, sig);
        reap(l);
    }
}

static void block(sigset_t *set, sigset_t *old)
{
    static const int handled[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,
                                  SIGQUIT, SIGUSR1, SIGUSR2};

    sigemptyset(set);
    for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
        sigaddset(set, handled[i]);
    sigprocmask(SIG_BLOCK, set, old);
}

int main(int argc, char **argv)
{
    struct launch l = {0};
    sigset_t set;
    sigset_t old;
    int port;

    parse(&l, argc, argv);
    place_ranks(&l);
    l.pid = calloc((size_t)l.n, sizeof(*l.pid));
    if (!l.pid)
        fail("memory");
    choose_nccl();
    choose_sysfs(&l);
    port = reserve_port();
    block(&set, &old);
    for (int i = 0; i < l.n; i++) {
        l.pid[i] = start(&l, i, port, &old);
        if (l.pid[i] < 0) {
            signal_all(&l, SIGKILL);
            fail("fork");
        }
        l.running++;
    }
    wait_for_all(&l, &set);
    if (l.trees.pid)
        trees_end(&l.trees);
    free(l.pid);
    return l.status;
}
