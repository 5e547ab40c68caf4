/* The options in force: COMMTRACE_* variables, read once at the first call, and
 * where one is missing then, as it was when the process started. */
#ifndef SHIM_CONFIG_H
#define SHIM_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "commtrace/config.def"

#define CONFIG_MODE(mode_, name_) mode_,
enum timing_mode { CONFIG_TIMING(CONFIG_MODE) TIMING_SAMPLE };
enum stacks_mode { CONFIG_STACKS(CONFIG_MODE) };
enum logs_mode { CONFIG_NCCL_LOG(CONFIG_MODE) };
enum profiler_mode { CONFIG_PROFILER(CONFIG_MODE) };

struct timing {
    enum timing_mode mode;
    unsigned shift; /* one call in 2^shift */
};

#define CONFIG_TYPE_TEXT const char *
#define CONFIG_TYPE_NUMBER int64_t
#define CONFIG_TYPE_SWITCH int64_t
#define CONFIG_TYPE_TIMING struct timing
#define CONFIG_TYPE_STACKS enum stacks_mode
#define CONFIG_TYPE_NCCL_LOG enum logs_mode
#define CONFIG_TYPE_PROFILER enum profiler_mode

struct config {
#define CONFIG(id_, variable_, kind_, ...) CONFIG_TYPE_##kind_ id_;
#include "commtrace/config.def"
};

/* Bad values are named on stderr and replaced by the default. Texts may point
 * into the environment: copy what must last. */
void config_read(struct config *config);

/* What is asked of NCCL's profiler, before anything is recorded. */
enum profiler_mode config_profiler(void);

/* Writes "NAME=value NAME=value" of what is set. */
void config_describe(char *text, size_t size);

const char *timing_name(enum timing_mode mode);

#endif
