#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commtrace/nccl_settings.h"
#include "doctor/trace_dir.h"
#include "doctor/verdict.h"

#define CANNOT_START 127 /* as a shell says it */

/* Signals that ask the command to do something pass through. */
static const int passed[] = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP,
                             SIGUSR1, SIGUSR2, SIGALRM, SIGCONT};

/* Says why the command cannot be recorded, where that is certain. */
static int refuse(const struct cli *cli, struct verdict *verdict,
                  const char *library)
{
    if (verdict_of(verdict, cli->paths, library, false) ||
        !verdict->cannot_work)
        return 0; /* what cannot be started, says so when it is */
    return cli_fail(cli, "%s", verdict->why);
}

/* ld.so takes a blank or colon for the end of a name in LD_PRELOAD. */
static int preload(const struct cli *cli, struct verdict *verdict)
{
    const char *before = getenv("LD_PRELOAD");
    char library[PATH_MAX], value[2 * PATH_MAX];
    int status;

    if (verdict_library(library, sizeof library))
        return cli_fail(cli, "%s: not found beside this program", library);
    if ((status = refuse(cli, verdict, library)))
        return status;
    if (strpbrk(library, " \t\n:"))
        return cli_fail(cli,
                        "%s: a path with blanks or colons cannot be "
                        "preloaded",
                        library);
    if ((size_t)snprintf(value, sizeof value, "%s%s%s", library,
                         before && *before ? ":" : "",
                         before ? before : "") >= sizeof value)
        return cli_fail(cli, "LD_PRELOAD: too long");
    setenv("LD_PRELOAD", value, 1);
    /* What hooks do where they see NCCL; by now nobody else has set it. */
    if (verdict->inside.told && verdict->inside.unset)
        setenv(CT_NCCL_PROFILER_VARIABLE, "STATIC_PLUGIN", 1);
    return 0;
}

static int choose_dir(const struct cli *cli, const struct command *command,
                      char *dir, size_t size)
{
    const char *wanted = cli->dir ? cli->dir : getenv("COMMTRACE_DIR");
    char me[16];

    if (command->dir)
        wanted = command->dir; /* it has the last word */
    snprintf(me, sizeof me, "%d", (int)getpid());
    if (trace_dir_name(dir, size, wanted, me))
        return cli_fail(cli, "%s: %s", wanted ? wanted : "current folder",
                        strerror(errno));
    if (mkdir(dir, 0777) && errno != EEXIST)
        return cli_fail(cli, "%s: %s", dir, strerror(errno));
    if (access(dir, W_OK))
        return cli_fail(cli, "%s: %s", dir, strerror(errno));
    setenv("COMMTRACE_DIR", dir, 1);
    return 0;
}

static int count_traces(const char *dir)
{
    DIR *folder = opendir(dir);
    struct dirent *entry;
    int n = 0;

    while (folder && (entry = readdir(folder))) {
        const char *end = strrchr(entry->d_name, '.');

        n += end && !strcmp(end, ".db");
    }
    if (folder)
        closedir(folder);
    return n;
}

/* A signal of the terminal has reached the command by itself; one that was
 * sent to this process is the command's as well. */
static void pass_on(pid_t child, const siginfo_t *info)
{
    if (info->si_code == SI_USER || info->si_code == SI_QUEUE ||
        info->si_code == SI_TKILL)
        kill(child, info->si_signo);
}

static int wait_for(pid_t child, const sigset_t *signals)
{
    int status;

    for (;;) {
        siginfo_t info;
        pid_t ended = waitpid(child, &status, WNOHANG);

        if (ended == child)
            return status;
        if (ended < 0 && errno != EINTR)
            return CANNOT_START << 8;
        if (sigwaitinfo(signals, &info) > 0 && info.si_signo != SIGCHLD)
            pass_on(child, &info);
    }
}

static void say_where(const char *dir, int before)
{
    int n = count_traces(dir) - before;

    rmdir(dir); /* if it is empty */
    if (n > 0)
        fprintf(stderr,
                "commtrace: %d process%s recorded; next: commtrace report "
                "%s\n",
                n, n == 1 ? "" : "es", dir);
    else
        fprintf(stderr, "commtrace: nothing recorded: no NCCL call of this "
                        "command was seen here\n");
}

/* Ends as the command did, by the same signal where it was one. */
static int end_as(int status)
{
    if (WIFSIGNALED(status)) {
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
}

static int start(char **command, const sigset_t *mask, int report_fd)
{
    int error;

    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(command[0], command);
    error = errno;
    if (write(report_fd, &error, sizeof error) < 0)
        return CANNOT_START;
    return CANNOT_START;
}

/* The child, or -1 with errno where the command cannot be started: exec's
 * error comes through a pipe that a successful exec closes. */
static pid_t spawn(char **command, const sigset_t *mask)
{
    int ends[2], error = 0;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC))
        return -1;
    child = fork();
    if (child == 0)
        _exit(start(command, mask, ends[1]));
    close(ends[1]);
    if (child > 0 && read(ends[0], &error, sizeof error) > 0) {
        waitpid(child, NULL, 0);
        child = -1;
        errno = error;
    }
    close(ends[0]);
    return child;
}

int run_run(const struct cli *cli)
{
    static struct verdict verdict;
    char dir[PATH_MAX];
    sigset_t signals, before;
    int status, traces;
    pid_t child;

    if ((status = preload(cli, &verdict)) ||
        (status = choose_dir(cli, &verdict.command, dir, sizeof dir)))
        return status;
    traces = count_traces(dir);
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
        sigaddset(&signals, passed[i]);
    sigprocmask(SIG_BLOCK, &signals, &before);
    child = spawn(cli->paths, &before);
    if (child < 0) {
        status = errno;
        rmdir(dir); /* if it is empty */
        cli_fail(cli, "%s: %s", cli->paths[0], strerror(status));
        return status == ENOENT ? CANNOT_START : CANNOT_START - 1;
    }
    status = wait_for(child, &signals);
    say_where(dir, traces);
    return end_as(status);
}
