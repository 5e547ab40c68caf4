#include "channel.h"

#include <stdlib.h>
#include <string.h>

#include "job.h"

static const char *const type_names[] = {
    [ncclInt8] = "int8",       [ncclUint8] = "uint8",
    [ncclInt32] = "int32",     [ncclUint32] = "uint32",
    [ncclInt64] = "int64",     [ncclUint64] = "uint64",
    [ncclFloat16] = "float16", [ncclFloat32] = "float32",
    [ncclFloat64] = "float64", [ncclBfloat16] = "bfloat16",
};

const char *type_name(ncclDataType_t type)
{
    return type_names[type];
}

static char *list_of(const int *members, int n)
{
    size_t size = (size_t)n * 12 + 1;
    char *text = calloc(1, size);
    size_t used = 0;

    if (!text)
        die("out of memory");
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%d", i ? "," : "",
                                 members[i]);
    return text;
}

void channel_split(struct channel *channel, ncclComm_t world, int color,
                   int place, const int *members, int nranks, FILE *log)
{
    *channel = (struct channel){.rank = place, .nranks = nranks, .log = log};
    channel->members = list_of(members, nranks);
    check_nccl(ncclCommSplit(world, nranks > 1 ? color : NCCL_SPLIT_NOCOLOR,
                             place, &channel->comm, NULL),
               "ncclCommSplit");
}

void channel_close(struct channel *channel)
{
    if (channel->comm) {
        check_nccl(ncclCommFinalize(channel->comm), "ncclCommFinalize");
        check_nccl(ncclCommDestroy(channel->comm), "ncclCommDestroy");
    }
    free(channel->members);
    *channel = (struct channel){0};
}

static void log_call(const struct channel *channel, const char *kind,
                     size_t count, ncclDataType_t type, int peer)
{
    if (!channel->log)
        return;
    fprintf(channel->log, "%s %zu %s ", kind, count, type_name(type));
    if (peer < 0)
        fprintf(channel->log, "- %s\n", channel->members);
    else
        fprintf(channel->log, "%d %s\n", peer, channel->members);
}

void channel_all_reduce(struct channel *channel, const void *send, void *recv,
                        size_t count, ncclDataType_t type, cudaStream_t stream)
{
    log_call(channel, "AllReduce", count, type, -1);
    check_nccl(
        ncclAllReduce(send, recv, count, type, ncclSum, channel->comm, stream),
        "ncclAllReduce");
}

void channel_bcast(struct channel *channel, void *data, size_t count,
                   ncclDataType_t type, int root, cudaStream_t stream)
{
    log_call(channel, "Bcast", count, type, root);
    check_nccl(ncclBcast(data, count, type, root, channel->comm, stream),
               "ncclBcast");
}

void channel_send(struct channel *channel, const void *data, size_t count,
                  ncclDataType_t type, int peer, cudaStream_t stream)
{
    log_call(channel, "Send", count, type, peer);
    check_nccl(ncclSend(data, count, type, peer, channel->comm, stream),
               "ncclSend");
}

void channel_recv(struct channel *channel, void *data, size_t count,
                  ncclDataType_t type, int peer, cudaStream_t stream)
{
    log_call(channel, "Recv", count, type, peer);
    check_nccl(ncclRecv(data, count, type, peer, channel->comm, stream),
               "ncclRecv");
}
