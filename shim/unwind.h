/*
 * Stacks of the calling thread, by libunwind.
 *
 * Of the two libraries that libunwind installs, this uses the one for
 * debuggers, with accessors of our own, on our own process. The other one
 * (unw_backtrace) checks addresses by writing to a pipe that it keeps: in a
 * program that closed all its files the pipe's numbers may since have become
 * the program's own, and it would read and write those. Our accessors know
 * which memory may be read: the thread's own stack and the modules found on it.
 */
#ifndef SHIM_UNWIND_H
#define SHIM_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct frame {
    uint64_t offset; /* return address in its module, else as it is */
    uint32_t module; /* number (modules.h); 0: in none that is known */
};

/* Opens libunwind, once, and tries it out. Takes the loader's lock, as finding
 * NCCL's functions does. Where it cannot be used, false, and
 * why: absent, too old, of a layout that is not known. what: which one it is,
 * or why none. */
bool unwind_open(char *what, size_t size);

/* What a walk may need of the stack. On x86-64 5.4 KiB were measured, with all
 * of ours; aarch64 has more registers to keep track of. */
#if defined(__aarch64__)
enum { UNWIND_STACK_BYTES = 16 * 1024 };
#else
enum { UNWIND_STACK_BYTES = 8 * 1024 };
#endif

/* Fills in the frames from the one that holds the return address `site`
 * outward, at most max; returns how many, at least that of site, or 0: the
 * modules could not be looked at. *cut: there are more. stack_end: of the stack
 * that we are on. */
size_t unwind_walk(const void *site, uintptr_t stack_end, struct frame *frames,
                   size_t max, bool *cut);

#endif
