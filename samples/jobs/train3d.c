/*
 * The traffic of one training job of a transformer, tensor x pipeline x data
 * parallel, without the arithmetic: per layer and micro-batch four all-reduces
 * of b*s*h elements in the tensor-parallel group (two forward, two backward),
 * sends and receives of b*s*h between pipeline stages in the 1F1B schedule, at
 * the end of a step the gradients' all-reduce in buckets and one of a scalar.
 * Computing is a delay on the stream. Every result is checked on the host.
 */
#include <stdlib.h>

#include "pattern.h"
#include "train.h"

static void synchronize(struct train *t)
{
    check_cuda(cudaStreamSynchronize(t->stream), "cudaStreamSynchronize");
    if (pattern_failures())
        die("rank %d: %d checks failed", t->job.rank, pattern_failures());
}

/* Its time in ms, as the GPU sees it. */
static double step(struct train *t)
{
    float ms;

    check_cuda(cudaEventRecord(t->begin, t->stream), "cudaEventRecord");
    train_pipeline(t);
    train_reduce_gradients(t);
    train_reduce_norm(t);
    check_cuda(cudaEventRecord(t->end, t->stream), "cudaEventRecord");
    synchronize(t);
    check_cuda(cudaEventElapsedTime(&ms, t->begin, t->end),
               "cudaEventElapsedTime");
    return (double)ms;
}

static void print_summary(double *ms, int n)
{
    printf("step_ms_median=%.3f\n", median(ms, n));
    printf("step_ms_least=%.3f\n", ms[0]); /* median() has sorted them */
}

static void run(struct train *t)
{
    const struct options *o = &t->options;
    double *ms = calloc((size_t)o->steps + 1, sizeof(*ms));
    int skip = o->steps > 2; /* the first step is not like the others */

    if (!ms)
        die("out of memory");
    train_broadcast_parameters(t);
    synchronize(t);
    for (int i = 0; i < o->steps; i++) {
        t->last_step = i == o->steps - 1;
        ms[i] = step(t);
    }
    if (t->job.rank == 0) {
        printf("train3d: tp=%d pp=%d dp=%d order %s: %d steps, data right\n",
               o->layout.size[TP], o->layout.size[PP], o->layout.size[DP],
               o->order, o->steps);
        if (o->summary)
            print_summary(ms + skip, o->steps - skip);
    }
    free(ms);
}

int main(int argc, char **argv)
{
    struct train t = {
        .options =
            {
                .layout = {.size = {1, 1, 1}},
                .order = "tp-pp-dp",
                .layers = 4,
                .micro_batches = 4,
                .batch = 1,
                .seq = 128,
                .hidden = 256,
                .type = ncclFloat32,
                .steps = 4,
                .compute_us = 1000,
            },
    };

    train_options(&t.options, argc, argv);
    t.job = job_from_environment();
    train_check_options(&t.options, t.job.world);
    train_set_up(&t);
    run(&t);
    train_tear_down(&t);
    return 0;
}
