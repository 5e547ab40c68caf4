/* The rows of stacks, their frames and modules. */
#ifndef SHIM_STACK_ROWS_H
#define SHIM_STACK_ROWS_H

struct gather;

/* Adds rows for the stacks that came since the last call. */
void stack_rows_add(struct gather *gather);

#endif
