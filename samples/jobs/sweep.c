/*
 * Times all-reduce and send/recv over a range of sizes and numbers of ranks,
 * and prints them as nccl-tests do: algbw = bytes / time, busbw = algbw times
 * 2(n-1)/n for the all-reduce and 1 for send/recv, which is a ring here: every
 * rank sends to the next and receives from the one before.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>
#include <nccl.h>

#include "bootstrap.h"
#include "job.h"

#define MAX_SUBSETS 16

enum place { PACKED, SPREAD };

struct options {
    size_t min;
    size_t max;
    size_t factor;
    int iters;
    int warmup;
    int all_reduce;
    int sendrecv;
    int subset[MAX_SUBSETS];
    int subsets;
    int packed;
    int spread;
    int align;
};

struct sweep {
    struct options options;
    struct job job;
    ncclComm_t comm; /* of the subset; NULL when not in it */
    int n;
    int rank;
    enum place place;
    int *ranks; /* of the subset, in the job */
    cudaStream_t stream;
    cudaEvent_t start;
    cudaEvent_t stop;
    char *send;
    char *recv;
};

typedef void op_fn(struct sweep *s, size_t bytes);

static void all_reduce(struct sweep *s, size_t bytes)
{
    check_nccl(ncclAllReduce(s->send, s->recv, bytes / sizeof(float),
                             ncclFloat32, ncclSum, s->comm, s->stream),
               "ncclAllReduce");
}

static void sendrecv(struct sweep *s, size_t bytes)
{
    int next = (s->rank + 1) % s->n;
    int previous = (s->rank + s->n - 1) % s->n;

    check_nccl(ncclGroupStart(), "ncclGroupStart");
    check_nccl(ncclSend(s->send, bytes / sizeof(float), ncclFloat32, next,
                        s->comm, s->stream),
               "ncclSend");
    check_nccl(ncclRecv(s->recv, bytes / sizeof(float), ncclFloat32, previous,
                        s->comm, s->stream),
               "ncclRecv");
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
}

static double all_reduce_factor(int n)
{
    return 2.0 * (n - 1) / n;
}

static double sendrecv_factor(int n)
{
    (void)n;
    return 1;
}

/* Before the clock starts: a rank that comes late makes all wait here. */
static void synchronize(struct sweep *s)
{
    all_reduce(s, sizeof(float));
}

static int stride_of(const struct sweep *s)
{
    return s->place == PACKED ? 1 : s->job.world / s->n;
}

/* With --align no op starts before all ranks can. A ring otherwise carries the
 * lateness of a rank on from op to op, and a late rank finds the bytes of its
 * peers already there: it measures less than the op takes. */
static void align(struct sweep *s)
{
    if (!s->options.align)
        return;
    for (int i = 0; i < s->n; i++)
        s->ranks[i] = i * stride_of(s);
    check_cuda(cudaStreamSynchronize(s->stream), "cudaStreamSynchronize");
    bootstrap_barrier(s->ranks, s->n);
}

/* us of one op, between events on this rank. */
static double time_ops(struct sweep *s, op_fn *op, size_t bytes, int n)
{
    float ms;

    check_cuda(cudaEventRecord(s->start, s->stream), "cudaEventRecord");
    for (int i = 0; i < n; i++)
        op(s, bytes);
    check_cuda(cudaEventRecord(s->stop, s->stream), "cudaEventRecord");
    check_cuda(cudaStreamSynchronize(s->stream), "cudaStreamSynchronize");
    check_cuda(cudaEventElapsedTime(&ms, s->start, s->stop),
               "cudaEventElapsedTime");
    return (double)ms * 1e3 / n;
}

/* us per op on this rank. */
static double time_here(struct sweep *s, op_fn *op, size_t bytes)
{
    double us = 0;

    for (int i = 0; i < s->options.warmup; i++)
        op(s, bytes);
    synchronize(s);
    if (!s->options.align)
        return time_ops(s, op, bytes, s->options.iters);
    for (int i = 0; i < s->options.iters; i++) {
        align(s);
        us += time_ops(s, op, bytes, 1);
    }
    return us / s->options.iters;
}

