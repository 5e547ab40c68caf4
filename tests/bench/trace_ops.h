/* A ring and trace without a program: slots of a realistic mix of operations,
 * put in as hooks would. */
#ifndef BENCH_TRACE_OPS_H
#define BENCH_TRACE_OPS_H

#include "commtrace/ops.h"
#include "trace.h"

#include <string.h>

struct mix { /* a layer's worth of a tensor-parallel, pipelined step */
    uint16_t op;
    uint32_t comm;
    uint64_t count;
    int32_t peer;
};

static const struct mix mixes[] = {
    {CT_OP_ALL_REDUCE, 2, 8388608, -1},   {CT_OP_ALL_REDUCE, 2, 8388608, -1},
    {CT_OP_ALL_REDUCE, 2, 8388608, -1},   {CT_OP_ALL_REDUCE, 2, 8388608, -1},
    {CT_OP_SEND, 3, 8388608, 1},          {CT_OP_RECV, 3, 8388608, 0},
    {CT_OP_REDUCE_SCATTER, 4, 65536, -1}, {CT_OP_ALL_GATHER, 4, 65536, -1},
};

struct ops {
    struct ring ring;
    struct process process;
    struct config config;
    struct trace trace;
    uint64_t issued;
    uint64_t ordinals[sizeof(mixes) / sizeof(*mixes)];
};

/* timed: GPU times as the writer would store them; there is no GPU here, so
 * their room in the row is taken by the host time. */
static inline void ops_issue(struct ops *ops)
{
    uint64_t position;
    unsigned which = ops->issued % (sizeof(mixes) / sizeof(*mixes));
    const struct mix *mix = &mixes[which];
    struct ct_slot *slot = ring_reserve(&ops->ring, &position);
    if (!slot)
        return;
    slot->enter_ns = (int64_t)ops->issued * 150000;
    slot->flags = 0;
    slot->comm = mix->comm;
    slot->kind = CT_SLOT_OP;
    slot->op = mix->op;
    slot->grp = 0;
    memset(&slot->u.call, 0, sizeof(slot->u.call));
    slot->u.call.ordinal = ops->ordinals[which]++;
    slot->u.call.count = mix->count;
    slot->u.call.stream = 0x55d0c0ffee00;
    slot->u.call.site = 0x55d0deadbeef;
    slot->u.call.type = CT_TYPE_BFLOAT16;
    slot->u.call.redop = mix->peer < 0 ? CT_REDOP_SUM : -1;
    slot->u.call.peer = mix->peer;
    slot->u.call.events = -1;
    ring_publish(slot, position, CT_SLOT_OPEN);
    ring_leave(slot, position, slot->enter_ns + 12000 + which, 0);
    ops->issued++;
}

static inline int ops_open(struct ops *ops, const char *dir, uint64_t nslots)
{
    *ops = (struct ops){.config = {.max_mb = 1 << 20, .flush_ms = 500}};
    if (process_describe(&ops->process, dir) != 0 ||
        ring_open(&ops->ring, "", "", nslots) != 0)
        return -1;
    return trace_open(&ops->trace, &ops->ring, &ops->config, &ops->process,
                      false);
}

#endif
