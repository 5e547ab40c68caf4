#include "nccl/conf.h"

#include <limits.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nccl/release.h"

/* NAME=VALUE lines; any other is skipped. */
static void load_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;

    if (!file)
        return;
    while (getline(&line, &size, file) > 0) {
        char *value = strchr(line, '=');

        line[strcspn(line, "\n")] = '\0';
        if (!value || line[0] == '#')
            continue;
        *value = '\0';
        setenv(line, value + 1, 0);
    }
    free(line);
    fclose(file);
}

/* Until 2.29 the user's own, whatever HOME says. */
static const char *home(void)
{
    const struct passwd *user;

    if (nccl_release() >= 23003)
        return getenv("HOME");
    user = getpwuid(getuid());
    return user ? user->pw_dir : NULL;
}

static void load_home(void)
{
    const char *folder = home();
    char path[PATH_MAX];

    if (!folder)
        return;
    snprintf(path, sizeof(path), "%s/.nccl.conf", folder);
    load_file(path);
}

static void load(void)
{
    const char *named =
        nccl_release() >= 22304 ? getenv("NCCL_CONF_FILE") : NULL;

    if (named && *named)
        load_file(named);
    else
        load_home();
    load_file("/etc/nccl.conf");
}

void conf_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
}
