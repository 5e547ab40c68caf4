#include "nccl/split.h"

#include <stdatomic.h>

#include "common/hash.h"
#include "nccl/api.h"
#include "nccl/comm.h"
#include "nccl/segment.h"

static struct seat *my_seat(struct ncclComm *comm)
{
    return segment_seat(comm->segment, comm->rank);
}

/* Waits until every rank's counter has reached n; -1 when aborted. */
static int await_counters(struct ncclComm *comm, uint32_t n, int counted)
{
    for (int i = 0; i < comm->nranks;) {
        struct seat *seat = segment_seat(comm->segment, i);
        _Atomic uint32_t *counter = counted ? &seat->counted : &seat->voted;
        uint32_t heard = seat_listen(my_seat(comm));

        if (atomic_load(&comm->aborted))
            return -1;
        if (atomic_load(counter) >= n)
            i++;
        else
            seat_sleep(my_seat(comm), heard);
    }
    return 0;
}

/* A ballot is used again once every rank has read what was on it. */
ncclResult_t split_vote(struct split *split)
{
    struct ncclComm *comm = split->parent;
    struct seat *seat = my_seat(comm);
    struct ballot *ballot;

    split->number = ++comm->splits;
    if (split->number > SEGMENT_BALLOTS &&
        await_counters(comm, split->number - SEGMENT_BALLOTS, 1))
        return nccl_fail(ncclInternalError, "aborted during ncclCommSplit");
    ballot = &seat->ballot[split->number % SEGMENT_BALLOTS];
    ballot->color = split->color;
    ballot->key = split->key;
    atomic_store(&seat->voted, split->number);
    segment_ring_all(comm->segment);
    return ncclSuccess;
}

/* My place among the ranks of my colour: by key, then by old rank. */
static void find_place(const struct split *split, int *rank, int *nranks)
{
    struct ncclComm *comm = split->parent;

    *rank = 0;
    *nranks = 0;
    for (int i = 0; i < comm->nranks; i++) {
        struct seat *seat = segment_seat(comm->segment, i);
        struct ballot vote = seat->ballot[split->number % SEGMENT_BALLOTS];

        if (vote.color != split->color)
            continue;
        ++*nranks;
        if (vote.key < split->key || (vote.key == split->key && i < comm->rank))
            ++*rank;
    }
}

/* A name for the child, made of one of its parent's names. */
static uint64_t derive(uint64_t parent, const struct split *split)
{
    uint64_t vote = (uint64_t)split->number << 32 | (uint32_t)split->color;

    return fabric_mix(parent + fabric_mix(vote));
}

ncclResult_t split_count(struct split *split)
{
    struct ncclComm *comm = split->parent;
    int rank;
    int nranks;

    *split->newcomm = NULL;
    if (await_counters(comm, split->number, 0))
        return nccl_fail(ncclInternalError, "aborted during ncclCommSplit");
    find_place(split, &rank, &nranks);
    atomic_store(&my_seat(comm)->counted, split->number);
    segment_ring_all(comm->segment);
    if (split->color == NCCL_SPLIT_NOCOLOR)
        return ncclSuccess;
    *split->newcomm = comm_attach(derive(comm->id, split), nranks, rank,
                                  comm->device, comm->host_id);
    if (!*split->newcomm)
        return ncclSystemError;
    (*split->newcomm)->noise = derive(comm->noise, split);
    return ncclSuccess;
}

void split_finish(struct split *split)
{
    if (*split->newcomm)
        comm_await_all(*split->newcomm);
}
