#include "cudart/runtime.h"

int runtime_version(void)
{
    return CUDART_VERSION;
}
