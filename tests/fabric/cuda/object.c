#include "cuda/object.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/export.h"

struct CUuserObject_st {
    CUhostFn destroy;
    void *data;
    _Atomic unsigned refs;
};

struct object_hold {
    CUuserObject object;
    unsigned count;
    struct object_hold *next;
};

FABRIC_API CUresult cuUserObjectCreate(CUuserObject *object, void *data,
                                       CUhostFn destroy,
                                       unsigned int initialRefcount,
                                       unsigned int flags)
{
    CUuserObject o;

    if (!object || !destroy || !initialRefcount ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    o = malloc(sizeof(*o));
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    o->destroy = destroy;
    o->data = data;
    atomic_init(&o->refs, initialRefcount);
    *object = o;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    if (!object || !count)
        return CUDA_ERROR_INVALID_VALUE;
    atomic_fetch_add(&object->refs, count);
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    if (!object || !count)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_fetch_sub(&object->refs, count) > count)
        return CUDA_SUCCESS;
    object->destroy(object->data);
    free(object);
    return CUDA_SUCCESS;
}

CUresult object_hold(struct object_hold **holds, CUuserObject object,
                     unsigned count, int moved)
{
    struct object_hold *hold = malloc(sizeof(*hold));

    if (!hold)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!moved)
        cuUserObjectRetain(object, count);
    *hold = (struct object_hold){object, count, *holds};
    *holds = hold;
    return CUDA_SUCCESS;
}

CUresult object_let_go(struct object_hold *holds, CUuserObject object,
                       unsigned count)
{
    for (; holds; holds = holds->next) {
        if (holds->object == object && holds->count >= count) {
            holds->count -= count;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

void object_release_all(struct object_hold *holds)
{
    struct object_hold *next;

    for (; holds; holds = next) {
        next = holds->next;
        if (holds->count)
            cuUserObjectRelease(holds->object, holds->count);
        free(holds);
    }
}
