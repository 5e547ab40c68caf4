#include "nccl_settings.h"

#include "commtrace/nccl_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The line being read, as far as it matters. */
struct line {
    const char *name;
    size_t at;  /* bytes of it so far */
    bool other; /* it sets something else */
    bool done;
    struct nccl_setting *setting;
};

static void take(struct line *line, char c)
{
    size_t n = strlen(line->name);
    struct nccl_setting *setting = line->setting;
    if (c == '\n') {
        line->done |= !line->other && line->at > n;
        line->at = 0;
        line->other = false;
    } else if (line->at < n) {
        line->other |= c != line->name[line->at++];
    } else if (line->at == n) {
        line->other |= c != '=';
        line->at++;
        if (!line->other)
            *setting->value = 0;
    } else if (!line->other) {
        size_t at = line->at++ - n - 1;
        if (at + 1 < sizeof(setting->value)) {
            setting->value[at] = c;
            setting->value[at + 1] = 0;
        }
    }
}

/* The first line that sets it, as NCCL replaces nothing. */
static bool read_file(int fd, const char *name, struct nccl_setting *setting)
{
    struct line line = {.name = name, .setting = setting};
    char bytes[512];
    ssize_t n;
    while (!line.done && (n = read(fd, bytes, sizeof(bytes))) > 0)
        for (ssize_t i = 0; i < n && !line.done; i++)
            take(&line, bytes[i]);
    if (!line.done)
        take(&line, '\n');
    size_t end = strlen(setting->value);
    if (line.done && end && setting->value[end - 1] == '\r')
        setting->value[end - 1] = 0;
    return line.done;
}

/* True: the search is over. */
static bool look_into(const char *path, const char *name,
                      struct nccl_setting *setting)
{
    enum ct_nccl_conf conf = ct_nccl_conf_at(path);
    if (conf == CT_NCCL_NO_CONF)
        return false;
    snprintf(setting->file, sizeof(setting->file), "%s", path);
    if (conf == CT_NCCL_CONF_ONCE) {
        setting->from = SETTING_SECRET;
        return true;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (read_file(fd, name, setting))
        setting->from = SETTING_FILE;
    close(fd);
    return setting->from == SETTING_FILE;
}

static bool look_into_home(const char *name, int version,
                           struct nccl_setting *setting)
{
    char path[1024], text[1024];
    const char *home = NULL;
    struct passwd entry, *found = NULL;
    if (version >= CT_NCCL_HOME)
        home = getenv("HOME");
    else if (getpwuid_r(getuid(), &entry, text, sizeof(text), &found) == 0 &&
             found)
        home = entry.pw_dir;
    if (!home)
        return false;
    snprintf(path, sizeof(path), "%s/" CT_NCCL_CONF_OF_HOME, home);
    return look_into(path, name, setting);
}

static void look(const char *name, int version, struct nccl_setting *setting)
{
    const char *value = getenv(name);
    if (value) {
        setting->from = SETTING_ENVIRONMENT;
        snprintf(setting->value, sizeof(setting->value), "%s", value);
        return;
    }
    const char *file = getenv("NCCL_CONF_FILE");
    if (!file || !*file || version < CT_NCCL_CONF_FILE)
        file = NULL;
    if (file ? look_into(file, name, setting)
             : look_into_home(name, version, setting))
        return;
    look_into(CT_NCCL_CONF_OF_HOST, name, setting);
}

void nccl_setting(const char *name, int version, struct nccl_setting *setting)
{
    int saved = errno;
    setting->from = SETTING_NOWHERE;
    *setting->value = *setting->file = 0;
    look(name, version, setting);
    errno = saved;
}
