/* A library that calls NCCL: linked, by look-ups of its own, and from its
 * constructor where it is asked to. */
#include "ways_look.h"

int ncclGroupStart(void);
void module_run(const char *who);

void module_run(const char *who)
{
    for (int i = 0; i < 3; i++)
        printf("%s linked: %d\n", who, ncclGroupStart());
    ways_look_all(who, "RTLD_DEFAULT", RTLD_DEFAULT);
    ways_look_all(who, "RTLD_NEXT", RTLD_NEXT);
}

#ifdef FROM_CONSTRUCTOR
__attribute__((constructor)) static void begin(void)
{
    module_run("constructor");
}
#endif
