/* Communicators and buffers of a rank. */
#include "train.h"

#include <stdlib.h>

#include "pattern.h"

static void split(struct train *t, struct channel *channel, unsigned dims)
{
    const struct layout *layout = &t->options.layout;
    int group = layout_group(layout, t->job.rank, dims);
    int *members = malloc((size_t)t->job.world * sizeof(*members));
    int n = 0;

    if (!members)
        die("out of memory");
    for (int r = 0; r < t->job.world; r++) {
        if (layout_group(layout, r, dims) == group)
            members[n++] = r;
    }
    channel_split(channel, t->world, group,
                  layout_place(layout, t->job.rank, dims), members, n, t->log);
    free(members);
}

static void open_log(struct train *t)
{
    char path[4096];

    if (!t->options.log_dir)
        return;
    snprintf(path, sizeof(path), "%s/rank%d.log", t->options.log_dir,
             t->job.rank);
    t->log = fopen(path, "w");
    if (!t->log)
        die("%s: cannot be written", path);
    /* A killed rank's log must hold every call that it made. */
    setvbuf(t->log, NULL, _IOLBF, 0);
}

static struct timespec microseconds(long us)
{
    return (struct timespec){.tv_sec = us / 1000000,
                             .tv_nsec = us % 1000000 * 1000};
}

static void make_buffers(struct train *t)
{
    ncclDataType_t type = t->options.type;
    size_t n = t->activation;

    for (int i = 0; i < VARIANTS; i++) {
        t->tp_in[i] = pattern_new(n, type, TP_SALT + i, t->tp.rank);
        t->forward_out[i] = pattern_new(n, type, FORWARD_SALT + i, t->stage);
        t->backward_out[i] = pattern_new(n, type, BACKWARD_SALT + i, t->stage);
    }
    t->tp_out = pattern_new(n, type, 0, 0);
    t->forward_in = pattern_new(n, type, 0, 0);
    t->backward_in = pattern_new(n, type, 0, 0);
    t->grad_in = pattern_new(t->parameters, type, GRAD_SALT, t->dp.rank);
    t->grad_out = pattern_new(t->parameters, type, 0, 0);
    t->weights = pattern_new(t->parameters, type, PARAMETER_SALT, t->dp.rank);
    t->norm_in = pattern_new(1, ncclFloat32, NORM_SALT,
                             t->model.comm ? t->model.rank : t->dp.rank);
    t->norm_out = pattern_new(1, ncclFloat32, 0, 0);
}

static void free_buffers(struct train *t)
{
    void *single[] = {t->tp_out,   t->forward_in, t->backward_in, t->grad_in,
                      t->grad_out, t->weights,    t->norm_in,     t->norm_out};

    for (int i = 0; i < VARIANTS; i++) {
        cudaFree(t->tp_in[i]);
        cudaFree(t->forward_out[i]);
        cudaFree(t->backward_out[i]);
    }
    for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++)
        cudaFree(single[i]);
}

void train_set_up(struct train *t)
{
    const struct options *o = &t->options;
    long half_us = o->compute_us / 2;

    t->stages = o->layout.size[PP];
    t->stage = layout_coordinate(&o->layout, t->job.rank, PP);
    t->layers = o->layers / t->stages;
    t->activation = (size_t)o->batch * (size_t)o->seq * (size_t)o->hidden;
    /* A transformer layer has 12 h^2 parameters; TP ranks share them. */
    t->parameters = 12 * (size_t)o->hidden * (size_t)o->hidden *
                    (size_t)t->layers / (size_t)o->layout.size[TP];
    t->forward_delay = microseconds(half_us);
    t->backward_delay = microseconds(2 * half_us);
    open_log(t);
    t->world = job_connect(&t->job);
    split(t, &t->tp, 1u << TP);
    split(t, &t->pp, 1u << PP);
    split(t, &t->dp, 1u << DP);
    split(t, &t->model, 1u << TP | 1u << PP);
    check_cuda(cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking),
               "cudaStreamCreate");
    check_cuda(cudaEventCreate(&t->begin), "cudaEventCreate");
    check_cuda(cudaEventCreate(&t->end), "cudaEventCreate");
    make_buffers(t);
}

void train_tear_down(struct train *t)
{
    channel_close(&t->model);
    channel_close(&t->dp);
    channel_close(&t->pp);
    channel_close(&t->tp);
    check_nccl(ncclCommFinalize(t->world), "ncclCommFinalize");
    check_nccl(ncclCommDestroy(t->world), "ncclCommDestroy");
    free_buffers(t);
    cudaEventDestroy(t->begin);
    cudaEventDestroy(t->end);
    check_cuda(cudaStreamDestroy(t->stream), "cudaStreamDestroy");
    if (t->log)
        fclose(t->log);
}
