/* Data parallel: the sums at the end of a step, and the broadcast at first. */
#include "train.h"

#include "pattern.h"

/* Gradients go in unequal buckets, the first one small, as in DDP. */
static const int bucket_share[] = {1, 3, 4, 8};
#define BUCKETS ((int)(sizeof(bucket_share) / sizeof(bucket_share[0])))
#define BUCKET_SHARES 16

static void reduce_bucket(struct train *t, size_t first, size_t count)
{
    size_t offset = first * pattern_bytes(t->options.type);

    channel_all_reduce(&t->dp, (char *)t->grad_in + offset,
                       (char *)t->grad_out + offset, count, t->options.type,
                       t->stream);
}

void train_reduce_gradients(struct train *t)
{
    size_t first = 0;

    if (!t->dp.comm)
        return;
    for (int i = 0; i < BUCKETS; i++) {
        size_t count = t->parameters / BUCKET_SHARES * (size_t)bucket_share[i];

        if (i == BUCKETS - 1)
            count = t->parameters - first;
        reduce_bucket(t, first, count);
        first += count;
    }
    pattern_check(t->grad_out, t->parameters, t->options.type, GRAD_SALT, 0,
                  t->dp.nranks, t->last_step, "data-parallel sum", t->stream);
}

void train_reduce_norm(struct train *t)
{
    struct channel *c = t->model.comm ? &t->model : &t->dp;

    if (!c->comm)
        return;
    channel_all_reduce(c, t->norm_in, t->norm_out, 1, ncclFloat32, t->stream);
    pattern_check(t->norm_out, 1, ncclFloat32, NORM_SALT, 0, c->nranks, 1,
                  "gradient norm", t->stream);
}

void train_broadcast_parameters(struct train *t)
{
    if (!t->dp.comm)
        return;
    channel_bcast(&t->dp, t->weights, t->parameters, t->options.type, 0,
                  t->stream);
    pattern_check(t->weights, t->parameters, t->options.type, PARAMETER_SALT, 0,
                  1, 1, "broadcast parameters", t->stream);
}
