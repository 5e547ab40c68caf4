#include "doctor/nccl_profiler.h"

#include <string.h>

#include "commtrace/nccl_settings.h"
#include "doctor/facts.h"
#include "doctor/nccl_setting.h"

#define PLUGIN CT_NCCL_PROFILER_VARIABLE

void nccl_profiler_check(const char *option, int version, struct facts *facts)
{
    struct nccl_setting plugin = nccl_setting_find(PLUGIN, version);

    if (!strcmp(option, "off")) {
        if (*plugin.where && !plugin.secret)
            facts_add(facts, "NCCL's profiler", FACT_GOOD,
                      PLUGIN "=%s stays yours", plugin.value);
    } else if (version > 0 && version < CT_NCCL_PROFILER) {
        facts_add(facts, "NCCL's profiler", FACT_NOTE,
                  "not had: COMMTRACE_PROFILER=%.20s needs NCCL 2.27", option);
    } else if (plugin.secret) {
        facts_add(facts, "NCCL's profiler", FACT_NOTE,
                  "not had: %.400s can be read but once, by NCCL",
                  plugin.where);
    } else if (*plugin.where && !ct_nccl_is_static_plugin(plugin.value)) {
        facts_add(facts, "NCCL's profiler", FACT_NOTE,
                  "not had: " PLUGIN "=%s is set %s and stays yours, and NCCL "
                  "loads one plugin",
                  plugin.value, plugin.where);
    } else {
        facts_add(facts, "NCCL's profiler", FACT_GOOD,
                  "tells what NCCL chooses%s, unless the program has a plugin "
                  "of its own or " CT_NCCL_PROFILER_LIBRARY " is installed",
                  strcmp(option, "kernel") ? "" : " and when kernels run");
    }
}
