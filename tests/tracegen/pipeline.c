/*
 * The order of forward and backward passes on a stage. What each schedule does
 * is described in Megatron-LM, core/pipeline_parallel/schedules.py, and in the
 * papers on GPipe and on zero-bubble pipelines (ZB-H1).
 */
#include "stage.h"

#define NOBODY (-1)

/* What a stage sends and receives in one bracket. */
struct messages {
    int send_before, receive_before, send_next, receive_next; /* micro-batch */
};

static const struct messages none = {NOBODY, NOBODY, NOBODY, NOBODY};

static enum comm_kind pipeline_comm(const struct stage *s)
{
    return s->job->over_world ? COMM_WORLD : COMM_PP;
}

static int neighbour(const struct stage *s, int step)
{
    const struct layout *layout = s->layout;
    const int place = (s->place + s->degree + step) % s->degree;

    return s->job->over_world
               ? layout->comms[layout->comm_of[s->rank][COMM_PP]].ranks[place]
               : place;
}

static void message(const struct stage *s, enum call call, int step,
                    int micro_batch)
{
    uint64_t n = stage_activation(s, micro_batch);

    if (s->job->sequence)
        n /= (uint64_t)s->options->degree[TP];
    program_message(s->p, call, pipeline_comm(s), CT_TYPE_BFLOAT16, n ? n : 1,
                    neighbour(s, step));
    s->p->code[s->p->n - 1].stream = stage_stream(s, COMM_PP);
}

/* Gives the call; NULL: there is nothing to transmit. */
static struct instruction *transmit(const struct stage *s, struct messages m)
{
    const int n = (m.send_before >= 0) + (m.receive_before >= 0) +
                  (m.send_next >= 0) + (m.receive_next >= 0);

    const int at = s->p->n;

    if (s->degree == 1 || !n)
        return NULL;
    if (n > 1)
        program_group(s->p, n)->stream = stage_stream(s, COMM_PP);
    if (m.send_before >= 0)
        message(s, SEND, -1, m.send_before);
    if (m.receive_before >= 0)
        message(s, RECV, -1, m.receive_before);
    if (m.send_next >= 0)
        message(s, SEND, 1, m.send_next);
    if (m.receive_next >= 0)
        message(s, RECV, 1, m.receive_next);
    return &s->p->code[at];
}

/* The ends of the pipeline have nobody beyond them. */
static struct instruction *transmit_along(const struct stage *s,
                                          struct messages m)
{
    if (s->place == 0)
        m.send_before = m.receive_before = NOBODY;
    if (s->place == s->degree - 1)
        m.send_next = m.receive_next = NOBODY;
    return transmit(s, m);
}

static void forward(const struct stage *s, int micro_batch)
{
    stage_forward(s, 0, micro_batch);
}

static void receive_forward(const struct stage *s, int micro_batch)
{
    struct messages m = none;

    m.receive_before = micro_batch;
    transmit_along(s, m);
}

static void send_forward(const struct stage *s, int micro_batch)
{
    struct messages m = none;

    m.send_next = micro_batch;
    transmit_along(s, m);
}

static void receive_backward(const struct stage *s, int micro_batch)
{
    struct messages m = none;

    m.receive_next = micro_batch;
    transmit_along(s, m);
}

static void send_backward(const struct stage *s, int micro_batch)
{
    struct messages m = none;

    m.send_before = micro_batch;
    transmit_along(s, m);
}

static void all_forward(const struct stage *s, int from, int to)
{
    int i;

    for (i = from; i < to; i++) {
        receive_forward(s, i);
        forward(s, i);
        send_forward(s, i);
    }
}

static void all_backward(const struct stage *s, int from, int to)
{
    int i;

    for (i = from; i < to; i++) {
        receive_backward(s, i);
        stage_backward(s, 0, i, BACKWARD_WHOLE);
        send_backward(s, i);
    }
}

/* Fill, one forward one backward, drain. */
static void one_forward_one_backward(const struct stage *s)
{
    const int m = s->micro_batches, room = s->degree - s->place - 1;
    const int fill = room < m ? room : m, steady = m - fill;
    int i;

    all_forward(s, 0, fill);
    if (steady)
        receive_forward(s, fill);
    for (i = 0; i < steady; i++) {
        struct messages up = none, down = none;

        up.send_next = fill + i;
        up.receive_next = i;
        down.send_before = i;
        down.receive_before = i + 1 < steady ? fill + i + 1 : NOBODY;
        forward(s, fill + i);
        transmit_along(s, up);
        stage_backward(s, 0, i, BACKWARD_WHOLE);
        transmit_along(s, down);
    }
    all_backward(s, steady, m);
}

/* The gradients of weights wait, on the last stage longest, so that those of
 * inputs reach the first stage early; messages travel meanwhile. */
