#include "model/samples.h"

#include <stdlib.h>

#define SEND_BUFFER (4u << 20) /* NCCL_BUFFSIZE's default for Simple */
#define EVEN .6                /* least share of the longest duration */
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
    struct half *halves; /* launches of all processes */
    int *receiver;       /* per instance: half that receives it; CT_NONE */
    int nsamples;
    int *usages; /* of the samples found */
    int64_t *ns;
};

static bool is_p2p(enum ct_op base)
{
    const enum ct_op_class cls = ct_op_infos[base].cls;

    return cls == CT_SEND || cls == CT_RECV;
}

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
    struct half half = {CT_NONE, CT_NONE, launch->gpu_ns, false};

    if (launch->nops != 2 || first == CT_NONE || first + 1 >= process->nops ||
        process->ops[first + 1].launch != id || launch->gpu_ns == CT_NO_TIME)
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

            if (half.recv != CT_NONE)
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

        if (instance == CT_NONE || !go_round(rings, i, &lap) || lap.n < 2 ||
            lap.shortest <= 0 ||
            (double)lap.shortest < EVEN * (double)lap.longest)
            continue;
        rings->usages[rings->nsamples] = rings->job->instances[instance].usage;
        rings->ns[rings->nsamples++] =
            rings->job->instances[instance].bytes > SEND_BUFFER
                ? lap.shortest
                : lap.sum / lap.n;
    }
}

static int compare_usages(const void *pa, const void *pb)
{
    const int64_t *a = pa, *b = pb;

    if (a[0] != b[0])
        return a[0] < b[0] ? -1 : 1;
    return (a[1] > b[1]) - (a[1] < b[1]);
}

/* Hands the samples of rings to their usages, in set->room. */
static bool hand_over(const struct rings *rings, struct ct_sample_set *set)
{
    const size_t n = (size_t)rings->nsamples;
    int64_t(*rows)[2] = malloc((n + 1) * sizeof *rows);

    set->room = malloc((n + 1) * sizeof *set->room);
    if (!rows || !set->room) {
        free(rows);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        rows[i][0] = rings->usages[i];
        rows[i][1] = rings->ns[i];
    }
    qsort(rows, n, sizeof *rows, compare_usages);
    for (size_t i = 0; i < n; i++) {
        struct ct_samples *samples = &set->of_usage[rows[i][0]];

        set->room[i] = rows[i][1];
        if (!samples->exchanges)
            *samples = (struct ct_samples){&set->room[i], 0, true};
        samples->n++;
    }
    free(rows);
    return true;
}

static bool has_grouped_p2p(const struct ct_job *job)
{
    for (int u = 0; u < job->nusages; u++)
        if (job->usages[u].grouped && is_p2p(job->usages[u].base))
            return true;
    return false;
}

static bool gather_rings(struct rings *rings, struct ct_sample_set *set)
{
    size_t launches = 1;
    bool good;

    for (int i = 0; i < rings->job->nprocesses; i++)
        launches +=
            (size_t)rings->trace->processes[rings->job->processes[i]].nlaunches;
    rings->halves = malloc(launches * sizeof *rings->halves);
    rings->usages = malloc(launches * sizeof *rings->usages);
    rings->ns = malloc(launches * sizeof *rings->ns);
    rings->receiver =
        malloc(((size_t)rings->job->ninstances + 1) * sizeof *rings->receiver);
    good = rings->halves && rings->usages && rings->ns && rings->receiver;
    for (int i = 0; good && i < rings->job->ninstances; i++)
        rings->receiver[i] = CT_NONE;
    if (good) {
        find_halves(rings);
        find_rings(rings);
        good = hand_over(rings, set);
    }
    free(rings->halves);
    free(rings->usages);
    free(rings->ns);
    free(rings->receiver);
    return good;
}

int ct_samples_gather(const struct ct_trace *trace, const struct ct_job *job,
                      struct ct_sample_set *set)
{
    struct rings rings = {.trace = trace, .job = job};

    *set = (struct ct_sample_set){
        .of_usage = calloc((size_t)job->nusages + 1, sizeof *set->of_usage)};
    if (!set->of_usage)
        return -1;
    for (int u = 0; u < job->nusages; u++)
        set->of_usage[u] = (struct ct_samples){job->usages[u].samples,
                                               job->usages[u].nsamples, false};
    if (has_grouped_p2p(job) && !gather_rings(&rings, set)) {
        ct_samples_release(set);
        return -1;
    }
    return 0;
}

void ct_samples_release(struct ct_sample_set *set)
{
    free(set->of_usage);
    free(set->room);
    *set = (struct ct_sample_set){0};
}