/* The mean over the ranks: one that starts late sees its peers waiting. */
static double mean_over_ranks(struct sweep *s, double us)
{
    float value = (float)us;

    check_cuda(
        cudaMemcpy(s->send, &value, sizeof(value), cudaMemcpyHostToDevice),
        "cudaMemcpy");
    all_reduce(s, sizeof(value));
    check_cuda(cudaStreamSynchronize(s->stream), "cudaStreamSynchronize");
    check_cuda(
        cudaMemcpy(&value, s->recv, sizeof(value), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
    return (double)value / s->n;
}

static void print_row(const struct sweep *s, const char *name, size_t bytes,
                      double us, double factor)
{
    double algbw = (double)bytes / us * 1e-3;

    printf("%12zu %12zu %8s %-10s %5d %-6s %12.1f %10.4f %10.4f\n", bytes,
           bytes / sizeof(float), "float", name, s->n,
           s->place == PACKED ? "packed" : "spread", us, algbw, algbw * factor);
}

static void sweep_op(struct sweep *s, const char *name, op_fn *op,
                     double factor)
{
    const struct options *o = &s->options;

    for (size_t bytes = o->min; bytes <= o->max; bytes *= o->factor) {
        double us = mean_over_ranks(s, time_here(s, op, bytes));

        if (s->rank == 0)
            print_row(s, name, bytes, us, factor);
    }
}

/* The first n ranks, or n ranks at equal distances over all. */
static int place_of(const struct sweep *s)
{
    int stride = stride_of(s);

    if (s->job.rank % stride || s->job.rank / stride >= s->n)
        return -1;
    return s->job.rank / stride;
}

static void sweep_subset(struct sweep *s, ncclComm_t world)
{
    s->rank = place_of(s);
    check_nccl(ncclCommSplit(world, s->rank < 0 ? NCCL_SPLIT_NOCOLOR : 0,
                             s->rank, &s->comm, NULL),
               "ncclCommSplit");
    if (!s->comm)
        return;
    if (s->options.all_reduce)
        sweep_op(s, "all_reduce", all_reduce, all_reduce_factor(s->n));
    if (s->options.sendrecv)
        sweep_op(s, "sendrecv", sendrecv, sendrecv_factor(s->n));
    check_nccl(ncclCommFinalize(s->comm), "ncclCommFinalize");
    check_nccl(ncclCommDestroy(s->comm), "ncclCommDestroy");
    fflush(stdout);
}

static void sweep_all(struct sweep *s, ncclComm_t world)
{
    const struct options *o = &s->options;

    if (s->job.rank == 0)
        printf("# %10s %12s %8s %-10s %5s %-6s %12s %10s %10s\n", "size(B)",
               "count", "type", "op", "ranks", "place", "time(us)",
               "algbw(GB/s)", "busbw(GB/s)");
    for (int p = PACKED; p <= SPREAD; p++) {
        if (!(p == PACKED ? o->packed : o->spread))
            continue;
        for (int i = 0; i < o->subsets; i++) {
            s->place = (enum place)p;
            s->n = o->subset[i];
            sweep_subset(s, world);
        }
    }
}

static void *buffer(size_t bytes)
{
    void *p;

    check_cuda(cudaMalloc(&p, bytes), "cudaMalloc");
    check_cuda(cudaMemset(p, 0, bytes), "cudaMemset");
    return p;
}

static void run(struct sweep *s)
{
    ncclComm_t world = job_connect(&s->job);

    check_cuda(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking),
               "cudaStreamCreate");
    check_cuda(cudaEventCreate(&s->start), "cudaEventCreate");
    check_cuda(cudaEventCreate(&s->stop), "cudaEventCreate");
    s->ranks = calloc((size_t)s->job.world, sizeof(*s->ranks));
    if (!s->ranks)
        die("out of memory");
    s->send = buffer(s->options.max);
    s->recv = buffer(s->options.max);
    sweep_all(s, world);
    check_nccl(ncclCommFinalize(world), "ncclCommFinalize");
    check_nccl(ncclCommDestroy(world), "ncclCommDestroy");
    free(s->ranks);
    cudaFree(s->send);
    cudaFree(s->recv);
    cudaEventDestroy(s->start);
    cudaEventDestroy(s->stop);
    check_cuda(cudaStreamDestroy(s->stream), "cudaStreamDestroy");
}

/* ---- options ---- */

static const struct option long_options[] = {
    {"min", required_argument, NULL, 'b'},
    {"max", required_argument, NULL, 'e'},
    {"factor", required_argument, NULL, 'f'},
    {"iters", required_argument, NULL, 'n'},
    {"warmup", required_argument, NULL, 'w'},
    {"ops", required_argument, NULL, 'o'},
    {"ranks", required_argument, NULL, 'r'},
    {"place", required_argument, NULL, 'p'},
    {"align", no_argument, NULL, 'a'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static void usage(FILE *out)
{
    fputs("usage: sweep [options], one process per rank\n"
          "  --min BYTES --max BYTES --factor N   sizes (4K 1M 4); K, M, G\n"
          "  --iters N --warmup N                 per size (5 1)\n"
          "  --ops all_reduce,sendrecv            (both)\n"
          "  --ranks N,N,...                      sizes of the subset (all)\n"
          "  --place packed|spread|both           first ranks, or ranks at\n"
          "                                       equal distances (packed)\n"
          "  --align                              start each op on all ranks\n"
          "                                       at once (by a host barrier)\n"
          "example: launch -n 8 --hosts 2 -- sweep --ranks 2,4 --place both\n",
          out);
}

static size_t parse_size(const char *name, const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    const char *units = "KMG";

    if (end != text && *end && strchr(units, *end)) {
        value <<= 10 * (strchr(units, *end) - units + 1);
        end++;
    }
    if (end == text || *end || value < sizeof(float))
        die("--%s: '%s' is not a size of at least 4 bytes", name, text);
    return (size_t)value / sizeof(float) * sizeof(float);
}

static void parse_ops(struct options *o, char *text)
{
    char *save = NULL;

    o->all_reduce = o->sendrecv = 0;
    for (char *w = strtok_r(text, ",", &save); w;
         w = strtok_r(NULL, ",", &save)) {
        if (!strcmp(w, "all_reduce"))
            o->all_reduce = 1;
        else if (!strcmp(w, "sendrecv"))
            o->sendrecv = 1;
        else
            die("--ops: '%s' is neither all_reduce nor sendrecv", w);
    }
}

static void parse_ranks(struct options *o, char *text)
{
    char *save = NULL;

    for (char *w = strtok_r(text, ",", &save); w;
         w = strtok_r(NULL, ",", &save)) {
        if (o->subsets == MAX_SUBSETS)
            die("--ranks: more than %d sizes", MAX_SUBSETS);
        o->subset[o->subsets++] = (int)parse_count("--ranks", w);
    }
}

static void parse_place(struct options *o, const char *text)
{
    int both = !strcmp(text, "both");

    o->packed = both || !strcmp(text, "packed");
    o->spread = both || !strcmp(text, "spread");
    if (!o->packed && !o->spread)
        die("--place: '%s' is none of packed, spread, both", text);
}

static void set_option(struct options *o, int option)
{
    switch (option) {
    case 'b':
        o->min = parse_size("min", optarg);
        break;
    case 'e':
        o->max = parse_size("max", optarg);
        break;
    case 'f':
        o->factor = (size_t)parse_count("--factor", optarg);
        break;
    case 'n':
        o->iters = (int)parse_count("--iters", optarg);
        break;
    case 'w':
        o->warmup = (int)parse_count("--warmup", optarg);
        break;
    case 'o':
        parse_ops(o, optarg);
        break;
    case 'r':
        parse_ranks(o, optarg);
        break;
    case 'p':
        parse_place(o, optarg);
        break;
    case 'a':
        o->align = 1;
        break;
    case 'h':
        usage(stdout);
        exit(0);
    default:
        usage(stderr);
        exit(2);
    }
}

static void check_options(struct options *o, int world)
{
    if (!o->subsets)
        o->subset[o->subsets++] = world;
    for (int i = 0; i < o->subsets; i++) {
        if (o->subset[i] < 2 || o->subset[i] > world)
            die("--ranks: %d of %d", o->subset[i], world);
    }
    if (o->factor < 2 || o->iters < 1 || o->max < o->min)
        die("nothing to do: --factor, --iters or --max is too small");
}

int main(int argc, char **argv)
{
    struct sweep s = {.options = {.min = 4096,
                                  .max = 1 << 20,
                                  .factor = 4,
                                  .iters = 5,
                                  .warmup = 1,
                                  .all_reduce = 1,
                                  .sendrecv = 1,
                                  .packed = 1}};
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        set_option(&s.options, option);
    s.job = job_from_environment();
    check_options(&s.options, s.job.world);
    run(&s);
    return 0;
}
