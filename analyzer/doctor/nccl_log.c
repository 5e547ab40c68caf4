#include "doctor/nccl_log.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "commtrace/nccl_settings.h"
#include "doctor/facts.h"
#include "doctor/nccl_setting.h"

#define SHM "/dev/shm"
#define ROOM 4096 /* of a first line */

struct settings {
    struct nccl_setting debug, file, subsys;
};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Whether the recorder can tell NCCL's file by this name, of which NCCL may
 * still have to make one. */
static bool is_file(const char *name)
{
    char real[PATH_MAX];
    struct stat st;

    if (stat(name, &st))
        return true;
    return S_ISREG(st.st_mode) && realpath(name, real) &&
           !strcmp(last_part(real), last_part(name));
}

/* The user logs himself: his log is read if it is a file. */
static void say_theirs(const struct settings *s, struct facts *facts)
{
    const struct nccl_setting *debug = &s->debug, *file = &s->file;

    if (!*debug->where)
        facts_add(facts, "NCCL's log", FACT_NOTE,
                  "not had: NCCL_DEBUG_FILE is set %s, NCCL_DEBUG is not",
                  file->where);
    else if (!ct_nccl_logs(debug->value))
        facts_add(facts, "NCCL's log", FACT_NOTE,
                  "not had: NCCL_DEBUG=%.40s is set %s", debug->value,
                  debug->where);
    else if (!*file->value)
        facts_add(facts, "NCCL's log", FACT_NOTE,
                  "not had: NCCL_DEBUG=%.40s is set %s without "
                  "NCCL_DEBUG_FILE",
                  debug->value, debug->where);
    else if (!is_file(file->value))
        facts_add(facts, "NCCL's log", FACT_NOTE,
                  "not had: NCCL_DEBUG_FILE=%.200s is set %s, which is no "
                  "file of that name",
                  file->value, file->where);
    else if (!ct_nccl_logs_connections(debug->value))
        facts_add(facts, "NCCL's log", FACT_NOTE,
                  "without connections: NCCL_DEBUG=%.40s is set %s; %.200s is "
                  "read",
                  debug->value, debug->where, file->value);
    else
        facts_add(facts, "NCCL's log", FACT_GOOD,
                  "NCCL_DEBUG=%.40s is set %s: %.200s is read, and has what "
                  "it asks for",
                  debug->value, debug->where, file->value);
}

static const char *obstacle(int version)
{
    struct rlimit limit;
    struct statvfs fs;

    if (version > 0 && version < CT_NCCL_QUIET && !getenv("COMMTRACE_NCCL_LOG"))
        return "NCCL before 2.22 prints its version on stdout when it logs; "
               "set COMMTRACE_NCCL_LOG=connections to have it all the same";
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY)
        return "the size of files is limited (ulimit -f)";
    if (access(SHM, W_OK | X_OK))
        return "no file can be made in " SHM;
    if (!statvfs(SHM, &fs) && (uint64_t)fs.f_bavail * fs.f_frsize < ROOM)
        return "no room in " SHM;
    return NULL;
}

/* Nobody asks for a log: the recorder would. */
static void say_ours(const char *option, int version, const struct settings *s,
                     struct facts *facts)
{
    const char *why = obstacle(version), *plugin = getenv("NCCL_ENV_PLUGIN");

    if (ct_nccl_is_env_plugin(plugin))
        facts_add(facts, "NCCL's log", FACT_NOTE,
                  "not had: NCCL's settings come from a plugin "
                  "(NCCL_ENV_PLUGIN=%.100s)",
                  plugin);
    else if (why)
        facts_add(facts, "NCCL's log", FACT_NOTE, "not had: %s", why);
    else if (ct_nccl_logs_calls(s->subsys.value))
        facts_add(facts, "NCCL's log", FACT_NOTE,
                  "not had: NCCL_DEBUG_SUBSYS=%.100s is set %s, which would "
                  "have every call logged",
                  s->subsys.value, s->subsys.where);
    else
        facts_add(facts, "NCCL's log", FACT_GOOD,
                  "is asked for, for the trace alone: connections%s",
                  strcmp(option, "tuning") ? "" : ", predictions and choices");
}

void nccl_log_check(const char *option, int version, struct facts *facts)
{
    const struct settings s = {
        nccl_setting_find("NCCL_DEBUG", version),
        nccl_setting_find("NCCL_DEBUG_FILE", version),
        nccl_setting_find("NCCL_DEBUG_SUBSYS", version),
    };

    if (!strcmp(option, "off"))
        facts_add(facts, "not seen", FACT_GOOD,
                  "connections as NCCL makes them: COMMTRACE_NCCL_LOG");
    else if (s.debug.secret || s.file.secret)
        facts_add(facts, "NCCL's log", FACT_NOTE,
                  "not had: %.400s can be read but once, by NCCL",
                  s.debug.secret ? s.debug.where : s.file.where);
    else if (*s.debug.where || *s.file.where)
        say_theirs(&s, facts);
    else
        say_ours(option, version, &s, facts);
}
