/*
 * What /sys of a host of the described machine would say of its GPUs, its NICs
 * and the PCIe between them, as files for programs that are told another root.
 */
#ifndef FABRIC_SYSFS_H
#define FABRIC_SYSFS_H

#include "common/config.h"

/* Writes it into a folder that is there. 0, or -1 with errno. */
int fabric_sysfs_write(const struct fabric_config *config, int host,
                       const char *folder);

/* Removes the folder with all that is in it. */
void fabric_sysfs_remove(const char *folder);

#endif
