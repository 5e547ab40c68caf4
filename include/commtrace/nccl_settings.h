/*
 * What NCCL makes of its settings, by release: for the recorder, which acts on
 * it, and `commtrace doctor`, which foretells what the recorder will do (facts:
 * NCCL's src/init.cc, debug.cc, misc/param.cc, plugin/plugin_open.cc).
 */
#ifndef COMMTRACE_NCCL_SETTINGS_H
#define COMMTRACE_NCCL_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* As ncclGetVersion says it: the first release that */
enum {
    CT_NCCL_QUIET = 22203,     /* logs without its version on stdout */
    CT_NCCL_CONF_FILE = 22304, /* asks NCCL_CONF_FILE */
    CT_NCCL_PROFILER = 22703,  /* has a profiler interface that we speak */
    CT_NCCL_HOME = 23003       /* asks HOME, not the user data base */
};

#define CT_NCCL_PROFILER_VARIABLE "NCCL_PROFILER_PLUGIN"
/* Where that is not set. */
#define CT_NCCL_PROFILER_LIBRARY "libnccl-profiler.so"
#define CT_NCCL_CONF_OF_HOME ".nccl.conf"
#define CT_NCCL_CONF_OF_HOST "/etc/nccl.conf"

/* NCCL_PROFILER_PLUGIN: what is in the process. Any beginning of the word will
 * do. */
static inline bool ct_nccl_is_static_plugin(const char *value)
{
    return !strncasecmp(value, "STATIC_PLUGIN", strlen(value));
}

/* NCCL_ENV_PLUGIN: settings come from there. */
static inline bool ct_nccl_is_env_plugin(const char *value)
{
    return value && *value && strcasecmp(value, "none") != 0;
}

static inline bool ct_nccl_is_among(const char *word, size_t n,
                                    const char *const *words)
{
    while (*words && (strlen(*words) != n || strncasecmp(word, *words, n) != 0))
        words++;
    return *words != NULL;
}

/* NCCL_DEBUG: there are lines, and not only the version. */
static inline bool ct_nccl_logs(const char *level)
{
    static const char *const levels[] = {"WARN", "INFO", "ABORT", "TRACE",
                                         NULL};
    return ct_nccl_is_among(level, strlen(level), levels);
}

/* Of these, connections are among the lines. */
static inline bool ct_nccl_logs_connections(const char *level)
{
    static const char *const levels[] = {"INFO", "TRACE", NULL};
    return ct_nccl_is_among(level, strlen(level), levels);
}

/* NCCL_DEBUG_SUBSYS: there is a line at each call. */
static inline bool ct_nccl_logs_calls(const char *subsystems)
{
    static const char *const costly[] = {"COLL", "TUNING", "CALL", "ALL", NULL};
    bool logs = strchr(subsystems, '^') != NULL;
    while (*subsystems && !logs) {
        size_t n = strcspn(subsystems, ",");
        logs = ct_nccl_is_among(subsystems, n, costly);
        subsystems += n + (subsystems[n] == ',');
    }
    return logs;
}

/* A file that NCCL reads settings from. */
enum ct_nccl_conf {
    CT_NCCL_NO_CONF,
    CT_NCCL_CONF,
    CT_NCCL_CONF_ONCE /* a pipe or the like: it can be read but once, by NCCL */
};

static inline enum ct_nccl_conf ct_nccl_conf_at(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || S_ISCHR(st.st_mode) || S_ISDIR(st.st_mode))
        return CT_NCCL_NO_CONF;
    return S_ISREG(st.st_mode) ? CT_NCCL_CONF : CT_NCCL_CONF_ONCE;
}

#endif
