#include "doctor/inside.h"

#include <stdio.h>
#include <string.h>

#include "commtrace/nccl_settings.h"
#include "doctor/child.h"
#include "doctor/nccl_setting.h"
#include "doctor/options.h"

#define PLUGIN CT_NCCL_PROFILER_VARIABLE

static bool is_installed(void)
{
    struct answer answer;

    child_ask(CT_NCCL_PROFILER_LIBRARY, "ncclProfiler_v4", &answer);
    return answer.loaded;
}

struct inside inside_judge(bool speaks)
{
    const struct nccl_setting plugin = nccl_setting_find(PLUGIN, -1);
    struct inside inside = {.told = false};
    struct options options;

    options_read(&options, NULL);
    if (!speaks)
        snprintf(inside.why, sizeof inside.why,
                 "it has no profiler that could tell of them, as before 2.27");
    else if (!strcmp(options.profiler, "off"))
        snprintf(inside.why, sizeof inside.why,
                 "COMMTRACE_PROFILER=coll would have its profiler tell of "
                 "them");
    else if (plugin.secret)
        snprintf(inside.why, sizeof inside.why,
                 "%.200s can be read but once, by NCCL, and may name a "
                 "profiler",
                 plugin.where);
    else if (*plugin.where && !ct_nccl_is_static_plugin(plugin.value))
        snprintf(inside.why, sizeof inside.why,
                 "its profiler is yours: " PLUGIN "=%.100s is set %.200s",
                 plugin.value, plugin.where);
    else if (!*plugin.where && is_installed())
        snprintf(inside.why, sizeof inside.why,
                 "its profiler is yours: " CT_NCCL_PROFILER_LIBRARY
                 " is installed");
    else {
        inside.told = true;
        inside.unset = !*plugin.where;
        snprintf(inside.why, sizeof inside.why, "its profiler tells of them%s",
                 inside.unset ? ", if it finds " PLUGIN "=STATIC_PLUGIN" : "");
    }
    return inside;
}
