#include "trees.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/config.h"
#include "common/sysfs.h"

/* In memory, if there is room for that. */
static int make_folder(struct trees *trees)
{
    const char *chosen = getenv("TMPDIR");
    const char *const bases[] = {"/dev/shm", chosen ? chosen : "/tmp"};

    for (int i = 0; i < 2; i++) {
        snprintf(trees->folder, sizeof(trees->folder), "%s/fabric-sysfs-XXXXXX",
                 bases[i]);
        if (mkdtemp(trees->folder))
            return chmod(trees->folder, 0755);
    }
    return -1;
}

/* Until nobody holds the other end. */
static void keep(const struct trees *trees, int end)
{
    char byte;
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setpgid(0, 0);
    while (read(end, &byte, 1) < 0 && errno == EINTR)
        ;
    fabric_sysfs_remove(trees->folder);
    _exit(0);
}

static int start_keeper(struct trees *trees)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return -1;
    trees->keeper = ends[1];
    trees->pid = fork();
    if (trees->pid == 0) {
        close(ends[1]);
        keep(trees, ends[0]);
    }
    close(ends[0]);
    return trees->pid < 0 ? -1 : 0;
}

static int write_all(const struct trees *trees, int hosts)
{
    for (int host = 0; host < hosts; host++) {
        char path[320];

        snprintf(path, sizeof(path), "%s/host%d", trees->folder, host);
        if (mkdir(path, 0755) ||
            fabric_sysfs_write(fabric_config(), host, path))
            return -1;
    }
    return 0;
}

int trees_make(struct trees *trees, int hosts)
{
    if (make_folder(trees))
        return -1;
    if (start_keeper(trees)) {
        int why = errno;

        rmdir(trees->folder);
        errno = why;
        return -1;
    }
    return write_all(trees, hosts);
}

void trees_end(struct trees *trees)
{
    close(trees->keeper);
    waitpid(trees->pid, NULL, 0);
}
