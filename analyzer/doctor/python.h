/* What of NCCL the environment of a python interpreter has, found without
 * importing anything large. */
#ifndef COMMTRACE_DOCTOR_PYTHON_H
#define COMMTRACE_DOCTOR_PYTHON_H

#include <limits.h>
#include <stdbool.h>

struct python {
    char package[64];       /* torch, nvidia.nccl; empty: none */
    char nccl[PATH_MAX];    /* the library that is used */
    char runtime[PATH_MAX]; /* libcudart of torch */
    char driver[PATH_MAX];  /* and its libcuda */
    char inside[PATH_MAX];  /* a library of torch with NCCL in it */
    bool inside_speaks;     /* as closure.inside_speaks */
};

bool python_is(const char *program);

/* Runs the interpreter for a moment; -1 where it does not answer. */
int python_ask(struct python *python, const char *program, const char *library);

#endif
