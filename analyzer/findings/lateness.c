#include <math.h>
#include <stdlib.h>

#include "findings/kept.h"
#include "findings/straggler.h"
#include "trace/clocks.h"

#define SAME_TIME_NS 5000   /* ranks that come so close come together */
#define MOST_ERROR_NS 20000 /* of clocks that are asked who came last */

/* Of the time by which a rank comes last another one waits as much, or its work
 * was not needed earlier: ranks keep a skew of a hop from one collective of a
 * ring to the next, and nobody waits. */
#define WAITED .5

struct arrival {               /* over the ranks of one instance */
    int64_t start, next_start; /* latest, next to it; absolute */
    int64_t ns, next_ns;       /* shortest duration, next to it */
    int last_start, last_ns;   /* processes */
    unsigned seen;
};

struct work {
    const struct ct_case *c;
    struct ct_lateness *lateness;
    struct arrival *arrivals; /* per instance */
    double *late_ns;          /* per row: in the step that is being walked */
    struct ct_late **row_of;  /* per communicator of the process that is being
                                 walked; NULL: none, or another holds its rank */
};

/* Those whose ranks do the same work. */
static bool *choose_comms(const struct ct_case *c)
{
    bool *chosen = calloc((size_t)c->job->ncomms + 1, sizeof *chosen);
    const bool any = ct_any_same_work(c);

    for (int u = 0; chosen && u < c->job->nusages; u++) {
        const struct ct_comm *comm = &c->job->comms[c->job->usages[u].comm];

        if (comm->nranks > 1 && comm->nknown == comm->nranks &&
            (any || ct_same_work(c, u)))
            chosen[c->job->usages[u].comm] = true;
    }
    return chosen;
}

/* How far starts of its ranks may be off from each other; INFINITY: clocks do
 * not say who came last. */
static double clock_error(const struct ct_trace *trace,
                          const struct ct_comm *comm)
{
    const struct ct_process *first =
        &trace->processes[comm->members[0].process];
    double error = 0;

    for (int i = 1; i < comm->nranks; i++) {
        const struct ct_process *p =
            &trace->processes[comm->members[i].process];

        error =
            fmax(error, ct_common_error(trace, first, p, first->last_ns / 2));
    }
    return error <= MOST_ERROR_NS ? error : INFINITY;
}

static bool lay_out(const struct ct_case *c, struct ct_lateness *l)
{
    bool *chosen = choose_comms(c);
    size_t room = 1;

    l->first = malloc(((size_t)c->job->ncomms + 1) * sizeof *l->first);
    for (int i = 0; chosen && i < c->job->ncomms; i++)
        room += chosen[i] ? (size_t)c->job->comms[i].nranks : 0;
    l->rows = calloc(room, sizeof *l->rows);
    for (int i = 0; chosen && l->first && l->rows && i < c->job->ncomms; i++) {
        const struct ct_comm *comm = &c->job->comms[i];

        l->first[i] = CT_NONE;
        if (!chosen[i])
            continue;
        const double error = clock_error(c->trace, comm);

        l->first[i] = l->n;
        for (int r = 0; r < comm->nranks; r++)
            l->rows[l->n++] =
                (struct ct_late){.comm = i,
                                 .process = comm->members[r].process,
                                 .by_clock = !isinf(error),
                                 .error_ns = isinf(error) ? 0 : error};
    }
    free(chosen);
    return chosen && l->first && l->rows;
}

static void note_arrival(const struct ct_trace *trace, struct arrival *a,
                         int process, const struct ct_op_row *op)
{
    const int64_t start =
        ct_common_ns(trace, &trace->processes[process], ct_op_start_ns(op));

    if (!a->seen++)
        *a = (struct arrival){INT64_MIN, INT64_MIN, INT64_MAX, INT64_MAX,
                              process,   process,   1};
    if (start > a->start) {
        a->next_start = a->start;
        a->start = start;
        a->last_start = process;
    } else if (start > a->next_start) {
        a->next_start = start;
    }
    if (ct_op_gpu_ns(op) < a->ns) {
        a->next_ns = a->ns;
        a->ns = ct_op_gpu_ns(op);
        a->last_ns = process;
    } else if (ct_op_gpu_ns(op) < a->next_ns) {
        a->next_ns = ct_op_gpu_ns(op);
    }
}