static int weights(const struct stage *s, int from, int to)
{
    for (; from < to; from++)
        stage_backward(s, 0, from, BACKWARD_WEIGHTS);
    return from;
}

static int backward_first(const struct stage *s, int micro_batch, int receive,
                          int weighed)
{
    struct messages down = none;
    struct instruction *call;

    down.send_before = micro_batch;
    down.receive_before = receive;
    stage_backward(s, 0, micro_batch, BACKWARD_INPUTS);
    call = transmit_along(s, down);
    if (call) {
        call->stream = PIPELINE_STREAM;
        call->async = true;
        call->event = PIPELINE_EVENT;
    }
    weighed = weights(s, weighed, micro_batch + 1 - s->place);
    if (call)
        program_wait(s->p, PIPELINE_EVENT);
    return weighed;
}

static void zero_bubble(const struct stage *s)
{
    const int m = s->micro_batches, room = s->degree - s->place - 1;
    const int fill = room < m ? room : m, steady = m - fill;
    int i, weighed = 0;

    all_forward(s, 0, fill);
    if (steady)
        receive_forward(s, fill);
    for (i = 0; i < steady; i++) {
        struct messages up = none;

        up.send_next = fill + i;
        up.receive_next = i;
        forward(s, fill + i);
        transmit_along(s, up);
        weighed = backward_first(s, i, i + 1 < steady ? fill + i + 1 : NOBODY,
                                 weighed);
    }
    for (; i < m; i++) {
        receive_backward(s, i);
        weighed = backward_first(s, i, NOBODY, weighed);
    }
    weights(s, weighed, m);
}

/* Interleaved: passes are numbered, chunks come in turn, p micro-batches each.
 */
static int chunk_of(const struct stage *s, int pass, bool backward)
{
    const int v = s->job->chunks, chunk = pass / s->degree % v;

    return backward ? v - 1 - chunk : chunk;
}

static int micro_batch_of(const struct stage *s, int pass)
{
    const int p = s->degree, v = s->job->chunks;

    return pass / (p * v) * p + pass % p;
}

/* The pass that the neighbour does next, whose message is received; the ends
 * of the pipeline are p-1 passes apart. */
static int next_received(const struct stage *s, int pass, bool backward)
{
    const int p = s->degree, v = s->job->chunks;
    const bool end = backward ? s->place == p - 1 : s->place == 0;
    const int next = pass + 1, total = s->micro_batches * v;
    int chunk;

    if (next >= total)
        return NOBODY;
    chunk = chunk_of(s, next, backward);
    if (end && chunk == (backward ? v - 1 : 0))
        return NOBODY; /* it begins or ends there */
    return micro_batch_of(s, next);
}

static void pass_forward(const struct stage *s, int pass, struct messages *m)
{
    const int chunk = chunk_of(s, pass, false);

    stage_forward(s, chunk, micro_batch_of(s, pass));
    if (!stage_is_last(s, chunk))
        m->send_next = micro_batch_of(s, pass);
    m->receive_before = next_received(s, pass, false);
}

static void pass_backward(const struct stage *s, int pass, struct messages *m)
{
    const int chunk = chunk_of(s, pass, true);

    stage_backward(s, chunk, micro_batch_of(s, pass), BACKWARD_WHOLE);
    if (!stage_is_first(s, chunk))
        m->send_before = micro_batch_of(s, pass);
    m->receive_next = next_received(s, pass, true);
}

static void interleaved(const struct stage *s)
{
    const int p = s->degree, v = s->job->chunks, total = s->micro_batches * v;
    int fill = 2 * (p - s->place - 1) + (v - 1) * p, i;
    struct messages m = none;

    if (!s->trains || fill > total)
        fill = total;
    if (s->place > 0)
        receive_forward(s, 0);
    for (i = 0; i < fill; i++) {
        m = none;
        pass_forward(s, i, &m);
        if (s->trains && i == fill - 1 && s->place < p - 1)
            m.receive_next = 0;
        transmit(s, m);
    }
    for (i = 0; i < total - fill; i++) {
        m = none;
        pass_forward(s, fill + i, &m);
        pass_backward(s, i, &m);
        transmit(s, m);
    }
    for (; s->trains && i < total; i++) {
        m = none;
        pass_backward(s, i, &m);
        transmit(s, m);
    }
}

void stage_schedule(const struct stage *s)
{
    const int m = s->micro_batches;

    if (s->job->schedule == SCHEDULE_INTERLEAVED) {
        interleaved(s);
    } else if (!s->trains) {
        all_forward(s, 0, m);
    } else if (s->job->schedule == SCHEDULE_GPIPE) {
        all_forward(s, 0, m);
        all_backward(s, 0, m);
    } else if (s->job->schedule == SCHEDULE_ZERO_BUBBLE) {
        zero_bubble(s);
    } else {
        one_forward_one_backward(s);
    }
}
