#include <stdlib.h>

#include "model/samples.h"

#define SEND_BUFFER (4u << 20) /* NCCL_BUFFSIZE's default for Simple */
/* Least ratio of shortest to longest duration: of what is used where there is
 * any, and of what is used at all. */
#define EVEN .75
#define LEAST_EVEN .5
#define LONGEST_RING 1024

struct half {       /* one rank's launch of an exchange */
    int send, recv; /* instances; CT_NONE: the launch is no exchange */
    int64_t ns;
    bool taken;
};

struct rings {
    const struct ct_trace *trace;
    const struct ct_job *job;
    int nhalves;
    struct half *halves; /* launches of all processes that are exchanges */
    int *receiver;       /* per instance: half that receives it; CT_NONE */
    int nfound;
    struct ring {
        int usage;
        bool even;
        int64_t ns;
    } * found;
};

static const struct ct_usage *usage_of(const struct ct_job *job, int instance)
{
    const int usage =
        instance == CT_NONE ? CT_NONE : job->instances[instance].usage;

    return usage == CT_NONE ? NULL : &job->usages[usage];
}

static bool alike(const struct ct_job *job, int a, int b)
{
    const struct ct_usage *ua = usage_of(job, a);
    const struct ct_usage *ub = usage_of(job, b);

    return ua && ub && ua->bytes == ub->bytes && ua->link == ub->link &&
           !job->instances[a].mismatch && !job->instances[b].mismatch;
}

/* The launch as half of an exchange: one send, one recv, alike. */
static struct half half_of(const struct ct_job *job,
                           const struct ct_process *process, int id)
{
    const struct ct_launch_row *launch = &process->launches[id];
    const int first = launch->first_op;
    struct half half = {CT_NONE, CT_NONE, ct_launch_gpu_ns(launch), false};

    if (launch->nops != 2 || first == CT_NONE || first + 1 >= process->nops ||
        process->ops[first + 1].launch != id ||
        ct_launch_gpu_ns(launch) == CT_NO_TIME)
        return half;
    for (int i = first; i <= first + 1; i++) {
        const enum ct_op base = process->classes[process->ops[i].cls].base;

        if (ct_op_infos[base].cls == CT_SEND)
            half.send = process->ops[i].instance;
        else if (ct_op_infos[base].cls == CT_RECV)
            half.recv = process->ops[i].instance;
    }
    if (half.send == CT_NONE || half.recv == CT_NONE ||
        !alike(job, half.send, half.recv))
        half.send = half.recv = CT_NONE;
    return half;
}

static void find_halves(struct rings *rings)
{
    for (int i = 0; i < rings->job->nprocesses; i++) {
        const struct ct_process *process =
            &rings->trace->processes[rings->job->processes[i]];

        for (int l = 0; l < process->nlaunches; l++) {
            const struct half half = half_of(rings->job, process, l);

            if (half.recv == CT_NONE)
                continue;
            rings->receiver[half.recv] = rings->nhalves;
            rings->halves[rings->nhalves++] = half;
        }
    }
}

struct lap { /* once round a ring */
    int n;
    int64_t sum, shortest, longest;
};

/* Follows the message of half start from rank to rank; whether it comes back.
 */
static bool go_round(struct rings *rings, int start, struct lap *lap)
{
    int at = start;

    *lap = (struct lap){0, 0, INT64_MAX, 0};
    do {
        struct half *half = &rings->halves[at];

        if (half->taken || lap->n == LONGEST_RING)
            return false;
        half->taken = true;
        lap->n++;
        lap->sum += half->ns;
        lap->shortest = half->ns < lap->shortest ? half->ns : lap->shortest;
        lap->longest = half->ns > lap->longest ? half->ns : lap->longest;
        at = rings->receiver[half->send];
        if (at == CT_NONE)
            return false;
    } while (at != start);
    return true;
}

static void find_rings(struct rings *rings)
{
    for (int i = 0; i < rings->nhalves; i++) {
        const int instance = rings->halves[i].send;
        struct lap lap;

        if (!go_round(rings, i, &lap) || lap.n < 2 || lap.shortest <= 0 ||
            (double)lap.shortest < LEAST_EVEN * (double)lap.longest)
            continue;
        rings->found[rings->nfound++] = (struct ring){
            .usage = rings->job->instances[instance].usage,
            .even = (double)lap.shortest >= EVEN * (double)lap.longest,
            .ns = ct_usage_of(rings->job, &rings->job->instances[instance])
                              ->bytes > SEND_BUFFER
                      ? lap.shortest
                      : lap.sum / lap.n};
    }
}

static int compare_rings(const void *pa, const void *pb)
{
    const struct ring *a = pa;
    const struct ring *b = pb;

    if (a->usage != b->usage)
        return a->usage < b->usage ? -1 : 1;
    if (a->even != b->even)
        return a->even ? -1 : 1;
    return (a->ns > b->ns) - (a->ns < b->ns);
}

/* Hands the rings of each usage to it, the even ones where there are any. */
static bool hand_over(const struct rings *rings, struct ct_sample_set *set)
{
    const size_t n = (size_t)rings->nfound;

    set->rings = malloc((n + 1) * sizeof *set->rings);
    if (!set->rings)
        return false;
    qsort(rings->found, n, sizeof *rings->found, compare_rings);
    for (size_t i = 0; i < n; i++) {
        const struct ring *ring = &rings->found[i];
        struct ct_samples *samples = &set->of_usage[ring->usage];

        set->rings[i] = ring->ns;
        if (!samples->exchanges)
            *samples = (struct ct_samples){&set->rings[i], 0, true};
        else if (ring->even != ring[-1].even)
            continue; /* and so the rest, which are less even still */
        if (samples->ns + samples->n == &set->rings[i])
            samples->n++;
    }
    return true;
}

static bool has_grouped_p2p(const struct ct_job *job)
{
    for (int u = 0; u < job->nusages; u++)
        if (job->usages[u].grouped && ct_is_p2p(job->usages[u].base))
            return true;
    return false;
}

static size_t count_pairs(const struct rings *rings)
{
    size_t n = 0;

    for (int i = 0; i < rings->job->nprocesses; i++) {
        const struct ct_process *process =
            &rings->trace->processes[rings->job->processes[i]];

        for (int l = 0; l < process->nlaunches; l++)
            n += process->launches[l].nops == 2;
    }
    return n;
}

static bool gather_rings(struct rings *rings, struct ct_sample_set *set)
{
    const size_t launches = count_pairs(rings) + 1;
    bool good;

    rings->halves = malloc(launches * sizeof *rings->halves);
    rings->found = malloc(launches * sizeof *rings->found);
    rings->receiver =
        malloc(((size_t)rings->job->ninstances + 1) * sizeof *rings->receiver);
    good = rings->halves && rings->found && rings->receiver;
    for (int i = 0; good && i < rings->job->ninstances; i++)
        rings->receiver[i] = CT_NONE;
    if (good) {
        find_halves(rings);
        find_rings(rings);
        good = hand_over(rings, set);
    }
    free(rings->halves);
    free(rings->found);
    free(rings->receiver);
    return good;
}

int ct_samples_from_rings(const struct ct_trace *trace,
                          const struct ct_job *job, struct ct_sample_set *set)
{
    struct rings rings = {.trace = trace, .job = job};

    if (!has_grouped_p2p(job))
        return 0;
    return gather_rings(&rings, set) ? 0 : -1;
}