static struct ct_late *row_in(const struct work *w, int process, int comm_row)
{
    const struct ct_comm_row *comm =
        &w->c->trace->processes[process].comms[comm_row];
    const int first = w->lateness->first[comm->comm];
    struct ct_late *row;

    if (first == CT_NONE || comm->rank < 0)
        return NULL;
    row = &w->lateness->rows[first + comm->rank];
    return row->process == process ? row : NULL;
}

static void turn_to(struct work *w, int process)
{
    const int ncomms = w->c->trace->processes[process].ncomms;

    for (int i = 0; i < ncomms; i++)
        w->row_of[i] = row_in(w, process, i);
}

/* Whether who comes last to it may be told from its times. */
static bool is_fair(const struct ct_instance *i)
{
    return !i->grouped && !i->bound && !i->mismatch &&
           ct_op_infos[i->base].cls == CT_COLL;
}

/* The row of the process that issued op, an op of a step; NULL: the op does not
 * count. */
static struct ct_late *row_of(const struct work *w, const struct ct_process *p,
                              const struct ct_op_row *op)
{
    return ct_op_graph(p, op) != CT_NONE || op->instance == CT_NONE ||
                   ct_op_start_ns(op) == CT_NO_TIME ||
                   ct_op_gpu_ns(op) == CT_NO_TIME
               ? NULL
               : w->row_of[p->classes[op->cls].comm];
}

static void note_step(struct work *w, int process,
                      const struct ct_step_row *step)
{
    const struct ct_process *p = &w->c->trace->processes[process];

    for (int o = step->first_op; o <= step->last_op; o++) {
        const struct ct_op_row *op = &p->ops[o];

        if (row_of(w, p, op) && is_fair(&w->c->job->instances[op->instance]))
            note_arrival(w->c->trace, &w->arrivals[op->instance], process, op);
    }
}

/* How much later than the next the process came that was last; it: whether it
 * was this one. By durations a late rank and the one it delays most may be
 * twice as far apart as they came. */
static double margin(const struct arrival *a, bool by_clock, int process,
                     bool *it_p)
{
    *it_p = process == (by_clock ? a->last_start : a->last_ns);
    return by_clock ? (double)(a->start - a->next_start)
                    : (double)(a->next_ns - a->ns);
}

static void end_row_step(struct ct_late *row, double ns)
{
    if (row->steps < CT_STEPS_KEPT)
        row->of_step[row->steps] = (float)ns;
    row->steps++;
    row->sum += ns;
    row->squares += ns * ns;
}

static void add_op(struct work *w, int process, const struct ct_op_row *op)
{
    struct ct_late *row = row_of(w, &w->c->trace->processes[process], op);
    const struct arrival *a;
    double ns;
    bool it;

    if (!row)
        return;
    a = &w->arrivals[op->instance];
    if ((int)a->seen != w->c->job->comms[row->comm].nranks)
        return;
    ns = margin(a, row->by_clock, process, &it);
    if (ns < fmax(SAME_TIME_NS, row->error_ns) ||
        (double)w->c->job->instances[op->instance].wait_max_ns < ns * WAITED)
        return;
    row->calls++;
    if (!it)
        return;
    row->last++;
    w->late_ns[row - w->lateness->rows] += ns;
}

/* What op took; rows get what the process spends in other communicators, where
 * it waits for others or is slowed down with them by a link. */
static double add_elsewhere(struct work *w, int process, int o)
{
    const struct ct_process *p = &w->c->trace->processes[process];
    struct ct_op_cost cost;
    struct ct_late *row;

    if (ct_op_graph(p, &p->ops[o]) != CT_NONE ||
        !ct_op_cost(w->c->trace, process, o, &cost))
        return 0;
    row = w->row_of[p->classes[p->ops[o].cls].comm];
    if (row)
        row->elsewhere_ns -= (double)(cost.wait_ns + cost.transfer_ns);
    return (double)(cost.wait_ns + cost.transfer_ns);
}

