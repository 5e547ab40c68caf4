/* A module that comes and goes; NAME is what tells it from the other one. */
#include <stddef.h>

#define FRAME __attribute__((noinline, noclone, visibility("default")))

FRAME void NAME(void (*back)(size_t));
FRAME void NAME(void (*back)(size_t))
{
    back(COUNT);
    __asm__ volatile("" ::: "memory");
}

FRAME void enter(void (*back)(size_t));
FRAME void enter(void (*back)(size_t))
{
    NAME(back);
    __asm__ volatile("" ::: "memory");
}
