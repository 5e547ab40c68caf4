#include "doctor/nccl_log.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "doctor/facts.h"

/* NCCL before it prints its version on stdout as soon as it logs. */
enum { QUIET_SINCE = 22203 };

struct setting {
    char value[256];
    char where[512]; /* empty: it is not set */
};

/* The first line of a file that sets it, as NCCL takes it. */
static bool look_into(const char *path, const char *name,
                      struct setting *setting)
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

static struct setting find(const char *name)
{
    struct setting setting = {.value = ""};
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

/* The user logs himself: his log is read if it is a file. */
static void say_theirs(const struct setting *debug, const struct setting *file,
                       struct facts *facts)
{
    if (!*debug->where)
        facts_add(facts, "NCCL's log", FACT_NOTE,
                  "not had: NCCL_DEBUG_FILE is set %s, NCCL_DEBUG is not",
                  file->where);
    else if (*file->value)
        facts_add(facts, "NCCL's log", FACT_GOOD,
                  "NCCL_DEBUG=%.40s is set %s: %.200s is read, and has what "
                  "it asks for",
                  debug->value, debug->where, file->value);
    else
        facts_add(facts, "NCCL's log", FACT_NOTE,
                  "not had: NCCL_DEBUG=%.40s is set %s without "
                  "NCCL_DEBUG_FILE",
                  debug->value, debug->where);
}

static const char *obstacle(int version)
{
    struct rlimit limit;

    if (version > 0 && version < QUIET_SINCE && !getenv("COMMTRACE_NCCL_LOG"))
        return "NCCL before 2.22 prints its version on stdout when it logs; "
               "set COMMTRACE_NCCL_LOG=connections to have it all the same";
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY)
        return "the size of files is limited (ulimit -f)";
    return NULL;
}

void nccl_log_check(const char *option, int version, struct facts *facts)
{
    struct setting debug = find("NCCL_DEBUG"), file = find("NCCL_DEBUG_FILE");
    const char *why = obstacle(version);

    if (!strcmp(option, "off"))
        facts_add(facts, "not seen", FACT_GOOD,
                  "connections as NCCL makes them: COMMTRACE_NCCL_LOG");
    else if (*debug.where || *file.where)
        say_theirs(&debug, &file, facts);
    else if (why)
        facts_add(facts, "NCCL's log", FACT_NOTE, "not had: %s", why);
}
