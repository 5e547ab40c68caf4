/*
 * Whether the recorder would see the NCCL calls of a command. `run` asks as
 * well, and refuses what cannot work.
 */
#ifndef COMMTRACE_DOCTOR_VERDICT_H
#define COMMTRACE_DOCTOR_VERDICT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "doctor/command.h"
#include "doctor/inside.h"

enum sight {
    SIGHT_YES,   /* an NCCL is there, and its calls would be seen */
    SIGHT_MAYBE, /* if the program, or one that it starts, loads an NCCL */
    SIGHT_NO     /* whatever it does */
};

struct verdict {
    enum sight sight;
    bool cannot_work;       /* preloading has no effect on it, or breaks it */
    struct inside inside;   /* where NCCL is inside of it; else no word */
    const char *how;        /* linked, dlopened, python, static, ... */
    char why[600];          /* a sentence without its end */
    char nccl[PATH_MAX];    /* the library; empty: unknown */
    char runtime[PATH_MAX]; /* libcudart that it links; empty: none */
    char driver[PATH_MAX];  /* libcuda that it links; empty: none */
    struct command command;
};

/* library: libcommtrace.so, or NULL where there is none. Without deep, only
 * cannot_work and its reason are sure: that takes some milliseconds, the rest
 * may start an interpreter and read large libraries. Returns 0, or the errno
 * of why there is no such command, with its name in command.program. */
int verdict_of(struct verdict *verdict, char *const argv[], const char *library,
               bool deep);

/* libcommtrace.so beside this program, or in lib beside its bin: 0, or -1
 * with the place in path where it was expected. */
int verdict_library(char *path, size_t size);

#endif
