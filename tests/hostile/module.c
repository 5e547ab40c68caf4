/* An extension that brings NCCL in for itself alone. */
#include "commtrace/nccl_abi.h"

#include <stddef.h>

ncclResult_t ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);
ncclResult_t ncclBcast(void *, size_t, ncclDataType_t, int, ncclComm_t,
                       cudaStream_t);
int module_use(void);

int module_use(void)
{
    static float data[4];
    ncclComm_t comm;
    ncclUniqueId id = {{1}};
    if (ncclCommInitRank(&comm, 2, id, 0) != ncclSuccess)
        return 1;
    for (int i = 0; i < 10; i++)
        if (ncclBcast(data, 4, 7, 0, comm, NULL) != ncclSuccess)
            return 1;
    return 0;
}
