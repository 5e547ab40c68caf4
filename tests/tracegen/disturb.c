#include "tracegen.h"

#include <math.h>

double jittered(const struct options *o, uint64_t a, uint64_t b)
{
    uint64_t bits = mix(mix(o->seed, a), b);
    double u = ((double)(bits >> 32) + 0.5) / 4294967296.0;
    double v = (double)(bits & 0xffffffffu) / 4294967296.0;

    return exp(o->jitter * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

int64_t compute_ns(const struct simulation *s, int rank, double us)
{
    const struct options *o = s->layout->options;

    return (int64_t)(1e3 * us * (rank == o->slow_rank ? o->slow_factor : 1) *
                     jittered(o, (uint64_t)rank + 1, s->ranks[rank].draws++));
}

int64_t collective_ns(const struct simulation *s, int comm, enum ct_op op,
                      uint64_t bytes, uint64_t n, int64_t start_ns)
{
    const struct options *o = s->layout->options;
    const struct comm *c = &s->layout->comms[comm];

    (void)start_ns;
    return (int64_t)(transfer_ns(o, c->crosses, op, c->nranks, bytes) *
                     jittered(o, c->uid, n));
}

int64_t message_ns(const struct simulation *s, int source, int target,
                   uint64_t bytes, uint64_t n, int64_t start_ns)
{
    const struct options *o = s->layout->options;
    const bool crosses =
        layout_host(s->layout, source) != layout_host(s->layout, target);

    (void)start_ns;
    return (int64_t)(transfer_ns(o, crosses, CT_OP_SEND, 2, bytes) *
                     jittered(o, mix((uint64_t)source, (uint64_t)target), n));
}

static const struct {
    enum ct_op_size size;
    enum ct_op_wire wire;
} ops[CT_OP_COUNT] = {
#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, ...) \
    [CT_OP_##id_] = {CT_##size_, CT_##wire_},
#include "commtrace/nccl_ops.def"
};

static const uint64_t type_bytes[] = {
#define TYPE(id_, value_, name_, bytes_) [value_] = (bytes_),
#include "commtrace/nccl_types.def"
};

uint64_t op_bytes(enum ct_op op, int type, uint64_t count, int nranks)
{
    return count * type_bytes[type] *
           (ops[op].size == CT_ALL_SHARES ? (uint64_t)nranks : 1);
}

double transfer_ns(const struct options *o, int link, enum ct_op op, int nranks,
                   uint64_t bytes)
{
    double n = nranks, wire = ops[op].wire == CT_UNIT   ? 1
                              : ops[op].wire == CT_RING ? (n - 1) / n
                                                        : 2 * (n - 1) / n;

    return 1e3 * o->alpha_us[link] + wire * (double)bytes / o->GBps[link];
}
