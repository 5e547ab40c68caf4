/* How much of its stack a thread has left, for what needs more than a hook. */
#ifndef SHIM_ROOM_H
#define SHIM_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* The end of the stack that `here` lies on, if it is the thread's own and has
 * more than `need` bytes below `here`; else 0 (a fiber's stack, a signal
 * handler's). What pthread knows of a thread is asked once. */
uintptr_t room_end(uintptr_t here, uintptr_t need);

#endif
