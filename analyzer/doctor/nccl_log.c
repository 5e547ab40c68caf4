#include "doctor/nccl_log.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#include "doctor/facts.h"
#include "doctor/nccl_setting.h"

/* NCCL before it prints its version on stdout as soon as it logs. */
enum { QUIET_SINCE = 22203 };

/* The user logs himself: his log is read if it is a file. */
static void say_theirs(const struct nccl_setting *debug,
                       const struct nccl_setting *file, struct facts *facts)
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

/* Subsystems for which NCCL has a line at each call. */
static int is_costly(const char *subsystems)
{
    static const char *const costly[] = {"COLL", "TUNING", "CALL", "ALL"};

    if (strchr(subsystems, '^'))
        return 1;
    while (*subsystems) {
        const size_t n = strcspn(subsystems, ",");

        for (size_t i = 0; i < sizeof costly / sizeof *costly; i++)
            if (strlen(costly[i]) == n &&
                !strncasecmp(subsystems, costly[i], n))
                return 1;
        subsystems += n + (subsystems[n] == ',');
    }
    return 0;
}

void nccl_log_check(const char *option, int version, struct facts *facts)
{
    struct nccl_setting debug = nccl_setting_find("NCCL_DEBUG"),
                        file = nccl_setting_find("NCCL_DEBUG_FILE"),
                        subsys = nccl_setting_find("NCCL_DEBUG_SUBSYS");
    const char *why = obstacle(version);

    if (!strcmp(option, "off"))
        facts_add(facts, "not seen", FACT_GOOD,
                  "connections as NCCL makes them: COMMTRACE_NCCL_LOG");
    else if (*debug.where || *file.where)
        say_theirs(&debug, &file, facts);
    else if (why)
        facts_add(facts, "NCCL's log", FACT_NOTE, "not had: %s", why);
    else if (is_costly(subsys.value))
        facts_add(facts, "NCCL's log", FACT_NOTE,
                  "not had: NCCL_DEBUG_SUBSYS=%.100s is set %s, which would "
                  "have every call logged",
                  subsys.value, subsys.where);
    else
        facts_add(facts, "NCCL's log", FACT_GOOD,
                  "is asked for, for the trace alone: connections%s",
                  strcmp(option, "tuning") ? "" : ", predictions and choices");
}
