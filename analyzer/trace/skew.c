#include <math.h>
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/locate.h"

#define LEAST_SHARE .05 /* of the calls that must be within */
#define LEAST_CALLS 3
#define ENOUGH 15 /* calls from which the first ones are left out */
#define WARM_UP 2
#define REGRESSION_CALLS 12
#define REGRESSION_RANGE .1 /* of skews, relative to the shortest duration */
#define SURE_CALLS 48       /* in which a kappa would have been seen */
#define MOST_KAPPA .65
#define SURE 1.64         /* standard errors: one-sided 95 % */
#define UNKNOWN_KAPPA .25 /* between latency's and bandwidth's */

struct call {
    double shortest, skew; /* ns, over the ranks */
};

static struct call call_of(const struct ct_instance *instance)
{
    const struct ct_spread spread = ct_spread_of(instance);

    return (struct call){spread.shortest, spread.longest - spread.shortest};
}

static bool is_fit(const struct call *call)
{
    return call->skew <= CT_MOST_SKEW * call->shortest;
}

static int compare_skews(const void *pa, const void *pb)
{
    const struct call *a = pa;
    const struct call *b = pb;

    if (a->skew != b->skew)
        return a->skew < b->skew ? -1 : 1;
    return (a->shortest > b->shortest) - (a->shortest < b->shortest);
}

static int compare_doubles(const void *pa, const void *pb)
{
    const double a = *(const double *)pa;
    const double b = *(const double *)pb;

    return (a > b) - (a < b);
}

/* n-1 steps round the ring: who comes late finds all of its peers' bytes there,
 * and its own duration says nothing of the transfer. */
static bool is_one_way(enum ct_op base)
{
    return base == CT_OP_ALL_GATHER || base == CT_OP_REDUCE_SCATTER;
}

static bool lets_late_ranks_gain(enum ct_op base, int nranks)
{
    return nranks > 2 || is_one_way(base);
}

/* Median slope between the calls of the less skewed half and those of the
 * other (calls are in order of skew); 0 unless so many of them fall that chance
 * does not explain it (sign test, 95 %). slopes holds n / 2. */
static double regress(const struct call *calls, int n, double *slopes)
{
    const int half = n / 2;
    int k = 0, falling = 0;

    for (int i = 0; i < half; i++) {
        const struct call *near = &calls[i], *far = &calls[n - half + i];

        if (far->skew <= near->skew)
            continue;
        falling += near->shortest > far->shortest;
        slopes[k++] =
            (near->shortest - far->shortest) / (far->skew - near->skew);
    }
    if (k == 0 || falling < .5 * k + .5 * SURE * sqrt(k))
        return 0;
    qsort(slopes, (size_t)k, sizeof(*slopes), compare_doubles);
    return fmin(MOST_KAPPA, fmax(0, slopes[k / 2]));
}

static bool can_regress(const struct call *calls, int n)
{
    const double low = calls[n / 10].skew, high = calls[n - 1 - n / 10].skew;

    return n >= REGRESSION_CALLS &&
           high - low >= REGRESSION_RANGE * calls[n / 2].shortest;
}

static double kappa_of(const struct call *calls, int n, enum ct_op base,
                       int nranks, double *scratch)
{
    if (can_regress(calls, n))
        return regress(calls, n, scratch);
    return lets_late_ranks_gain(base, nranks) ? UNKNOWN_KAPPA : 0;
}

/* Moves the n calls that are fit to the front; returns how many. */
static int pick(struct call *calls, int n)
{
    int k = 0;

    for (int i = n >= ENOUGH ? WARM_UP : 0; i < n; i++)
        if (is_fit(&calls[i]))
            calls[k++] = calls[i];
    return k;
}

/* Median of the k calls, put right. */
static double median(const struct call *calls, int k, double kappa,
                     double *scratch)
{
    for (int i = 0; i < k; i++)
        scratch[i] = calls[i].shortest + kappa * calls[i].skew;
    qsort(scratch, (size_t)k, sizeof(*scratch), compare_doubles);
    return scratch[k / 2];
}

struct judgement {    /* of one usage */
    bool known;       /* kappa and usual */
    bool hidden;      /* shortest durations say nothing; where not known: */
    bool gains;       /* they may be less than the transfer */
    bool synchronous; /* nobody gains by being late */
    double kappa, usual;
};

static struct judgement judge(const struct ct_job *job, int usage,
                              struct call *calls, int n, double *scratch)
{
    const struct ct_usage *u = &job->usages[usage];
    const int nranks = job->comms[u->comm].nranks;
    const int k = pick(calls, n);
    struct judgement found = {0};

    if (k < LEAST_CALLS || k < LEAST_SHARE * n) {
        found.hidden = is_one_way(u->base);
        found.gains = lets_late_ranks_gain(u->base, nranks);
        return found;
    }
    qsort(calls, (size_t)k, sizeof(*calls), compare_skews);
    found.known = true;
    found.kappa = kappa_of(calls, k, u->base, nranks, scratch);
    found.synchronous =
        k >= SURE_CALLS && can_regress(calls, k) && found.kappa == 0;
    found.usual = median(calls, k, found.kappa, scratch);
    return found;
}

/* Beyond what can be put right the usual transfer is the better guess, within
 * what the ranks saw; but where lateness changes nothing as far as can be seen,
 * it changes nothing beyond, either. */
static void correct(struct ct_instance *instance, const struct judgement *of,
                    double *ns)
{
    const struct call call = call_of(instance);

    if (!of->known) {
        instance->skewed = of->hidden || (of->gains && !is_fit(&call));
    } else if (is_fit(&call)) {
        *ns = call.shortest + of->kappa * call.skew;
    } else {
        instance->skewed = true;
        *ns = of->synchronous ? call.shortest : fmax(call.shortest, of->usual);
    }
}

static void lay_out(const struct ct_job *job, int64_t *first)
{
    int64_t total = 0;

    for (int i = 0; i < job->ninstances; i++)
        if (ct_is_whole_collective(job, &job->instances[i]))
            first[job->instances[i].usage + 1]++;
    for (int u = 0; u <= job->nusages; u++) {
        total += first[u];
        first[u] = total;
    }
}

static void fill(const struct ct_job *job, const int64_t *first,
                 int64_t *filled, struct call *calls)
{
    for (int i = 0; i < job->ninstances; i++) {
        const struct ct_instance *instance = &job->instances[i];

        if (ct_is_whole_collective(job, instance))
            calls[first[instance->usage] + filled[instance->usage]++] =
                call_of(instance);
    }
}

void ct_correct_skew(struct ct_job *job, double *ns)
{
    const size_t usages = (size_t)job->nusages + 2;
    const size_t room = (size_t)job->ninstances;
    int64_t *first = ct_alloc(usages, sizeof(*first));
    int64_t *filled = ct_alloc(usages, sizeof(*filled));
    struct call *calls = ct_alloc(room, sizeof(*calls));
    double *scratch = ct_alloc(room, sizeof(*scratch));
    struct judgement *of = ct_alloc(usages, sizeof(*of));

    lay_out(job, first);
    fill(job, first, filled, calls);
    for (int u = 0; u < job->nusages; u++)
        if (filled[u] > 0)
            of[u] = judge(job, u, calls + first[u], (int)filled[u], scratch);
    for (int i = 0; i < job->ninstances; i++) {
        struct ct_instance *instance = &job->instances[i];

        if (ct_is_whole_collective(job, instance))
            correct(instance, &of[instance->usage], &ns[i]);
    }
    free(of);
    free(scratch);
    free(calls);
    free(filled);
    free(first);
}
