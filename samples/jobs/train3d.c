/*
 * The traffic of one training job of a transformer, tensor x pipeline x data
 * parallel, without the arithmetic: per layer and micro-batch four all-reduces
 * of b*s*h elements in the tensor-parallel group (two forward, two backward),
 * sends and receives of b*s*h between pipeline stages in the 1F1B schedule, at
 * the end of a step the gradients' all-reduce in buckets and one of a scalar.
 * Computing is a delay on the stream. Every result is checked on the host.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime.h>
#include <nccl.h>

#include "channel.h"
#include "job.h"
#include "layout.h"
#include "pattern.h"

#define MAX_STEPS 100000
/* Constant data that is sent again and again, so that nothing but traffic
 * needs the device; neighbouring micro-batches differ. */
#define VARIANTS 4

/* Gradients go in unequal buckets, the first one small, as in DDP. */
static const int bucket_share[] = {1, 3, 4, 8};
#define BUCKETS ((int)(sizeof(bucket_share) / sizeof(bucket_share[0])))
#define BUCKET_SHARES 16

struct options {
    struct layout layout;
    const char *order;
    int layers;
    int micro_batches;
    int batch;
    int seq;
    int hidden;
    ncclDataType_t type;
    int steps;
    long compute_us;
    const char *log_dir;
    int summary;
};

/* Which pattern a buffer holds; the variant is added. */
enum salt {
    TP_SALT = 0,
    FORWARD_SALT = 8,
    BACKWARD_SALT = 16,
    GRAD_SALT = 24,
    PARAMETER_SALT = 32,
    NORM_SALT = 40
};

struct train {
    struct options options;
    struct job job;
    ncclComm_t world;
    struct channel tp;
    struct channel pp;
    struct channel dp;
    struct channel model; /* all ranks that hold one copy of the model */
    FILE *log;
    cudaStream_t stream;

    int stages;
    int stage;
    int layers;        /* of this stage */
    size_t activation; /* elements: batch * seq * hidden */
    size_t parameters; /* elements of this rank */
    int last_step;

    void *tp_in[VARIANTS];
    void *tp_out;
    void *forward_out[VARIANTS];
    void *forward_in;
    void *backward_out[VARIANTS];
    void *backward_in;
    void *grad_in;
    void *grad_out;
    void *weights;
    void *norm_in;
    void *norm_out;
    cudaEvent_t begin; /* of a step */
    cudaEvent_t end;
    struct timespec forward_delay;
    struct timespec backward_delay;
};

/* ---- computing ---- */

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

static void forward(struct train *t, int micro_batch)
{
    run_layers(t, micro_batch, &t->forward_delay);
}

static void backward(struct train *t, int micro_batch)
{
    run_layers(t, micro_batch, &t->backward_delay);
}

/* ---- pipeline parallel ---- */

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
        forward(t, i);
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

        forward(t, warm + i);
        up.send_forward = warm + i;
        up.receive_backward = i;
        exchange(t, up);
        backward(t, i);
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
        backward(t, i);
        exchange(t, out);
    }
}

static void one_forward_one_backward(struct train *t)
{
    int m = t->options.micro_batches;
    int warm = t->stages - t->stage - 1;

    if (warm > m)
        warm = m;
    warm_up(t, warm);
    steady(t, warm, m - warm);
    cool_down(t, m - warm, warm);
}

/* ---- data parallel ---- */

static void reduce_bucket(struct train *t, size_t first, size_t count)
{
    size_t offset = first * pattern_bytes(t->options.type);

    channel_all_reduce(&t->dp, (char *)t->grad_in + offset,
                       (char *)t->grad_out + offset, count, t->options.type,
                       t->stream);
}

static void reduce_gradients(struct train *t)
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

static void reduce_norm(struct train *t)
{
    struct channel *c = t->model.comm ? &t->model : &t->dp;

    if (!c->comm)
        return;
    channel_all_reduce(c, t->norm_in, t->norm_out, 1, ncclFloat32, t->stream);
    pattern_check(t->norm_out, 1, ncclFloat32, NORM_SALT, 0, c->nranks, 1,
                  "gradient norm", t->stream);
}

static void broadcast_parameters(struct train *t)
{
    if (!t->dp.comm)
        return;
    channel_bcast(&t->dp, t->weights, t->parameters, t->options.type, 0,
                  t->stream);
    pattern_check(t->weights, t->parameters, t->options.type, PARAMETER_SALT, 0,
                  1, 1, "broadcast parameters", t->stream);
}

/* ---- the job ---- */

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
    one_forward_one_backward(t);
    reduce_gradients(t);
    reduce_norm(t);
    check_cuda(cudaEventRecord(t->end, t->stream), "cudaEventRecord");
    synchronize(t);
    check_cuda(cudaEventElapsedTime(&ms, t->begin, t->end),
               "cudaEventElapsedTime");
    return (double)ms;
}

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

static void set_up(struct train *t)
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

static void tear_down(struct train *t)
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

static void run(struct train *t)
{
    const struct options *o = &t->options;
    double *ms = calloc((size_t)o->steps + 1, sizeof(*ms));
    int skip = o->steps > 2; /* the first step is not like the others */

    if (!ms)
        die("out of memory");
    broadcast_parameters(t);
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
            printf("step_ms_median=%.3f\n", median(ms + skip, o->steps - skip));
    }
    free(ms);
}

/* ---- options ---- */