static void weigh_step(struct work *w, int process,
                       const struct ct_step_row *step)
{
    const struct ct_process *p = &w->c->trace->processes[process];
    double spent_ns = 0;

    for (int o = step->first_op; o <= step->last_op; o++) {
        add_op(w, process, &p->ops[o]);
        spent_ns += add_elsewhere(w, process, o);
    }
    for (int i = 0; i < p->ncomms; i++) {
        struct ct_late *row = w->row_of[i];
        double *late_ns;

        if (!row)
            continue;
        row->elsewhere_ns += spent_ns;
        late_ns = &w->late_ns[row - w->lateness->rows];
        end_row_step(row, *late_ns);
        *late_ns = 0;
    }
}

static void each_steady_step(struct work *w,
                             void (*told)(struct work *, int process,
                                          const struct ct_step_row *))
{
    for (int i = 0; i < w->c->job->nprocesses; i++) {
        const int id = w->c->job->processes[i];
        const struct ct_process *p = &w->c->trace->processes[id];

        turn_to(w, id);
        for (int s = 0; s < p->nsteps; s++)
            if (p->steps[s].kind == CT_STEP_STEADY)
                told(w, id, &p->steps[s]);
    }
}

/* Steps are the same for all ranks where all have as many. */
static void compare_steps(struct ct_late *rows, int n)
{
    int steps = rows[0].steps;

    for (int i = 1; i < n; i++)
        if (rows[i].steps != steps)
            return;
    for (int s = 0; s < steps && s < CT_STEPS_KEPT; s++) {
        int most = 0;
        double sum = 0;

        for (int i = 0; i < n; i++) {
            sum += (double)rows[i].of_step[s];
            if (rows[i].of_step[s] > rows[most].of_step[s])
                most = i;
        }
        rows[most].dominated += (double)rows[most].of_step[s] > sum / 2;
    }
}

static bool begin(const struct ct_case *c, struct work *w)
{
    struct ct_lateness *l = w->lateness;
    int most = 0;

    if (!lay_out(c, l))
        return false;
    for (int i = 0; i < c->job->nprocesses; i++) {
        const int n = c->trace->processes[c->job->processes[i]].ncomms;

        most = n > most ? n : most;
    }
    w->row_of = calloc((size_t)most + 1, sizeof(*w->row_of));
    w->arrivals = calloc((size_t)c->job->ninstances + 1, sizeof *w->arrivals);
    w->late_ns = calloc((size_t)l->n + 1, sizeof *w->late_ns);
    l->of_step = calloc((size_t)(l->n + 1) * CT_STEPS_KEPT, sizeof *l->of_step);
    for (int i = 0; l->of_step && i < l->n; i++)
        l->rows[i].of_step = l->of_step + (size_t)i * CT_STEPS_KEPT;
    return w->row_of && w->arrivals && w->late_ns && l->of_step;
}

int ct_lateness_measure(const struct ct_case *c, struct ct_lateness *lateness)
{
    struct work w = {.c = c, .lateness = lateness};
    bool good;

    *lateness = (struct ct_lateness){0};
    good = begin(c, &w);
    if (good) {
        each_steady_step(&w, note_step);
        each_steady_step(&w, weigh_step);
        for (int i = 0; i < c->job->ncomms; i++)
            if (lateness->first[i] != CT_NONE)
                compare_steps(&lateness->rows[lateness->first[i]],
                              c->job->comms[i].nranks);
    }
    free((void *)w.row_of);
    free(w.arrivals);
    free(w.late_ns);
    if (good)
        return 0;
    ct_lateness_release(lateness);
    return -1;
}

void ct_lateness_release(struct ct_lateness *lateness)
{
    free(lateness->rows);
    free(lateness->first);
    free(lateness->of_step);
    *lateness = (struct ct_lateness){0};
}
