#include "doctor/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/child.h"
#include "doctor/elf.h"

/* Of this very program: the only one that is ever started. */
static const char *loader_path(void)
{
    static char path[256];
    struct elf self;

    if (*path || elf_open(&self, "/proc/self/exe"))
        return *path ? path : NULL;
    if (self.interp)
        snprintf(path, sizeof path, "%s", self.interp);
    elf_close(&self);
    return *path ? path : NULL;
}

/* "name => path (address)", "path (address)", "name => not found"; the rest
 * are complaints. */
static void read_line(struct loader *loader, char *line)
{
    char *arrow = strstr(line, " => ");
    char *path = arrow ? arrow + 4 : line + strspn(line, "\t ");
    char *address = strstr(path, " (0x");

    if (arrow && !strncmp(path, "not found", 9)) {
        *arrow = 0;
        if (!loader->missing)
            loader->missing = line + strspn(line, "\t ");
    } else if (*line != '\t' || !address) {
        if (!loader->trouble && *line)
            loader->trouble = line + strspn(line, "\t ");
    } else if (loader->npaths < LOADER_MOST) {
        *address = 0;
        loader->paths[loader->npaths++] = path;
    }
}

int loader_list(struct loader *loader, const char *file, const char *preload)
{
    const char *program = loader_path();
    char before[4200];
    /* A program that is started knows where it really lies, for $ORIGIN. */
    char *real = realpath(file, NULL);
    const char *argv[] = {program, real ? real : file, NULL};
    const char *env[] = {"LD_TRACE_LOADED_OBJECTS=1", preload ? before : NULL,
                         NULL};
    char *save = NULL;
    int status;

    *loader->text = 0;
    loader->npaths = 0;
    loader->missing = loader->trouble = NULL;
    if (!program) {
        free(real);
        return -1;
    }
    snprintf(before, sizeof before, "LD_PRELOAD=%s", preload ? preload : "");
    status = child_read(argv, env, true, loader->text, sizeof loader->text);
    free(real);
    for (char *line = strtok_r(loader->text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        read_line(loader, line);
    return status < 0 || status == 127 ? -1 : 0;
}

const char *loader_find(const struct loader *loader, const char *start)
{
    for (int i = 0; i < loader->npaths; i++) {
        const char *base = strrchr(loader->paths[i], '/');

        base = base ? base + 1 : loader->paths[i];
        if (!strncmp(base, start, strlen(start)))
            return loader->paths[i];
    }
    return NULL;
}
