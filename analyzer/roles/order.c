#include "roles/order.h"

#include <math.h>
#include <stdlib.h>

#include "roles/chains.h"

#define MOST_GAPS 4096

struct place { /* a call in a step */
    int use;
    int64_t start_ns, end_ns;
    int p2p_before;          /* send/recv of the step that came earlier */
    int64_t calls_before_ns; /* time in calls of the step that came earlier */
    enum ct_op base;
};

struct sums { /* of a use, over the steps that were looked at */
    double inside, ratio, turns;
    int ninside, nratio, nturns;
};

struct scan {
    const struct ct_uses *uses;
    struct sums *sums;
    struct place *places;
    double *gaps;
    int room;
};

static int compare_places(const void *pa, const void *pb)
{
    const struct place *a = pa;
    const struct place *b = pb;

    if (a->use != b->use)
        return a->use < b->use ? -1 : 1;
    if (a->p2p_before != b->p2p_before)
        return a->p2p_before < b->p2p_before ? -1 : 1;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static int compare_doubles(const void *pa, const void *pb)
{
    const double a = *(const double *)pa;
    const double b = *(const double *)pb;

    return (a > b) - (a < b);
}

/* Share of the step's send/recv between the first and the last of k calls,
 * the step taken as a circle that may be cut anywhere. */
static void measure_inside(struct sums *sums, const struct place *p, int k,
                           int p2p)
{
    int outside = p2p - p[k - 1].p2p_before + p[0].p2p_before;

    if (p2p == 0)
        return;
    for (int i = 1; i < k; i++)
        if (p[i].p2p_before - p[i - 1].p2p_before > outside)
            outside = p[i].p2p_before - p[i - 1].p2p_before;
    sums->inside += 1 - (double)outside / p2p;
    sums->ninside++;
}

/* What lies between two calls and is no call itself; lap_ns, lap_calls_ns: the
 * step and the calls in it, where b is in the next step. */
static double pause(const struct place *a, const struct place *b,
                    int64_t lap_ns, int64_t lap_calls_ns)
{
    const int64_t gap = lap_ns + b->start_ns - a->end_ns;
    const int64_t calls = lap_calls_ns + b->calls_before_ns -
                          a->calls_before_ns - (a->end_ns - a->start_ns);

    return fmax(0, (double)(gap - calls));
}

static void measure_gaps(struct sums *sums, const struct place *p, int k,
                         const struct ct_window *window, int64_t calls_ns,
                         double *gaps)
{
    if (window->start_ns == CT_NO_TIME || k < 3 || k > MOST_GAPS)
        return;
    for (int i = 1; i < k; i++)
        gaps[i] = pause(&p[i - 1], &p[i], 0, 0);
    gaps[0] =
        pause(&p[k - 1], &p[0], window->end_ns - window->start_ns, calls_ns);
    qsort(gaps, (size_t)k, sizeof *gaps, compare_doubles);
    sums->ratio += gaps[k - 1] / fmax(gaps[k / 2], 1e3);
    sums->nratio++;
}

static void measure_turns(struct sums *sums, const struct place *p, int k)
{
    enum ct_op last = CT_OP_COUNT;
    int turns = 0, calls = 0;

    for (int i = 0; i < k; i++) {
        if (p[i].base != CT_OP_ALL_GATHER && p[i].base != CT_OP_REDUCE_SCATTER)
            continue;
        turns += calls > 0 && p[i].base != last;
        last = p[i].base;
        calls++;
    }
    if (calls < 2)
        return;
    sums->turns += (double)turns / (calls - 1);
    sums->nturns++;
}

static struct place place_of(const struct ct_op_row *op, enum ct_op base,
                             int use, int p2p, int64_t calls_ns)
{
    const bool timed =
        ct_op_start_ns(op) != CT_NO_TIME && ct_op_gpu_ns(op) != CT_NO_TIME;
    const int64_t host =
        ct_op_host_ns(op) == CT_NO_TIME ? 0 : ct_op_host_ns(op);
    const int64_t start = timed ? ct_op_start_ns(op) : op->enter_ns;

    return (struct place){
        use, start,    start + (timed ? ct_op_gpu_ns(op) : host),
        p2p, calls_ns, base};
}

static int use_of(const struct ct_uses *uses, const struct ct_process *process,
                  const struct ct_op_class_row *cls)
{
    const int comm = process->comms[cls->comm].comm;

    if (comm < 0)
        return CT_NONE;
    return ct_uses_find(
        uses, comm,
        ct_use_kind_of(cls->base, cls->count, uses->exchanges[comm]));
}

/* Places of the window's large collectives; *p2p_p: its send/recv,
 * *calls_ns_p: time in any call. */
static int place_ops(struct scan *scan, const struct ct_process *process,
                     const struct ct_window *window, const int *use_of_class,
                     int *p2p_p, int64_t *calls_ns_p)
{
    int64_t calls_ns = 0;
    int n = 0, p2p = 0, launch = CT_NONE;

    for (int i = window->first; i <= window->last; i++) {
        const struct ct_op_row *op = &process->ops[i];
        const int use = use_of_class[op->cls];
        const enum ct_op base = process->classes[op->cls].base;

        if (use == CT_NONE)
            continue;
        const struct place place = place_of(op, base, use, p2p, calls_ns);

        if (scan->uses->uses[use].kind == CT_USE_P2P)
            p2p++;
        else if (scan->uses->uses[use].kind == CT_USE_LARGE)
            scan->places[n++] = place;
        if (op->launch == CT_NONE || op->launch != launch)
            calls_ns += place.end_ns - place.start_ns;
        launch = op->launch;
    }
    *calls_ns_p = calls_ns;
    *p2p_p = p2p;
    return n;
}

static bool make_room(struct scan *scan, const struct ct_window *window)
{
    const int need = window->last - window->first + 1;

    if (scan->places && need <= scan->room)
        return true;
    free(scan->places);
    scan->places = malloc((size_t)need * sizeof *scan->places);
    scan->room = scan->places ? need : 0;
    return scan->places != NULL;
}

static bool scan_window(struct scan *scan, const struct ct_process *process,
                        const struct ct_window *window, const int *use_of_class)
{
    int64_t calls_ns;
    int p2p, n, k;

    if (!make_room(scan, window))
        return false;
    n = place_ops(scan, process, window, use_of_class, &p2p, &calls_ns);
    qsort(scan->places, (size_t)n, sizeof *scan->places, compare_places);
    for (int i = 0; i < n; i += k) {
        const struct place *p = &scan->places[i];
        struct sums *sums = &scan->sums[p->use];

        for (k = 1; i + k < n && p[k].use == p->use; k++)
            ;
        measure_inside(sums, p, k, p2p);
        measure_gaps(sums, p, k, window, calls_ns, scan->gaps);
        measure_turns(sums, p, k);
    }
    return true;
}

static bool scan_process(struct scan *scan, const struct ct_process *process)
{
    int *use_of_class =
        malloc(((size_t)process->nclasses + 1) * sizeof *use_of_class);
    struct ct_window windows[CT_WINDOWS];
    const int n = ct_windows(process, windows);
    bool good = use_of_class != NULL;

    for (int i = 0; good && i < process->nclasses; i++)
        use_of_class[i] = use_of(scan->uses, process, &process->classes[i]);
    for (int w = 0; good && w < n; w++)
        good = scan_window(scan, process, &windows[w], use_of_class);
    free(use_of_class);
    return good;
}

int ct_order_measure(const struct ct_trace *trace, const struct ct_job *job,
                     struct ct_uses *uses)
{
    struct scan scan = {.uses = uses,
                        .sums = calloc((size_t)uses->n + 1, sizeof *scan.sums),
                        .gaps = malloc(MOST_GAPS * sizeof *scan.gaps)};
    bool good = scan.sums && scan.gaps;

    for (int i = 0; good && i < job->nprocesses; i++)
        good = scan_process(&scan, &trace->processes[job->processes[i]]);
    for (int i = 0; good && i < uses->n; i++) {
        const struct sums *sums = &scan.sums[i];
        struct ct_use *use = &uses->uses[i];

        if (sums->ninside > 0)
            use->p2p_inside = sums->inside / sums->ninside;
        if (sums->nratio > 0)
            use->gap_ratio = sums->ratio / sums->nratio;
        if (sums->nturns > 0)
            use->turns = sums->turns / sums->nturns;
    }
    free(scan.sums);
    free(scan.places);
    free(scan.gaps);
    return good ? 0 : -1;
}
