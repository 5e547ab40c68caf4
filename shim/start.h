/*
 * The options as the process was started with them. By its first NCCL call a
 * program may have changed its folder, or lost its environment.
 */
#ifndef SHIM_START_H
#define SHIM_START_H

enum option {
#define CONFIG(id_, ...) OPTION_##id_,
#include "commtrace/config.def"
    OPTIONS
};

/* Notes what is set; a relative COMMTRACE_DIR with the folder that it is
 * relative to. The loader calls it; env may be NULL. */
void start_note(char *const *env);

/* What the environment says, where it still says something, else what was
 * noted, else NULL. The folder of traces is absolute if it was noted. */
const char *start_option(enum option option);

const char *start_option_name(enum option option);

#endif
