/*
 * A process that holds several ranks of one communicator (ncclCommInitAll, a
 * thread per GPU) is read as so many processes, one per rank: each with the
 * communicators of its GPU and their calls. What belongs to none of them, like
 * losses, is the first one's.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/graphs.h"
#include "trace/intern.h"
#include "trace/stages.h"

#define MAX_PARTS 64 /* no host has so many GPUs */

struct splitting {
    const struct ct_process *whole;
    struct ct_arena *arena;
    int *part_of; /* per communicator */
    int *device;  /* per part */
    int nparts;
    struct ct_intern held;
    int *comm_at; /* index in its part, per communicator, class, launch */
    int *class_at;
    int *launch_at;
    int *op_at, *graph_launch_at;
    uint64_t *graph_parts; /* per graph: bit per part whose ops it holds */
};

struct seat { /* a rank of a communicator */
    uint64_t uid;
    int64_t rank;
};

/* The communicator of which the process holds most ranks, and how many. */
static uint64_t main_uid(const struct ct_process *p, int *n_p)
{
    struct ct_intern uids = {0}, seats = {0};
    int *held = ct_alloc((size_t)p->ncomms + 1, sizeof(*held));
    uint64_t uid = 0;
    int i;

    *n_p = 1;
    for (i = 0; i < p->ncomms; i++) {
        const struct seat seat = {p->comms[i].uid, p->comms[i].rank};
        const int known = seats.n;
        int key;

        if (ct_intern_add(&seats, &seat, sizeof(seat)) != known)
            continue;
        key = ct_intern_add(&uids, &seat.uid, sizeof(seat.uid));
        if (++held[key] > *n_p) {
            *n_p = held[key];
            uid = seat.uid;
        }
    }
    ct_intern_release(&uids);
    ct_intern_release(&seats);
    free(held);
    return uid;
}

struct held { /* key: part holds communicator */
    uint64_t uid, part;
};

static bool holds(const struct splitting *s, int part, uint64_t uid)
{
    const struct held key = {uid, (uint64_t)part};

    return ct_intern_find(&s->held, &key, sizeof(key)) != CT_NONE;
}

static void give(struct splitting *s, int comm, int part)
{
    const struct held key = {s->whole->comms[comm].uid, (uint64_t)part};

    s->part_of[comm] = part;
    ct_intern_add(&s->held, &key, sizeof(key));
}

/* The first part on its GPU that has no rank of it yet. */
static int choose(const struct splitting *s, int comm)
{
    const struct ct_comm_row *row = &s->whole->comms[comm];
    int i, any = 0;

    for (i = s->nparts - 1; i >= 0; i--)
        if (s->device[i] == row->device)
            any = i;
    for (i = 0; i < s->nparts; i++)
        if (s->device[i] == row->device && !holds(s, i, row->uid))
            return i;
    return any;
}

struct ranked {
    int rank, comm;
};

static int by_rank(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->comm - b->comm;
}

/* Parts in the order of their ranks in the communicator that makes them. */
static void assign(struct splitting *s, uint64_t uid)
{
    const struct ct_process *p = s->whole;
    struct ranked *order = ct_alloc((size_t)p->ncomms, sizeof(*order));
    int i, n = 0, part = -1;

    for (i = 0; i < p->ncomms; i++) {
        s->part_of[i] = CT_NONE;
        if (p->comms[i].uid == uid)
            order[n++] = (struct ranked){p->comms[i].rank, i};
    }
    qsort(order, (size_t)n, sizeof(*order), by_rank);
    for (i = 0; i < n; i++) {
        part += !i || order[i].rank != order[i - 1].rank;
        s->device[part] = p->comms[order[i].comm].device;
        give(s, order[i].comm, part);
    }
    free(order);
    for (i = 0; i < p->ncomms; i++)
        if (s->part_of[i] == CT_NONE)
            give(s, i, choose(s, i));
}

static void take_comms(const struct splitting *s, int part,
                       struct ct_process *out)
{
    const struct ct_process *p = s->whole;
    int i;

