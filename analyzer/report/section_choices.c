/* What NCCL said of its own doing, and how far that fits the ops. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "report/sections.h"
#include "report/units.h"

struct choice_card {
    int tables;      /* communicators whose table of predictions is known */
    int64_t choices; /* that were recorded */
    int64_t by_log, by_profiler; /* ops that have one */
    int64_t unplaced;            /* choices without an op */
    int64_t disagreed;           /* ops of which both say different things */
    int64_t timed, replays; /* ops, and runs by graphs, with a kernel time */
    double
        kernel_share; /* of the time by events, median; NAN: no op has both */
};

static const struct out_column card_columns[] = {
    OUT_COL(struct choice_card, tables, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct choice_card, choices, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct choice_card, by_log, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct choice_card, by_profiler, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct choice_card, unplaced, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct choice_card, disagreed, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct choice_card, timed, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct choice_card, replays, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct choice_card, kernel_share, "", OUT_REAL, 3, OUT_BOTH),
};

static const struct out_table card_table =
    OUT_TABLE(struct choice_card, card_columns);

static int count_tables(const struct ct_process *p)
{
    int n = 0;

    for (int i = 0; i < p->ntunings; i++)
        n += i == 0 || p->tunings[i].comm != p->tunings[i - 1].comm;
    return n;
}

static void add_process(struct choice_card *card, const struct ct_process *p)
{
    card->tables += count_tables(p);
    card->choices += p->choices;
    card->unplaced += p->unplaced;
    card->disagreed += p->disagreed;
    for (int i = 0; i < p->nops && p->op_choices; i++) {
        const int choice = p->op_choices[i];

        if (choice == CT_NONE)
            continue;
        if (p->choice_classes[choice].by_plugin)
            card->by_profiler++;
        else
            card->by_log++;
    }
    for (int i = 0; i < p->nkernels; i++) {
        card->timed += p->kernels[i].launch == CT_NONE;
        card->replays += p->kernels[i].launch != CT_NONE;
    }
}

/* Of an op that ran by itself, timed both ways; NAN: it is none. */
static double share_of(const struct ct_process *p,
                       const struct ct_kernel_row *kernel)
{
    const struct ct_op_row *op = &p->ops[kernel->op];

    return kernel->launch == CT_NONE && op->launch == CT_NONE &&
                   ct_op_gpu_ns(op) != CT_NO_TIME && ct_op_gpu_ns(op) > 0 &&
                   !(op->flags & CT_FLAG_KERNEL)
               ? (double)kernel->gpu_ns / (double)ct_op_gpu_ns(op)
               : NAN;
}

static int by_size(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static double median_share(const struct view *view, int64_t most)
{
    double *shares = malloc(((size_t)most + 1) * sizeof *shares);
    double median = NAN;
    size_t n = 0;

    for (int i = 0; shares && i < view->job->nprocesses; i++) {
        const struct ct_process *p =
            &view->trace->processes[view->job->processes[i]];

        for (int k = 0; k < p->nkernels; k++) {
            const double share = share_of(p, &p->kernels[k]);

            if (!isnan(share))
                shares[n++] = share;
        }
    }
    if (n) {
        qsort(shares, n, sizeof *shares, by_size);
        median = shares[n / 2];
    }
    free(shares);
    return median;
}

static void say(struct out *out, const struct choice_card *card)
{
    if (card->tables)
        out_fact(out, "NCCL's table",
                 "of %d communicator%s: what NCCL expects of its collectives",
                 card->tables, ct_plural(card->tables));
    if (!card->choices)
        return;
    if (card->by_log || !card->by_profiler)
        out_fact(out, "NCCL's choice",
                 "of %" PRId64 " ops, told by its log; the other ranks of a "
                 "collective have it from there",
                 card->by_log);
    if (card->by_profiler)
        out_fact(out, card->by_log ? "" : "NCCL's choice",
                 "of %" PRId64 " ops, told by its profiler; of send/recv only "
                 "the channels",
                 card->by_profiler);
    if (card->timed)
        out_fact(out, "", "kernel times of %" PRId64 " ops", card->timed);
    if (card->replays)
        out_fact(out, "", "kernel times of %" PRId64 " runs by CUDA graphs",
                 card->replays);
    if (!isnan(card->kernel_share))
        out_fact(out, "",
                 "where events timed an op, too, its kernel took %s times "
                 "as long (median)",
                 CT_NUM(card->kernel_share, 3));
    if (card->unplaced)
        out_fact(out, "", "%" PRId64 " of %" PRId64 " choices found no op",
                 card->unplaced, card->choices);
    if (card->disagreed)
        out_fact(out, "",
                 "log and profiler disagree on %" PRId64 " ops; the "
                 "profiler's word counts",
                 card->disagreed);
}

#define STOPS_SHOWN 4

static void say_stop(struct out *out, const struct ct_process *p,
                     const struct ct_choice_stop *stop)
{
    const int comm = p->comms[stop->comm].comm;
    const struct ct_op_class_row *class;
    char is[UNITS_SIZE], said[UNITS_SIZE];

    if (stop->op >= p->nops) {
        out_fact(out, "", "rank %d, comm %d: NCCL ran more than was called",
                 p->rank, comm);
        return;
    }
    class = &p->classes[p->ops[stop->op].cls];
    if (stop->lost)
        out_fact(out, "",
                 "rank %d, comm %d: none from op %d on, before which records "
                 "are missing",
                 p->rank, comm, stop->op);
    else
        out_fact(out, "",
                 "rank %d, comm %d: none from op %d on, which is %s %s where "
                 "NCCL says %s",
                 p->rank, comm, stop->op, ct_op_infos[class->kind].name,
                 units_size(is, class->bytes), units_size(said, stop->said));
}

static void say_stops(struct out *out, const struct view *view)
{
    int n = 0;

    for (int i = 0; i < view->job->nprocesses; i++) {
        const struct ct_process *p =
            &view->trace->processes[view->job->processes[i]];

        for (int k = 0; k < p->nchoice_stops; k++)
            if (++n <= STOPS_SHOWN)
                say_stop(out, p, &p->choice_stops[k]);
    }
    if (n > STOPS_SHOWN)
        out_fact(out, "", "and of %d communicators of ranks more",
                 n - STOPS_SHOWN);
}

void section_choices(struct out *out, const struct view *view)
{
    struct choice_card card = {0};

    for (int i = 0; i < view->job->nprocesses; i++)
        add_process(&card, &view->trace->processes[view->job->processes[i]]);
    card.kernel_share = median_share(view, card.timed);
    out_record(out, "nccl", &card_table, &card);
    say(out, &card);
    say_stops(out, view);
}
