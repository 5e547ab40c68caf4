#include "doctor/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/env.h"

#define MOST_STEPS 8 /* the kernel follows 4 scripts */
#define HEAD 256     /* and reads as much of each first line */

static int check_file(const char *path)
{
    struct stat file;

    if (stat(path, &file))
        return errno;
    if (!S_ISREG(file.st_mode))
        return EACCES;
    return access(path, X_OK) ? errno : 0;
}

/* As execvp looks for it. */
static int find_program(const char *name, char path[PATH_MAX])
{
    const char *places = getenv("PATH");
    int error = ENOENT;

    if (strchr(name, '/') || !*name) {
        snprintf(path, PATH_MAX, "%s", name);
        return *name ? check_file(name) : ENOENT;
    }
    for (const char *p = places ? places : "/bin:/usr/bin"; p;) {
        const char *end = strchrnul(p, ':');
        int status;

        if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)(end - p), p,
                     end > p ? "/" : "", name) < PATH_MAX) {
            status = check_file(path);
            if (!status)
                return 0;
            if (status != ENOENT && status != ENOTDIR)
                error = status;
        }
        p = *end ? end + 1 : NULL;
    }
    snprintf(path, PATH_MAX, "%s", name);
    return error;
}

/* The words of "#!interpreter argument": 0 where the file is no script. */
static int read_script(const char *path, char line[HEAD], char *words[2])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, line, HEAD - 1);
    char *save = NULL;

    if (fd >= 0)
        close(fd);
    if (n < 3 || memcmp(line, "#!", 2) != 0)
        return 0;
    line[n] = 0;
    line[strcspn(line, "\n")] = 0;
    words[0] = strtok_r(line + 2, " \t", &save);
    words[1] = words[0] ? strtok_r(NULL, "", &save) : NULL;
    return words[0] ? words[1] ? 2 : 1 : 0;
}

static void add_step(struct command *command, const char *path)
{
    size_t used = strlen(command->via);

    snprintf(command->via + used, sizeof command->via - used, "%s%s",
             used ? " -> " : "", path);
}

static bool is_env(const char *path)
{
    const char *base = strrchr(path, '/');

    return !strcmp(base ? base + 1 : path, "env");
}

/* The program that a script at command->program starts, or NULL. */
static const char *next_of(struct command *command, char line[HEAD])
{
    char *words[2] = {NULL, NULL};
    int n = read_script(command->program, line, words);

    if (!n)
        return NULL;
    snprintf(command->script, sizeof command->script, "%s", command->program);
    if (n == 2 && is_env(words[0])) {
        char *argument[] = {words[1], NULL};
        char *const *started = env_split(command, argument);

        return started ? *started : NULL;
    }
    return words[0];
}

int command_resolve(struct command *command, char *const argv[])
{
    char *const *words = argv;
    const char *name = argv[0];
    char line[HEAD];
    int error = 0;

    *command = (struct command){.preload = NULL};
    for (int step = 0; name; step++) {
        if (step == MOST_STEPS)
            return ELOOP;
        error = find_program(name, command->program);
        if (error)
            return error;
        add_step(command, command->program);
        if (words && is_env(command->program)) {
            words = env_starts(command, words + 1);
            name = words ? *words : NULL;
        } else {
            words = NULL;
            name = next_of(command, line);
        }
    }
    return 0;
}
