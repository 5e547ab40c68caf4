/* What ran inside CUDA graphs, and what of it is not known. */
#include <inttypes.h>

#include "report/sections.h"

struct graph_card {
    int64_t captured_ops, graphs, launches;
    int64_t runs;           /* of the captured ops, but of blind_ops */
    int64_t steady_runs;    /* of runs, in steady steps */
    int64_t other_launches; /* of graphs that hold no op, as far as known */
    int64_t idle_ops;       /* captured into graphs that were not launched */
    int64_t blind_ops;      /* where no launch can have been seen */
    int64_t timed_ops;      /* of whose runs NCCL's profiler told the times */
};

static const struct out_column columns[] = {
    OUT_COL(struct graph_card, captured_ops, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct graph_card, graphs, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct graph_card, launches, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct graph_card, runs, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct graph_card, steady_runs, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct graph_card, other_launches, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct graph_card, idle_ops, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct graph_card, blind_ops, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct graph_card, timed_ops, "", OUT_COUNT, 0, OUT_BOTH),
};

static const struct out_table table = OUT_TABLE(struct graph_card, columns);

/* A graph made of others holds their ops. */
static bool holds_ops(const struct ct_process *p, int graph)
{
    return graph != CT_NONE &&
           (p->graphs[graph].ops || p->graphs[graph].first != CT_NONE);
}

static void add_graph(struct graph_card *card, const struct ct_graph_row *graph)
{
    card->graphs += graph->ops > 0;
    card->steady_runs += graph->ops * graph->steady;
}

static void add_process(struct graph_card *card, const struct ct_process *p)
{
    card->captured_ops += p->captured;
    card->runs += p->replays;
    card->idle_ops += p->idle;
    card->blind_ops += p->blind;
    for (int i = 0; i < p->nops && p->nkernels; i++)
        card->timed_ops += p->ops[i].flags & CT_FLAG_CAPTURED &&
                           ct_op_gpu_ns(&p->ops[i]) != CT_NO_TIME;
    for (int i = 0; i < p->ngraphs; i++)
        add_graph(card, &p->graphs[i]);
    for (int i = 0; i < p->ngraph_launches; i++) {
        const bool known = holds_ops(p, p->graph_launches[i].graph);

        card->launches += known;
        card->other_launches += !known;
    }
}

static void say(struct out *out, const struct graph_card *card, bool steps)
{
    if (card->captured_ops > card->blind_ops)
        out_fact(out, "CUDA graphs",
                 "%" PRId64 " ops captured into %" PRId64
                 " graph%s ran %" PRId64 " times in %" PRId64
                 " launches; those runs count in all but times, which %s",
                 card->captured_ops - card->blind_ops, card->graphs,
                 card->graphs == 1 ? "" : "s", card->runs, card->launches,
                 card->timed_ops ? "not all of them have" : "they do not have");
    if (card->timed_ops)
        out_fact(out, "",
                 "the runs of %" PRId64 " of the ops were timed by NCCL's "
                 "profiler: each counts with the median",
                 card->timed_ops);
    if (steps && card->steady_runs < card->runs)
        out_fact(out, "",
                 "%" PRId64 " of the runs lie outside of steady steps: figures "
                 "per step do not hold them",
                 card->runs - card->steady_runs);
    if (card->idle_ops)
        out_fact(out, "",
                 "%" PRId64 " of the captured ops count for nothing: no "
                 "launch of their graph was seen",
                 card->idle_ops);
    if (card->blind_ops)
        out_fact(out, card->captured_ops > card->blind_ops ? "" : "CUDA graphs",
                 "%" PRId64 " ops were captured by ranks of which no graph "
                 "launch was seen (a static CUDA runtime, or "
                 "cuGetProcAddress): they count once, and all totals are "
                 "lower bounds",
                 card->blind_ops);
}

void section_graphs(struct out *out, const struct view *view)
{
    struct graph_card card = {0};

    for (int i = 0; i < view->job->nprocesses; i++)
        add_process(&card, &view->trace->processes[view->job->processes[i]]);
    out_record(out, "graphs", &table, &card);
    say(out, &card, view->job->nsteps > 0);
}
