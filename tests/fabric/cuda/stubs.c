/*
 * A loud body for calls that programs insist on finding, but do not make in
 * the jobs that run here. What is not even listed is not found, and programs
 * that can do without it do so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/export.h"

#define NOT_SUPPORTED 801

static int unimplemented(const char *name, int *said)
{
    const char *strict = getenv("FABRIC_STRICT");

    if (!*said)
        fprintf(stderr, "fabric: %s is not implemented\n", name);
    *said = 1;
    if (strict && !strcmp(strict, "1"))
        abort();
    return NOT_SUPPORTED;
}

#define STUB(fn_)                          \
    FABRIC_API int fn_(void);              \
    int fn_(void)                          \
    {                                      \
        static int said;                   \
        return unimplemented(#fn_, &said); \
    }

STUB(cuMulticastAddDevice)
STUB(cuMulticastBindMem)
STUB(cuMulticastCreate)
STUB(cuMulticastUnbind)
STUB(cuTensorMapEncodeTiled)
