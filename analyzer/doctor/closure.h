/* A program with the libraries that the loader gives it, and what of NCCL is
 * among them. */
#ifndef COMMTRACE_DOCTOR_CLOSURE_H
#define COMMTRACE_DOCTOR_CLOSURE_H

#include <limits.h>
#include <stdbool.h>

struct closure {
    char nccl[PATH_MAX];     /* libnccl.so that it links */
    char runtime[PATH_MAX];  /* libcudart.so that it links */
    char driver[PATH_MAX];   /* libcuda.so that it links */
    char inside[PATH_MAX];   /* a file that has NCCL statically in it */
    bool inside_speaks;      /* its profiler, to plugins as the recorder is */
    char names_it[PATH_MAX]; /* a file that loads libnccl.so by its name */
    char broken[512];        /* why it would not start */
    bool preload_breaks;     /* and that is the recorder's fault */
    bool loads;              /* something in it loads libraries at run time */
    bool starts;             /* or starts other programs */
};

/* Texts are empty where there is nothing. library may be NULL. Without deep,
 * only the file itself is read, not its libraries. Returns -1 where the loader
 * could not be asked. */
int closure_of(struct closure *closure, const char *file, const char *library,
               bool deep);

#endif
