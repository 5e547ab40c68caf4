/* Whether NCCL is asked for a log, or the user has asked for one. */
#include "nccl_file_parts.h"

#include "commtrace/nccl_settings.h"
#include "start.h"

#include <stdio.h>
#include <stdlib.h>

static void ask_for_log(struct nccl_file *file)
{
    int n = 0;
    if (!file_has_room(file) || !file_make(file))
        return;
    file->variables.texts[n++] = "NCCL_DEBUG=INFO";
    file->variables.texts[n++] = file->text;
    if (nccl_logs.subsys.from == SETTING_NOWHERE)
        file->variables.texts[n++] =
            nccl_logs.config->nccl_log == LOGS_TUNING
                ? "NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,ENV,TUNING"
                : "NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,ENV";
    if (publish(&file->variables)) {
        set_stage(file, MADE);
        return;
    }
    file_drop(file);
    file_give_up(file, "NCCL_DEBUG could not be set");
}

static const char *origin(const struct nccl_setting *setting)
{
    return setting->from == SETTING_FILE ? setting->file : "the environment";
}

/* The user has a word of his own in it. */
static void look_for_theirs(struct nccl_file *file)
{
    const struct nccl_setting *debug = &nccl_logs.debug;
    if (debug->from == SETTING_NOWHERE)
        file_give_up(file, "NCCL_DEBUG_FILE is set (%s) without NCCL_DEBUG",
                     origin(&nccl_logs.file));
    else if (!ct_nccl_logs(debug->value))
        file_give_up(file, "NCCL_DEBUG=%.20s is set (%s)", debug->value,
                     origin(debug));
    else if (!*nccl_logs.file.value)
        file_give_up(file, "NCCL_DEBUG=%s is set (%s), and goes to stdout",
                     debug->value, origin(debug));
    else {
        snprintf(file->path, sizeof(file->path), "%s", nccl_logs.file.value);
        set_stage(file, SOUGHT);
    }
}

static bool decides_otherwise(struct nccl_file *file, int version)
{
    const char *plugin = getenv("NCCL_ENV_PLUGIN");
    if (ct_nccl_is_env_plugin(plugin))
        file_give_up(file, "NCCL's environment comes from a plugin (%.100s)",
                     plugin);
    else if (ct_nccl_logs_calls(nccl_logs.subsys.value))
        file_give_up(file,
                     "NCCL_DEBUG_SUBSYS=%.100s is set (%s), which would have "
                     "every call logged",
                     nccl_logs.subsys.value, origin(&nccl_logs.subsys));
    else if (version < CT_NCCL_QUIET && !start_option(OPTION_nccl_log))
        file_give_up(file,
                     "NCCL %d.%d prints its version on stdout when it logs; "
                     "COMMTRACE_NCCL_LOG=connections asks for it all the same",
                     version < 10000 ? version / 1000 : version / 10000,
                     version < 10000 ? version / 100 % 10
                                     : version / 100 % 100);
    return stage_of(file) == NONE;
}

void file_decide(struct nccl_file *file, struct nccl_copy *copy)
{
    char path[8];
    int version;
    if (nccl_logs.config->nccl_log == LOGS_OFF) {
        file_give_up(file, "COMMTRACE_NCCL_LOG=off");
        return;
    }
    real_library(copy, path, sizeof(path), &version);
    nccl_setting("NCCL_DEBUG", version, &nccl_logs.debug);
    nccl_setting("NCCL_DEBUG_FILE", version, &nccl_logs.file);
    nccl_setting("NCCL_DEBUG_SUBSYS", version, &nccl_logs.subsys);
    if (nccl_logs.debug.from == SETTING_SECRET ||
        nccl_logs.file.from == SETTING_SECRET)
        file_give_up(file, "%.1000s can be read but once, by NCCL",
                     nccl_logs.debug.file);
    else if (nccl_logs.debug.from || nccl_logs.file.from)
        look_for_theirs(file);
    else if (!decides_otherwise(file, version))
        ask_for_log(file);
}