    out->ncomms = 0;
    out->comms =
        ct_arena_alloc(s->arena, (size_t)p->ncomms, sizeof(*out->comms));
    for (i = 0; i < p->ncomms; i++) {
        struct ct_comm_row *row = &out->comms[out->ncomms];

        if (s->part_of[i] != part)
            continue;
        s->comm_at[i] = out->ncomms++;
        *row = p->comms[i];
        row->parent = row->parent != CT_NONE && s->part_of[row->parent] == part
                          ? s->comm_at[row->parent]
                          : CT_NONE;
    }
}

static void take_events(const struct splitting *s, int part,
                        struct ct_process *out)
{
    const struct ct_process *p = s->whole;
    int i;

    out->nevents = 0;
    out->events =
        ct_arena_alloc(s->arena, (size_t)p->nevents, sizeof(*out->events));
    for (i = 0; i < p->nevents; i++) {
        struct ct_comm_event_row *event = &out->events[out->nevents];
        const int comm = p->events[i].comm;

        if (part != (comm == CT_NONE ? 0 : s->part_of[comm]))
            continue;
        *event = p->events[i];
        event->comm = comm == CT_NONE ? CT_NONE : s->comm_at[comm];
        out->nevents++;
    }
}

/* Of n rows (whose first member is a communicator) those of part, which gets
 * what is of none, too. */
static void *take_rows(const struct splitting *s, int part, const void *rows,
                       size_t size, int *n_p)
{
    const int n = *n_p;
    char *out = ct_arena_alloc(s->arena, (size_t)n, size);

    *n_p = 0;
    for (int i = 0; i < n; i++) {
        const char *row = (const char *)rows + (size_t)i * size;
        char *copy = out + (size_t)*n_p * size;
        int comm;

        memcpy(&comm, row, sizeof(comm));
        if (comm != CT_NONE && s->part_of[comm] != part)
            continue;
        memcpy(copy, row, size);
        comm = comm == CT_NONE ? CT_NONE : s->comm_at[comm];
        memcpy(copy, &comm, sizeof(comm));
        ++*n_p;
    }
    return out;
}

static void take_words(const struct splitting *s, int part,
                       struct ct_nccl_words *words)
{
    words->comms =
        take_rows(s, part, words->comms, sizeof(*words->comms), &words->ncomms);
    words->conns =
        take_rows(s, part, words->conns, sizeof(*words->conns), &words->nconns);
    words->graphs = take_rows(s, part, words->graphs, sizeof(*words->graphs),
                              &words->ngraphs);
    words->rings =
        take_rows(s, part, words->rings, sizeof(*words->rings), &words->nrings);
    words->messages = take_rows(s, part, words->messages,
                                sizeof(*words->messages), &words->nmessages);
}

static void take_classes(const struct splitting *s, int part,
                         struct ct_process *out)
{
    const struct ct_process *p = s->whole;
    int i;

    out->nclasses = out->nlaunches = 0;
    out->classes =
        ct_arena_alloc(s->arena, (size_t)p->nclasses, sizeof(*out->classes));
    out->launches =
        ct_arena_alloc(s->arena, (size_t)p->nlaunches, sizeof(*out->launches));
    for (i = 0; i < p->nclasses; i++) {
        if (s->part_of[p->classes[i].comm] != part)
            continue;
        s->class_at[i] = out->nclasses;
        out->classes[out->nclasses] = p->classes[i];
        out->classes[out->nclasses++].comm = s->comm_at[p->classes[i].comm];
    }
    for (i = 0; i < p->nlaunches; i++) {
        if (s->part_of[p->launches[i].comm] != part)
            continue;
        s->launch_at[i] = out->nlaunches;
        out->launches[out->nlaunches] = p->launches[i];
        out->launches[out->nlaunches].first_op = CT_NONE;
        out->launches[out->nlaunches++].comm = s->comm_at[p->launches[i].comm];
    }
}

static int count_ops(const struct splitting *s, int part)
{
    const struct ct_process *p = s->whole;
    int i, n = 0;

    for (i = 0; i < p->nops; i++)
        n += s->part_of[p->classes[p->ops[i].cls].comm] == part;
    return n;
}

static void take_ops(const struct splitting *s, int part,
                     struct ct_process *out)
{
    const struct ct_process *p = s->whole;
    int i, n = count_ops(s, part);

