#include "doctor/nccl_setting.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The first line of a file that sets it, as NCCL takes it. */
static bool look_into(const char *path, const char *name,
                      struct nccl_setting *setting)
{
    struct stat st;
    FILE *file;
    char line[4096];
    size_t n = strlen(name);

    if (stat(path, &st) || !S_ISREG(st.st_mode) || !(file = fopen(path, "re")))
        return false;
    while (!*setting->where && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, n) || line[n] != '=')
            continue;
        line[strcspn(line, "\r\n")] = 0;
        snprintf(setting->value, sizeof setting->value, "%.255s", line + n + 1);
        snprintf(setting->where, sizeof setting->where, "in %.500s", path);
    }
    fclose(file);
    return *setting->where;
}

struct nccl_setting nccl_setting_find(const char *name)
{
    struct nccl_setting setting = {.value = ""};
    const char *value = getenv(name), *file = getenv("NCCL_CONF_FILE");
    const char *home = getenv("HOME");
    char path[512];

    if (value) {
        snprintf(setting.value, sizeof setting.value, "%s", value);
        snprintf(setting.where, sizeof setting.where, "in the environment");
        return setting;
    }
    snprintf(path, sizeof path, "%.490s/.nccl.conf", home ? home : "");
    if (!look_into(file && *file ? file : path, name, &setting))
        look_into("/etc/nccl.conf", name, &setting);
    return setting;
}
