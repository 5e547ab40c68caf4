/* The CUDA driver that the program has loaded; we never load one. */
#ifndef SHIM_DRIVER_H
#define SHIM_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DRIVER_OK = 0, DRIVER_NOT_READY = 600 };
/* What a call gets that a stream capture does not allow. */
enum { DRIVER_CAPTURE_ERRORS = 900, DRIVER_CAPTURE_ERRORS_END = 909 };
enum { DRIVER_STREAM_NON_BLOCKING = 1 };
enum { DRIVER_CAPTURE_RELAXED = 2 };
enum { DRIVER_CAPTURE_ACTIVE = 1 };
/* The default streams are named by numbers, and are those of the current
 * context. */
enum { DRIVER_STREAM_PER_THREAD = 2, DRIVER_LAST_DEFAULT_STREAM = 2 };

struct driver {
#define DRIVER(name_, symbol_, need_, params_) int(*name_) params_;
#include "driver.def"
};

extern struct driver driver; /* valid after driver_open() said so */

/* Looks for the driver until it is there; false: not yet, or too old. Callers
 * hold a lock. */
bool driver_open(void);

/* The file that the driver came from; false: there is none yet. */
bool driver_path(char *path, size_t size);

#endif
