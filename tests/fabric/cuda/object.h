/* User objects: something of the program's that lives as long as graphs do. */
#ifndef FABRIC_CUDA_OBJECT_H
#define FABRIC_CUDA_OBJECT_H

#include <cuda.h>

struct object_hold;

/* Adds to a list of holds: count references of an object, the caller's own
 * ones with moved. */
CUresult object_hold(struct object_hold **holds, CUuserObject object,
                     unsigned count, int moved);
/* Takes references from a list without releasing them. */
CUresult object_let_go(struct object_hold *holds, CUuserObject object,
                       unsigned count);
void object_release_all(struct object_hold *holds);

#endif
