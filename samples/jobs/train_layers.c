/* Computing is a delay on the stream; tensor-parallel sums follow it. */
#include "train.h"

#include "pattern.h"

static void delay(void *time)
{
    struct timespec left = *(struct timespec *)time;

    while (nanosleep(&left, &left))
        ;
}

static void compute(struct train *t, struct timespec *time)
{
    if (t->options.compute_us)
        check_cuda(cudaLaunchHostFunc(t->stream, delay, time),
                   "cudaLaunchHostFunc");
}

/* ---- tensor parallel ---- */

static void tp_all_reduce(struct train *t, int variant)
{
    if (!t->tp.comm)
        return;
    channel_all_reduce(&t->tp, t->tp_in[variant], t->tp_out, t->activation,
                       t->options.type, t->stream);
    pattern_check(t->tp_out, t->activation, t->options.type, TP_SALT + variant,
                  0, t->tp.nranks, t->last_step, "tensor-parallel sum",
                  t->stream);
}

/* Attention and MLP: each computes and sums once forward, once backward. */
static void run_layers(struct train *t, int micro_batch,
                       struct timespec *half_layer)
{
    for (int i = 0; i < 2 * t->layers; i++) {
        compute(t, half_layer);
        tp_all_reduce(t, (micro_batch + i) % VARIANTS);
    }
}

void train_forward(struct train *t, int micro_batch)
{
    run_layers(t, micro_batch, &t->forward_delay);
}

void train_backward(struct train *t, int micro_batch)
{
    run_layers(t, micro_batch, &t->backward_delay);
}