    out->nops = 0;
    out->ops = ct_arena_alloc(s->arena, (size_t)n, sizeof(*out->ops));
    if (p->op_choices)
        out->op_choices = ct_arena_alloc(s->arena, (size_t)n, sizeof(int));
    for (i = 0; i < p->nops; i++) {
        struct ct_op_row *op = &out->ops[out->nops];

        if (s->part_of[p->classes[p->ops[i].cls].comm] != part)
            continue;
        *op = p->ops[i];
        op->cls = s->class_at[op->cls];
        s->op_at[i] = out->nops;
        if (p->op_choices)
            out->op_choices[out->nops] = p->op_choices[i];
        if (op->launch != CT_NONE) {
            op->launch = s->launch_at[op->launch];
            if (out->launches[op->launch].first_op == CT_NONE)
                out->launches[op->launch].first_op = out->nops;
        }
        out->nops++;
    }
}

/* Choice classes stay as they are, since op_choices points into all of them. */
static void take_choices(const struct splitting *s, int part,
                         struct ct_process *out)
{
    const struct ct_process *p = s->whole;
    int i;

    out->ntunings = out->nchoice_stops = 0;
    out->tunings =
        ct_arena_alloc(s->arena, (size_t)p->ntunings, sizeof(*out->tunings));
    out->choice_stops = ct_arena_alloc(s->arena, (size_t)p->nchoice_stops,
                                       sizeof(*out->choice_stops));
    for (i = 0; i < p->ntunings; i++)
        if (s->part_of[p->tunings[i].comm] == part) {
            out->tunings[out->ntunings] = p->tunings[i];
            out->tunings[out->ntunings++].comm = s->comm_at[p->tunings[i].comm];
        }
    for (i = 0; i < p->nchoice_stops; i++)
        if (s->part_of[p->choice_stops[i].comm] == part) {
            struct ct_choice_stop *stop =
                &out->choice_stops[out->nchoice_stops++];

            *stop = p->choice_stops[i];
            stop->comm = s->comm_at[stop->comm];
            stop->op = stop->op < p->nops ? s->op_at[stop->op] : out->nops;
        }
}

static uint64_t parts_in(const struct splitting *s, int graph)
{
    return graph == CT_NONE ? 0 : s->graph_parts[graph];
}

static void find_graph_parts(struct splitting *s)
{
    const struct ct_process *p = s->whole;
    int *order = ct_graphs_oldest_first(p), i;

    for (i = 0; i < p->nclasses; i++)
        if (p->classes[i].graph != CT_NONE)
            s->graph_parts[p->classes[i].graph] |=
                (uint64_t)1 << s->part_of[p->classes[i].comm];
    for (i = 0; i < p->ngraphs; i++) {
        const struct ct_graph_row *graph = &p->graphs[order[i]];

        s->graph_parts[order[i]] |=
            parts_in(s, graph->first) | parts_in(s, graph->second);
    }
    free(order);
}

/* Launches of graphs that hold nobody's ops are the first part's. */
static bool has_launch(const struct splitting *s, int part, int graph)
{
    const uint64_t parts = parts_in(s, graph);

    return parts ? parts >> part & 1 : part == 0;
}

static void take_kernels(const struct splitting *s, int part,
                         struct ct_process *out)
{
    const struct ct_process *p = s->whole;
    int i;

    out->nkernels = 0;
    out->kernels =
        ct_arena_alloc(s->arena, (size_t)p->nkernels, sizeof(*out->kernels));
    for (i = 0; i < p->nkernels; i++) {
        const struct ct_op_row *op = &p->ops[p->kernels[i].op];
        struct ct_kernel_row *kernel = &out->kernels[out->nkernels];

        if (s->part_of[p->classes[op->cls].comm] != part)
            continue;
        *kernel = p->kernels[i];
        kernel->op = s->op_at[kernel->op];
        if (kernel->launch != CT_NONE)
            kernel->launch =
                has_launch(s, part, p->graph_launches[kernel->launch].graph)
                    ? s->graph_launch_at[kernel->launch]
                    : CT_NONE;
        out->nkernels++;
    }
}

static void take_graphs(const struct splitting *s, int part,
                        struct ct_process *out)
{
    const struct ct_process *p = s->whole;
    int i;

