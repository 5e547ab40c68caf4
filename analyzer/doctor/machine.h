/* The machine and the environment, whatever the command. */
#ifndef COMMTRACE_DOCTOR_MACHINE_H
#define COMMTRACE_DOCTOR_MACHINE_H

#include <stdbool.h>

struct facts;

struct machine {
    int driver; /* as cuDriverGetVersion says; 0: none */
    int gpus;   /* -1: unknown */
    bool has_nvml;
    bool has_unwind;
};

/* driver: the libcuda that the command links; empty: none, then the library
 * path's is asked. */
void machine_check(struct machine *machine, const char *driver,
                   struct facts *facts);

/* What of the recorder itself may stand in the way: -1 when it does. library
 * is where it was expected, or found. */
int machine_check_recorder(const char *library, bool found,
                           struct facts *facts);

/* Variables of others that matter. */
void machine_check_environment(const char *library, struct facts *facts);

#endif
