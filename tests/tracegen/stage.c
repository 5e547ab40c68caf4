#include "stage.h"

#define TOKENS 4096 /* of a micro-batch, where the activation is that large */

struct stage stage_of(struct program *p, const struct layout *layout, int rank,
                      int step)
{
    const struct options *o = layout->options;

    return (struct stage){.p = p,
                          .layout = layout,
                          .options = o,
                          .job = &o->job,
                          .rank = rank,
                          .step = step,
                          .place = layout_coordinate(layout, rank, PP),
                          .degree = o->degree[PP],
                          .layers = o->layers / (o->degree[PP] * o->job.chunks),
                          .micro_batches = o->micro_batches,
                          .slowness = 1,
                          .trains = true};
}

int stage_size(const struct stage *s, enum comm_kind kind)
{
    return layout_size(s->layout, s->rank, kind);
}

int stage_rank_in(const struct stage *s, enum comm_kind kind)
{
    return s->layout->place_in[s->rank][kind];
}

bool stage_is_first(const struct stage *s, int chunk)
{
    return s->place == 0 && chunk == 0;
}

bool stage_is_last(const struct stage *s, int chunk)
{
    return s->place == s->degree - 1 && chunk == s->job->chunks - 1;
}

void stage_begin(const struct stage *s, enum segment_kind kind)
{
    program_add(s->p, (struct instruction){
                          .call = MARK, .mark = kind, .n = s->micro_batches});
}

void stage_end(const struct stage *s)
{
    program_add(s->p, (struct instruction){.call = MARK, .mark = SEGMENT_END});
}

int stage_stream(const struct stage *s, enum comm_kind comm)
{
    static const int streams[COMM_KINDS] = {
        [COMM_TP] = TENSOR_STREAM,        [COMM_PP] = PIPELINE_STREAM,
        [COMM_DP] = GRADIENT_STREAM,      [COMM_CP] = CONTEXT_STREAM,
        [COMM_EP] = EXPERT_STREAM,        [COMM_EXPERT_DP] = REPLICA_STREAM,
        [COMM_REPLICAS] = REPLICA_STREAM, [COMM_SHARD] = GRADIENT_STREAM,
        [COMM_GATHER] = GATHER_STREAM,    [COMM_EMBEDDING] = REPLICA_STREAM,
    };

    return s->job->own_streams ? streams[comm] : COMPUTE_STREAM;
}

struct instruction *stage_collective(const struct stage *s, enum ct_op op,
                                     enum comm_kind comm, int type,
                                     uint64_t count)
{
    struct instruction *in =
        program_collective(s->p, op, comm, type, count ? count : 1);

    in->stream = stage_stream(s, comm);
    return in;
}

static bool is_ragged(const struct stage *s, int micro_batch)
{
    const int every = s->job->ragged_every;

    return every && s->trains && s->step % every == every - 1 &&
           micro_batch == s->micro_batches - 1;
}

static uint64_t width(const struct stage *s)
{
    const uint64_t n = s->options->hidden / 2 / TOKENS;

    return n ? n : 1;
}

uint64_t stage_activation(const struct stage *s, int micro_batch)
{
    const uint64_t n = s->options->hidden / 2;

    return is_ragged(s, micro_batch) ? n / width(s) * 3 / 5 * width(s) : n;
}

uint64_t stage_tokens(const struct stage *s, int micro_batch)
{
    return stage_activation(s, micro_batch) / width(s);
}

double stage_work(const struct stage *s, int micro_batch)
{
    return s->slowness * (is_ragged(s, micro_batch) ? .6 : 1);
}
