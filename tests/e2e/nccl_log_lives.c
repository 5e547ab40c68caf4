/*
 * Communicators of many lives at few addresses: made and destroyed in turn, in
 * two sizes, in groups and not, from a parent, and such as never come to be.
 */
#include <cuda_runtime.h>
#include <nccl.h>

#include <stdlib.h>

enum { TURNS = 40, MOST = 3 };

static void must(int error)
{
    if (error)
        abort();
}

static void destroy(ncclComm_t *comms, int n)
{
    for (int i = 0; i < n; i++)
        must(ncclCommDestroy(comms[i]));
}

static void fail(void)
{
    ncclComm_t comm = NULL;
    ncclUniqueId id;
    must(ncclGetUniqueId(&id));
    if (ncclCommInitRank(&comm, 2, id, 5) == ncclSuccess)
        abort();
}

static void one_by_one(int n, ncclComm_t *comms)
{
    ncclUniqueId id;
    must(ncclGetUniqueId(&id));
    must(ncclGroupStart());
    for (int i = 0; i < n; i++) {
        must(cudaSetDevice(i));
        must(ncclCommInitRank(&comms[i], n, id, i));
    }
    must(ncclGroupEnd());
}

static void split(int n, ncclComm_t *comms, ncclComm_t *children)
{
    must(ncclGroupStart());
    for (int i = 0; i < n; i++)
        must(ncclCommSplit(comms[i], 0, n - i, &children[i], NULL));
    must(ncclGroupEnd());
}

int main(void)
{
    static const int devices[MOST] = {0, 1, 2};
    for (int turn = 0; turn < TURNS; turn++) {
        ncclComm_t comms[MOST], children[MOST];
        int n = 2 + turn % 2;
        if (turn % 3)
            must(ncclCommInitAll(comms, n, devices));
        else
            one_by_one(n, comms);
        if (turn % 4 == 0)
            split(n, comms, children);
        if (turn % 5 == 0)
            fail();
        if (turn % 4 == 0)
            destroy(children, n);
        destroy(comms, n);
    }
    return 0;
}
