#include "nccl/split.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/hash.h"
#include "commtrace/nccl_hash.h"
#include "nccl/api.h"
#include "nccl/comm.h"
#include "nccl/group.h"
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

/* Shrinks that left out the same ranks are told apart by their number; those
 * of other ranks are not called by all. */
struct shrunk {
    uint64_t set;
    uint32_t times;
};

static uint32_t count_shrink(struct ncclComm *comm, uint64_t set)
{
    struct shrunk *more;

    for (int i = 0; i < comm->n_shrunk; i++) {
        if (comm->shrunk[i].set == set)
            return ++comm->shrunk[i].times;
    }
    more = realloc(comm->shrunk,
                   ((size_t)comm->n_shrunk + 1) * sizeof(*comm->shrunk));
    if (!more)
        return 0;
    comm->shrunk = more;
    more[comm->n_shrunk++] = (struct shrunk){set, 1};
    return 1;
}

/* A ballot is used again once every rank has read what was on it. */
ncclResult_t split_vote(struct split *split)
{
    struct ncclComm *comm = split->parent;
    struct seat *seat = my_seat(comm);
    struct ballot *ballot;

    if (split->is_shrink) {
        split->number = count_shrink(comm, split->set);
        return split->number ? ncclSuccess : ncclSystemError;
    }
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
static void find_place(struct split *split)
{
    struct ncclComm *comm = split->parent;

    split->rank = 0;
    split->nranks = 0;
    for (int i = 0; i < comm->nranks; i++) {
        struct seat *seat = segment_seat(comm->segment, i);
        struct ballot vote = seat->ballot[split->number % SEGMENT_BALLOTS];

        if (vote.color != split->color)
            continue;
        split->nranks++;
        if (vote.key < split->key || (vote.key == split->key && i < comm->rank))
            split->rank++;
    }
}

/* A name for the child, made of one of its parent's names. */
static uint64_t derive(uint64_t parent, const struct split *split)
{
    uint64_t vote = (uint64_t)split->number << 32 | (uint32_t)split->color;

    if (split->is_shrink)
        vote = ~(vote ^ split->set << 16);

    return fabric_mix(parent + fabric_mix(vote));
}

static ncclResult_t count_votes(struct split *split)
{
    struct ncclComm *comm = split->parent;

    if (await_counters(comm, split->number, 0))
        return nccl_fail(ncclInternalError, "aborted during ncclCommSplit");
    find_place(split);
    atomic_store(&my_seat(comm)->counted, split->number);
    segment_ring_all(comm->segment);
    return ncclSuccess;
}

ncclResult_t split_count(struct split *split)
{
    struct ncclComm *comm = split->parent;
    ncclResult_t result = split->is_shrink ? ncclSuccess : count_votes(split);

    if (result || split->color == NCCL_SPLIT_NOCOLOR)
        return result;
    split->child = comm_attach(derive(comm->id, split), split->nranks,
                               split->rank, comm->device, comm->host_id);
    if (!split->child)
        return ncclSystemError;
    split->child->origin = (struct origin){
        .call = split->is_shrink ? "ncclCommShrink" : "ncclCommSplit",
        .parent = comm,
        .number = split->nccl_number,
        .color = split->color,
        .key = split->key,
    };
    split->child->noise = derive(comm->noise, split);
    split->child->blocking = split->blocking;
    split->child->nccl_hash = split->child->nccl_magic = ct_nccl_hash_of_child(
        comm->nccl_hash, (int)split->nccl_number, split->color);
    return ncclSuccess;
}

ncclResult_t split_finish(struct split *split)
{
    ncclResult_t result =
        split->child ? comm_bring_up(split->child) : ncclSuccess;

    *split->newcomm = split->child;
    return result;
}

/* What the child is, is settled at the call: a config may be gone later. */
static int blocking_of(struct ncclComm *parent, const ncclConfig_t *config)
{
    struct ncclComm child = {.blocking = 1};

    comm_configure(&child, config, parent);
    return child.blocking;
}

NCCL_API(ncclResult_t, CommSplit,
         (ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
          ncclConfig_t *config))
{
    ncclResult_t result = comm_check_ready(comm);

    if (!result)
        result = comm_check_config(config);
    if (result)
        return group_fail(result);
    if (!newcomm || (color < 0 && color != NCCL_SPLIT_NOCOLOR))
        return group_fail(
            nccl_fail(ncclInvalidArgument, "CommSplit: color %d", color));
    *newcomm = NULL;
    return group_add_split(
        &(struct split){.parent = comm,
                        .nccl_number = ++comm->children,
                        .color = color,
                        .key = key,
                        .newcomm = newcomm,
                        .blocking = blocking_of(comm, config)});
}

/* Equal for equal sets, whatever their order. */
static uint64_t set_of(const int *ranks, int n)
{
    uint64_t sum = 0;

    for (int i = 0; i < n; i++)
        sum += fabric_mix((uint64_t)ranks[i] + 1);
    return fabric_mix(sum);
}

/* My place among those that stay; -1 when I am not. */
static int place_after(const struct ncclComm *comm, const int *excluded, int n)
{
    int place = comm->rank;

    for (int i = 0; i < n; i++) {
        if (excluded[i] == comm->rank)
            return -1;
        place -= excluded[i] < comm->rank;
    }
    return place;
}

static int are_ranks(const struct ncclComm *comm, const int *ranks, int n)
{
    for (int i = 0; i < n; i++) {
        if (ranks[i] < 0 || ranks[i] >= comm->nranks)
            return 0;
    }
    return 1;
}

NCCL_API(ncclResult_t, CommShrink,
         (ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
          ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags))
{
    struct split split = {.parent = comm, .newcomm = newcomm, .is_shrink = 1};
    ncclResult_t result = comm_check(comm);

    if (!result && !(shrinkFlags & NCCL_SHRINK_ABORT))
        result = comm_check_ready(comm);
    if (!result)
        result = comm_check_config(config);
    if (result)
        return group_fail(result);
    if (!newcomm || !excludeRanksList || excludeRanksCount < 1 ||
        !are_ranks(comm, excludeRanksList, excludeRanksCount))
        return group_fail(nccl_fail(ncclInvalidArgument, "CommShrink: %d ranks",
                                    excludeRanksCount));
    *newcomm = NULL;
    split.set = set_of(excludeRanksList, excludeRanksCount);
    split.rank = place_after(comm, excludeRanksList, excludeRanksCount);
    split.nranks = comm->nranks - excludeRanksCount;
    split.blocking = blocking_of(comm, config);
    if (split.rank < 0)
        return group_fail(nccl_fail(ncclInvalidArgument,
                                    "CommShrink: called by rank %d, which it "
                                    "excludes",
                                    comm->rank));
    if (shrinkFlags & NCCL_SHRINK_ABORT)
        comm_stop(comm, &comm->revoked);
    return group_add_split(&split);
}
