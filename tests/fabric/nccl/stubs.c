/*
 * A loud body for every public call that the stand-in does not implement, from
 * the table of all calls. Weak, and last in the link: a real body comes first.
 * Which of them a library exports, its release says (exports.map.in).
 * Parameters do not matter to a function that looks at none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STUB_API __attribute__((visibility("default"), weak))
#define INVALID_USAGE 5

static int unimplemented(const char *name, int *said)
{
    const char *strict = getenv("FABRIC_STRICT");

    if (!*said)
        fprintf(stderr, "fabric: %s is not implemented\n", name);
    *said = 1;
    if (strict && !strcmp(strict, "1"))
        abort();
    return INVALID_USAGE;
}

#define STUB(fn_)                          \
    STUB_API int p##fn_(void);             \
    STUB_API int fn_(void);                \
    int p##fn_(void)                       \
    {                                      \
        static int said;                   \
        return unimplemented(#fn_, &said); \
    }                                      \
    int fn_(void)                          \
    {                                      \
        return p##fn_();                   \
    }

#define OP(id_, name_, fn_, ...) STUB(fn_)
#define COMM(fn_, ...) STUB(fn_)
#define PASS(fn_, ...) STUB(fn_)
#include "commtrace/nccl_ops.def"
