/* A module that comes and goes; NAME is what tells it from the other one. */
#include "calls.h"

#define SEEN __attribute__((visibility("default")))

SEEN void NAME(void (*back)(size_t));
FRAME void NAME(void (*back)(size_t))
{
    back(COUNT);
    NO_TAIL_CALL;
}

SEEN void enter(void (*back)(size_t));
FRAME void enter(void (*back)(size_t))
{
    NAME(back);
    NO_TAIL_CALL;
}
