/* What the user has told NCCL, in the environment or in a file that NCCL reads
 * into it. */
#ifndef COMMTRACE_DOCTOR_NCCL_SETTING_H
#define COMMTRACE_DOCTOR_NCCL_SETTING_H

#include <stdbool.h>

struct nccl_setting {
    char value[256];
    char where[512]; /* "in the environment", ...; empty: it is not set */
    bool secret;     /* where is a file that only NCCL can read, once */
};

/* version: of NCCL, as ncclGetVersion says it, -1: unknown. */
struct nccl_setting nccl_setting_find(const char *name, int version);

#endif
