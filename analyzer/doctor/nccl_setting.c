#include "doctor/nccl_setting.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commtrace/nccl_settings.h"

/* The first line of a file that sets it, as NCCL takes it. */
static void read_file(const char *path, const char *name,
                      struct nccl_setting *setting)
{
    FILE *file = fopen(path, "re");
    char line[4096];
    size_t n = strlen(name);

    while (file && !*setting->where && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, n) || line[n] != '=')
            continue;
        line[strcspn(line, "\r\n")] = 0;
        snprintf(setting->value, sizeof setting->value, "%.255s", line + n + 1);
        snprintf(setting->where, sizeof setting->where, "in %.500s", path);
    }
    if (file)
        fclose(file);
}

static bool look_into(const char *path, const char *name,
                      struct nccl_setting *setting)
{
    switch (ct_nccl_conf_at(path)) {
    case CT_NCCL_CONF:
        read_file(path, name, setting);
        break;
    case CT_NCCL_CONF_ONCE:
        snprintf(setting->where, sizeof setting->where, "%.500s", path);
        setting->secret = true;
        break;
    default:
        break;
    }
    return *setting->where;
}

static const char *home(int version)
{
    const struct passwd *user;

    if (version >= CT_NCCL_HOME)
        return getenv("HOME");
    user = getpwuid(getuid());
    return user ? user->pw_dir : NULL;
}

static bool look_into_home(const char *name, int version,
                           struct nccl_setting *setting)
{
    const char *folder = home(version);
    char path[512];

    if (!folder)
        return false;
    snprintf(path, sizeof path, "%.490s/" CT_NCCL_CONF_OF_HOME, folder);
    return look_into(path, name, setting);
}

struct nccl_setting nccl_setting_find(const char *name, int version)
{
    struct nccl_setting setting = {.value = ""};
    const char *value = getenv(name), *file = getenv("NCCL_CONF_FILE");

    if (version < 0)
        version = INT_MAX;
    if (value) {
        snprintf(setting.value, sizeof setting.value, "%s", value);
        snprintf(setting.where, sizeof setting.where, "in the environment");
        return setting;
    }
    if (file && (!*file || version < CT_NCCL_CONF_FILE))
        file = NULL;
    if (file ? !look_into(file, name, &setting)
             : !look_into_home(name, version, &setting))
        look_into(CT_NCCL_CONF_OF_HOST, name, &setting);
    return setting;
}
