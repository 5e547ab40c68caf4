#include "stage.h"

#define WARM_UP_SLOWNESS 3
#define CHECKPOINT_LAYERS 40 /* as long as so many layers compute */

static bool shares_parameters(const struct stage *s)
{
    return stage_size(s, COMM_DP) > 1 && s->job->zero != 3;
}

/* As torch.distributed's all_gather_object: how long they are, then they. */
static void exchange_objects(const struct stage *s, enum comm_kind comm)
{
    if (stage_size(s, comm) == 1)
        return;
    stage_collective(s, CT_OP_ALL_GATHER, comm, CT_TYPE_INT64, 1);
    stage_collective(s, CT_OP_ALL_GATHER, comm, CT_TYPE_UINT8,
                     300 + 40 * (uint64_t)comm);
}

static void initialise(const struct stage *s)
{
    int comm;

    for (comm = 0; comm < COMM_KINDS; comm++)
        exchange_objects(s, (enum comm_kind)comm);
    if (stage_size(s, COMM_TP) > 1)
        stage_collective(s, CT_OP_BROADCAST, COMM_TP, CT_TYPE_INT64, 8);
    program_compute(s->p, CHECKPOINT_LAYERS * s->options->compute_us);
}

void program_setup(struct program *p, const struct layout *layout, int rank,
                   int number)
{
    struct stage s = stage_of(p, layout, rank, number);
    int i;

    for (i = 0; i < s.options->barriers; i++)
        program_collective(p, CT_OP_ALL_REDUCE, COMM_WORLD, CT_TYPE_INT32, 1);
    if (s.job->initialise)
        initialise(&s);
    for (i = 0; i < s.layers * s.job->chunks && shares_parameters(&s); i++)
        program_collective(p, CT_OP_BROADCAST, COMM_DP, CT_TYPE_FLOAT32,
                           s.options->bucket / 4);
}

static void evaluate(const struct stage *step)
{
    struct stage s = *step;

    s.trains = false;
    if (s.job->eval_micro_batches)
        s.micro_batches = s.job->eval_micro_batches;
    stage_begin(&s, SEGMENT_EVALUATION);
    stage_schedule(&s);
    program_collective(s.p, CT_OP_ALL_REDUCE, COMM_WORLD, CT_TYPE_FLOAT32, 2);
    stage_end(&s);
}

/* Who has what is told, the parts go to the files of the first copy. */
static void save(const struct stage *step)
{
    struct stage s = *step;

    s.micro_batches = 0;
    stage_begin(&s, SEGMENT_CHECKPOINT);
    program_collective(s.p, CT_OP_ALL_REDUCE, COMM_WORLD, CT_TYPE_INT32, 1);
    program_collective(s.p, CT_OP_ALL_GATHER, COMM_WORLD, CT_TYPE_UINT8, 256);
    if (s.job->zero && stage_size(&s, COMM_DP) > 1)
        stage_collective(&s, CT_OP_ALL_GATHER, COMM_DP, CT_TYPE_FLOAT32,
                         s.options->bucket / 4 /
                             (uint64_t)stage_size(&s, COMM_DP));
    program_compute(s.p, CHECKPOINT_LAYERS * s.options->compute_us);
    program_collective(s.p, CT_OP_ALL_REDUCE, COMM_WORLD, CT_TYPE_INT32, 1);
    stage_end(&s);
}

static bool is_time(int every, int step)
{
    return every && step && step % every == 0;
}

static void train(const struct stage *s, enum segment_kind kind)
{
    stage_begin(s, kind);
    gradients_before_step(s);
    stage_schedule(s);
    if (s->job->loss && stage_size(s, COMM_DP) > 1 && s->place == s->degree - 1)
        stage_collective(s, CT_OP_ALL_REDUCE, COMM_DP, CT_TYPE_FLOAT32, 2);
    gradients_after_step(s);
    stage_end(s);
}

void program_step(struct program *p, const struct layout *layout, int rank,
                  int number)
{
    struct stage s = stage_of(p, layout, rank, number);
    const bool warm = number >= s.job->warm_up;

    if (is_time(s.options->eval_every, number))
        evaluate(&s);
    if (is_time(s.job->checkpoint_every, number))
        save(&s);
    if (!warm)
        s.slowness = WARM_UP_SLOWNESS;
    train(&s, warm ? SEGMENT_STEP : SEGMENT_WARM_UP);
    program_compute(p, s.options->compute_us);
}

/* nccl-tests' order: size by size, iteration by iteration. */
void program_sweep(struct program *p, const struct layout *layout, int rank,
                   int number)
{
    int place = layout->place_in[rank][COMM_WORLD], i;
    uint64_t count;

    (void)number;
    for (count = 256; count <= 1 << 22; count *= 4)
        for (i = 0; i < 25; i++)
            program_collective(p, CT_OP_ALL_REDUCE, COMM_WORLD, CT_TYPE_FLOAT32,
                               count);
    for (count = 256; count <= 1 << 22 && place < 2 && layout->nranks > 1;
         count *= 4)
        for (i = 0; i < 25; i++)
            program_message(p, place ? RECV : SEND, COMM_WORLD, CT_TYPE_FLOAT32,
                            count, !place);
}