enum {
    OPT_TP = 1,
    OPT_PP,
    OPT_DP,
    OPT_ORDER,
    OPT_LAYERS,
    OPT_MICRO,
    OPT_BATCH,
    OPT_SEQ,
    OPT_HIDDEN,
    OPT_DTYPE,
    OPT_STEPS,
    OPT_COMPUTE,
    OPT_LOG,
    OPT_SUMMARY,
    OPT_HELP
};

static const struct option long_options[] = {
    {"tp", required_argument, NULL, OPT_TP},
    {"pp", required_argument, NULL, OPT_PP},
    {"dp", required_argument, NULL, OPT_DP},
    {"order", required_argument, NULL, OPT_ORDER},
    {"layers", required_argument, NULL, OPT_LAYERS},
    {"micro-batches", required_argument, NULL, OPT_MICRO},
    {"batch", required_argument, NULL, OPT_BATCH},
    {"seq", required_argument, NULL, OPT_SEQ},
    {"hidden", required_argument, NULL, OPT_HIDDEN},
    {"dtype", required_argument, NULL, OPT_DTYPE},
    {"steps", required_argument, NULL, OPT_STEPS},
    {"compute-us", required_argument, NULL, OPT_COMPUTE},
    {"log", required_argument, NULL, OPT_LOG},
    {"summary", no_argument, NULL, OPT_SUMMARY},
    {"help", no_argument, NULL, OPT_HELP},
    {0},
};

static void usage(FILE *out)
{
    fputs("usage: train3d [options], one process per rank\n"
          "  --tp N --pp N --dp N   sizes; their product is the world (1 1 1)\n"
          "  --order NAMES          innermost first (tp-pp-dp)\n"
          "  --layers N             of the whole model (4)\n"
          "  --micro-batches N      per step (4)\n"
          "  --batch N --seq N --hidden N   of a micro-batch (1 128 256)\n"
          "  --dtype fp32|fp16|bf16 (fp32)\n"
          "  --steps N              (4)\n"
          "  --compute-us N         one layer forward; backward is twice that"
          " (1000)\n"
          "  --log DIR              one line per call into DIR/rankN.log\n"
          "  --summary              median time of a step\n"
          "example: launch -n 8 -- train3d --tp 2 --pp 2 --dp 2 --summary\n",
          out);
}

static ncclDataType_t parse_type(const char *text)
{
    if (!strcmp(text, "fp32"))
        return ncclFloat32;
    if (!strcmp(text, "fp16"))
        return ncclFloat16;
    if (!strcmp(text, "bf16"))
        return ncclBfloat16;
    die("--dtype: '%s' is none of fp32, fp16, bf16", text);
}

static int parse_positive(const char *option, const char *text)
{
    long value = parse_count(option, text);

    if (value < 1 || value > 1 << 24)
        die("%s: %ld is out of range", option, value);
    return (int)value;
}

static void set_option(struct options *o, int option, const char *name)
{
    int *numbers[] = {
        [OPT_TP] = &o->layout.size[TP],
        [OPT_PP] = &o->layout.size[PP],
        [OPT_DP] = &o->layout.size[DP],
        [OPT_LAYERS] = &o->layers,
        [OPT_MICRO] = &o->micro_batches,
        [OPT_BATCH] = &o->batch,
        [OPT_SEQ] = &o->seq,
        [OPT_HIDDEN] = &o->hidden,
        [OPT_STEPS] = &o->steps,
        [OPT_HELP] = NULL,
    };

    switch (option) {
    case OPT_ORDER:
        o->order = optarg;
        break;
    case OPT_DTYPE:
        o->type = parse_type(optarg);
        break;
    case OPT_COMPUTE:
        o->compute_us = parse_count(name, optarg);
        break;
    case OPT_LOG:
        o->log_dir = optarg;
        break;
    case OPT_SUMMARY:
        o->summary = 1;
        break;
    default:
        *numbers[option] = parse_positive(name, optarg);
    }
}

static void check_options(struct options *o, int world)
{
    if (layout_parse_order(&o->layout, o->order))
        die("--order: '%s' does not name tp, pp and dp once each", o->order);
    if (layout_world(&o->layout) != world)
        die("tp * pp * dp is %d, but there are %d ranks",
            layout_world(&o->layout), world);
    if (o->layers % o->layout.size[PP])
        die("%d layers do not fill %d stages evenly", o->layers,
            o->layout.size[PP]);
    if (o->hidden % o->layout.size[TP])
        die("hidden size %d is no multiple of tp %d", o->hidden,
            o->layout.size[TP]);
    if (o->layout.size[TP] > PATTERN_MAX_RANKS ||
        o->layout.size[DP] > PATTERN_MAX_RANKS)
        die("more than %d ranks in a group", PATTERN_MAX_RANKS);
    if (o->steps > MAX_STEPS)
        die("more than %d steps", MAX_STEPS);
}

static void parse_options(struct options *o, int argc, char **argv)
{
    int option;
    int index = 0;

    while ((option = getopt_long(argc, argv, "", long_options, &index)) != -1) {
        if (option == '?') {
            usage(stderr);
            exit(2);
        }
        if (option == OPT_HELP) {
            usage(stdout);
            exit(0);
        }
        set_option(o, option, long_options[index].name);
    }
    if (optind < argc)
        die("'%s' is no option", argv[optind]);
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

    parse_options(&t.options, argc, argv);
    t.job = job_from_environment();
    check_options(&t.options, t.job.world);
    set_up(&t);
    run(&t);
    tear_down(&t);
    return 0;
}
