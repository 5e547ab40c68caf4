#include "doctor/nccl_profiler.h"

#include <string.h>
#include <strings.h>

#include "doctor/facts.h"
#include "doctor/nccl_setting.h"

#define PLUGIN "NCCL_PROFILER_PLUGIN"

/* The first NCCL with a version of the interface that the recorder speaks. */
enum { SPOKEN_SINCE = 22703 };

/* As NCCL takes it: any beginning of the word. */
static int means_static(const char *value)
{
    return !strncasecmp(value, "STATIC_PLUGIN", strlen(value));
}

void nccl_profiler_check(const char *option, int version, struct facts *facts)
{
    struct nccl_setting plugin = nccl_setting_find(PLUGIN);

    if (!strcmp(option, "off")) {
        if (*plugin.where)
            facts_add(facts, "NCCL's profiler", FACT_GOOD,
                      PLUGIN "=%s stays yours", plugin.value);
    } else if (version > 0 && version < SPOKEN_SINCE) {
        facts_add(facts, "NCCL's profiler", FACT_NOTE,
                  "not had: COMMTRACE_PROFILER=%.20s needs NCCL 2.27", option);
    } else if (*plugin.where && !means_static(plugin.value)) {
        facts_add(facts, "NCCL's profiler", FACT_NOTE,
                  "not had: " PLUGIN "=%s is set %s and stays yours, and NCCL "
                  "loads one plugin",
                  plugin.value, plugin.where);
    } else {
        facts_add(facts, "NCCL's profiler", FACT_GOOD,
                  "tells what NCCL chooses%s, unless the program has a plugin "
                  "of its own or libnccl-profiler.so is installed",
                  strcmp(option, "kernel") ? "" : " and when kernels run");
    }
}
