/* The 1F1B schedule: what crosses between two stages at one moment goes in one
 * group. */
#include "train.h"

#include <string.h>

#include "pattern.h"

static int is_first(const struct train *t)
{
    return t->stage == 0;
}

static int is_last(const struct train *t)
{
    return t->stage == t->stages - 1;
}

static void send(struct train *t, void *const *variants, int micro_batch,
                 int stage)
{
    channel_send(&t->pp, variants[micro_batch % VARIANTS], t->activation,
                 t->options.type, stage, t->stream);
}

static void receive(struct train *t, void *buffer, int stage)
{
    channel_recv(&t->pp, buffer, t->activation, t->options.type, stage,
                 t->stream);
}

static void check_received(struct train *t, void *buffer, enum salt salt,
                           int micro_batch, int from)
{
    pattern_check(buffer, t->activation, t->options.type,
                  (int)salt + micro_batch % VARIANTS, from, 1, t->last_step,
                  salt == FORWARD_SALT ? "received activation"
                                       : "received gradient",
                  t->stream);
}

/* What crosses between two stages at one moment, in one group; -1: nothing. */
struct exchange {
    int send_forward;
    int receive_forward;
    int send_backward;
    int receive_backward;
};

static const struct exchange no_exchange = {-1, -1, -1, -1};

static void call_exchange(struct train *t, const struct exchange *x)
{
    if (x->send_forward >= 0)
        send(t, t->forward_out, x->send_forward, t->stage + 1);
    if (x->receive_forward >= 0)
        receive(t, t->forward_in, t->stage - 1);
    if (x->send_backward >= 0)
        send(t, t->backward_out, x->send_backward, t->stage - 1);
    if (x->receive_backward >= 0)
        receive(t, t->backward_in, t->stage + 1);
}

static void exchange(struct train *t, struct exchange x)
{
    if (is_first(t))
        x.receive_forward = x.send_backward = -1;
    if (is_last(t))
        x.send_forward = x.receive_backward = -1;
    if (!memcmp(&x, &no_exchange, sizeof(x)))
        return;
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    call_exchange(t, &x);
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    if (x.receive_forward >= 0)
        check_received(t, t->forward_in, FORWARD_SALT, x.receive_forward,
                       t->stage - 1);
    if (x.receive_backward >= 0)
        check_received(t, t->backward_in, BACKWARD_SALT, x.receive_backward,
                       t->stage + 1);
}

static void warm_up(struct train *t, int n)
{
    for (int i = 0; i < n; i++) {
        struct exchange in = no_exchange;
        struct exchange out = no_exchange;

        in.receive_forward = i;
        out.send_forward = i;
        exchange(t, in);
        train_forward(t, i);
        exchange(t, out);
    }
}

/* One forward, one backward; warm micro-batches are forward already. */
static void steady(struct train *t, int warm, int n)
{
    struct exchange first = no_exchange;

    first.receive_forward = warm;
    if (n)
        exchange(t, first);
    for (int i = 0; i < n; i++) {
        struct exchange up = no_exchange;
        struct exchange down = no_exchange;

        train_forward(t, warm + i);
        up.send_forward = warm + i;
        up.receive_backward = i;
        exchange(t, up);
        train_backward(t, i);
        down.send_backward = i;
        down.receive_forward = i + 1 < n ? warm + i + 1 : -1;
        exchange(t, down);
    }
}

static void cool_down(struct train *t, int first, int n)
{
    for (int i = first; i < first + n; i++) {
        struct exchange in = no_exchange;
        struct exchange out = no_exchange;

        in.receive_backward = i;
        out.send_backward = i;
        exchange(t, in);
        train_backward(t, i);
        exchange(t, out);
    }
}

void train_pipeline(struct train *t)
{
    int m = t->options.micro_batches;
    int warm = t->stages - t->stage - 1;

    if (warm > m)
        warm = m;
    warm_up(t, warm);
    steady(t, warm, m - warm);
    cool_down(t, m - warm, warm);
}