    out->graphs =
        ct_arena_alloc(s->arena, (size_t)p->ngraphs, sizeof(*out->graphs));
    out->graph_launches = ct_arena_alloc(s->arena, (size_t)p->ngraph_launches,
                                         sizeof(*out->graph_launches));
    for (i = 0; i < p->ngraphs; i++) {
        out->graphs[i] = p->graphs[i];
        out->graphs[i].launches = out->graphs[i].ops = 0;
    }
    out->ngraph_launches = 0;
    for (i = 0; i < p->ngraph_launches; i++)
        if (has_launch(s, part, p->graph_launches[i].graph)) {
            s->graph_launch_at[i] = out->ngraph_launches;
            out->graph_launches[out->ngraph_launches++] = p->graph_launches[i];
        }
    out->runs = out->replays = 0;
    out->captured = out->idle = out->blind = 0;
    out->by_launches = false;
    ct_graphs_count(out);
}

static void take_refusals(const struct splitting *s, int part,
                          struct ct_process *out)
{
    const struct ct_process *p = s->whole;

    if (p->refused && s->part_of[p->first_refused.comm] == part)
        out->first_refused.comm = s->comm_at[p->first_refused.comm];
    else
        out->refused = 0;
}

/* The launcher knows the process, not its ranks. */
static void take_rest(const struct splitting *s, int part,
                      struct ct_process *out)
{
    int i;

    out->rank = out->world_size = CT_NONE;
    out->part = part;
    out->nparts = s->nparts;
    if (part > 0) {
        out->nlosses = out->recovered = out->simulated = 0;
        out->lost = out->choices = out->unplaced = out->disagreed = 0;
        return;
    }
    out->losses =
        ct_arena_alloc(s->arena, (size_t)out->nlosses, sizeof(*out->losses));
    for (i = 0; i < out->nlosses; i++) {
        out->losses[i] = s->whole->losses[i];
        out->losses[i].comm = CT_NONE;
    }
}

static struct ct_process *split(struct splitting *s)
{
    struct ct_process *parts =
        ct_arena_alloc(s->arena, (size_t)s->nparts, sizeof(*parts));
    int i;

    for (i = 0; i < s->nparts; i++) {
        parts[i] = *s->whole;
        take_comms(s, i, &parts[i]);
        take_events(s, i, &parts[i]);
        take_words(s, i, &parts[i].nccl);
        take_classes(s, i, &parts[i]);
        take_ops(s, i, &parts[i]);
        take_graphs(s, i, &parts[i]);
        take_choices(s, i, &parts[i]);
        take_kernels(s, i, &parts[i]);
        take_refusals(s, i, &parts[i]);
        take_rest(s, i, &parts[i]);
    }
    return parts;
}

struct ct_process *ct_trace_parts(const struct ct_process *process,
                                  struct ct_arena *arena, int *n_p)
{
    struct splitting s = {.whole = process, .arena = arena};
    const uint64_t uid = main_uid(process, &s.nparts);
    struct ct_process *parts;

    *n_p = 1;
    if (s.nparts == 1 || s.nparts > MAX_PARTS)
        return NULL;
    *n_p = s.nparts;
    s.part_of = ct_alloc((size_t)process->ncomms, sizeof(int));
    s.comm_at = ct_alloc((size_t)process->ncomms, sizeof(int));
    s.device = ct_alloc((size_t)s.nparts, sizeof(int));
    s.class_at = ct_alloc((size_t)process->nclasses, sizeof(int));
    s.launch_at = ct_alloc((size_t)process->nlaunches, sizeof(int));
    s.op_at = ct_alloc((size_t)process->nops, sizeof(int));
    s.graph_launch_at = ct_alloc((size_t)process->ngraph_launches, sizeof(int));
    s.graph_parts = ct_alloc((size_t)process->ngraphs, sizeof(uint64_t));
    assign(&s, uid);
    find_graph_parts(&s);
    parts = split(&s);
    free(s.part_of);
    free(s.comm_at);
    free(s.device);
    free(s.class_at);
    free(s.launch_at);
    free(s.op_at);
    free(s.graph_launch_at);
    free(s.graph_parts);
    ct_intern_release(&s.held);
    return parts;
}
