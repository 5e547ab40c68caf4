/*
 * What the user has told NCCL: in the environment, or in the files that NCCL
 * reads into it where the environment says nothing. Those are read here before
 * NCCL reads them, since what is published would come before them.
 */
#ifndef SHIM_NCCL_SETTINGS_H
#define SHIM_NCCL_SETTINGS_H

#include <stdbool.h>

enum setting_from {
    SETTING_NOWHERE,
    SETTING_ENVIRONMENT,
    SETTING_FILE,
    SETTING_SECRET /* there is a file that can be read but once, by NCCL */
};

struct nccl_setting {
    enum setting_from from;
    char value[1024]; /* more than that NCCL does not read either */
    char file[1024];
};

/* version: as ncclGetVersion says it, 0: unknown. Opens files, and may ask the
 * system for the user's home, as NCCL does. */
void nccl_setting(const char *name, int version, struct nccl_setting *setting);

#endif
