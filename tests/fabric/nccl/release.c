#include "nccl/release.h"

#include "common/config.h"

int nccl_release(void)
{
#ifdef FABRIC_NCCL_RELEASE
    return FABRIC_NCCL_RELEASE;
#else
    return fabric_config()->nccl_version;
#endif
}

/* bfloat16 came with 2.10, the two of 8 bits with 2.24. */
int nccl_release_types(void)
{
    int release = nccl_release();

    return release >= 22403 ? 12 : release >= 21003 ? 10 : 9;
}

/* ncclAvg came with 2.10. */
int nccl_release_redops(void)
{
    return nccl_release() >= 21003 ? 5 : 4;
}

int nccl_release_groups_p2p(void)
{
    return nccl_release() < 22403;
}

int nccl_release_groups_all(void)
{
    return nccl_release() >= 2506 && nccl_release() < 22500;
}

int nccl_release_asks_for_id(void)
{
    return nccl_release() >= 2506;
}
