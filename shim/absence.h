/* Rows of what could not be found out. For the writer's thread alone. */
#ifndef SHIM_ABSENCE_H
#define SHIM_ABSENCE_H

#include "batch.h"

/* The first reason of each kind counts. Both texts are copied. */
void absence_add(struct batch *batch, const char *what, const char *why);

#endif
