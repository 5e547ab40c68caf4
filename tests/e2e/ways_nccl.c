/* An NCCL that says who it is: each of its functions answers ID. An old one
 * has no ncclGroupSimulateEnd. */
int ncclGetVersion(int *version);
int ncclGroupStart(void);
int ncclGroupEnd(void);

int ncclGetVersion(int *version)
{
    *version = 20000 + ID;
    return 0;
}

int ncclGroupStart(void)
{
    return ID;
}

int ncclGroupEnd(void)
{
    return ID;
}

#ifndef OLD
int ncclGroupSimulateEnd(void *info);

int ncclGroupSimulateEnd(void *info)
{
    (void)info;
    return ID;
}
#endif
