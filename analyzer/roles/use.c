#include "roles/use.h"

#include <math.h>
#include <stdlib.h>

#define SAME_SIZE .01

enum ct_use_kind ct_use_kind_of(enum ct_op base, uint64_t count, bool exchange)
{
    const enum ct_op_class cls = ct_op_infos[base].cls;

    if (base == CT_OP_ALL_TO_ALL)
        return CT_USE_EXCHANGE;
    if (cls == CT_SEND || cls == CT_RECV || cls == CT_ONE_SIDED)
        return exchange ? CT_USE_EXCHANGE : CT_USE_P2P;
    return count <= CT_SMALL_COUNT ? CT_USE_SMALL : CT_USE_LARGE;
}

static enum ct_use_kind kind_of_usage(const struct ct_job *job,
                                      const struct ct_usage *usage,
                                      const bool *exchanges)
{
    if (job->nsteps > 0 && !(usage->per_step > 0))
        return CT_USE_INIT;
    return ct_use_kind_of(usage->base, usage->count, exchanges[usage->comm]);
}

static double calls_of(const struct ct_job *job, const struct ct_usage *usage)
{
    return job->nsteps > 0 && usage->per_step > 0 ? usage->per_step
                                                  : (double)usage->calls;
}

struct entry { /* a usage under the key of its use */
    int comm, usage;
    enum ct_use_kind kind;
};

static int compare_entries(const void *pa, const void *pb)
{
    const struct entry *a = pa;
    const struct entry *b = pb;

    if (a->comm != b->comm)
        return a->comm < b->comm ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->usage - b->usage;
}

static int compare_sizes(const void *pa, const void *pb)
{
    const struct ct_use_size *a = pa;
    const struct ct_use_size *b = pb;

    if (a->calls != b->calls)
        return a->calls > b->calls ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (int)a->base - (int)b->base;
}

static void add_size(struct ct_use *use, const struct ct_usage *usage,
                     double calls)
{
    for (int i = 0; i < use->nsizes; i++) {
        struct ct_use_size *size = &use->sizes[i];

        if (size->base == usage->base &&
            fabs((double)size->bytes - (double)usage->bytes) <=
                SAME_SIZE * (double)size->bytes) {
            size->calls += calls;
            return;
        }
    }
    use->sizes[use->nsizes++] =
        (struct ct_use_size){usage->base, usage->bytes, calls};
}

static void add_usage(struct ct_use *use, const struct ct_usage *usage,
                      double calls)
{
    add_size(use, usage, calls);
    use->calls += calls;
    use->bytes += calls * (double)usage->bytes;
    use->reduces += calls * (usage->base == CT_OP_ALL_REDUCE);
    use->scatters += calls * (usage->base == CT_OP_REDUCE_SCATTER);
    use->gathers += calls * (usage->base == CT_OP_ALL_GATHER);
    use->broadcasts += calls * (usage->base == CT_OP_BROADCAST);
    use->averages += calls * (usage->redop == CT_REDOP_AVG ||
                              usage->redop >= CT_REDOP_BUILTIN);
}

static void finish_use(struct ct_use *use)
{
    qsort(use->sizes, (size_t)use->nsizes, sizeof *use->sizes, compare_sizes);
    if (use->calls > 0) {
        use->reduces /= use->calls;
        use->scatters /= use->calls;
        use->gathers /= use->calls;
        use->broadcasts /= use->calls;
        use->averages /= use->calls;
    }
}

/* What the init use of a communicator tells about its other uses. */
static void note_init(struct ct_uses *uses, const struct ct_job *job)
{
    for (int i = 0; i < uses->n; i++) {
        const int init = ct_uses_find(uses, uses->uses[i].comm, CT_USE_INIT);

        uses->uses[i].only =
            (i == 0 || uses->uses[i - 1].comm != uses->uses[i].comm) &&
            (i + 1 == uses->n || uses->uses[i + 1].comm != uses->uses[i].comm);
        if (init != CT_NONE && job->nsteps > 0)
            uses->uses[i].init_bytes =
                uses->uses[init].bytes * uses->uses[init].broadcasts;
    }
}

static void fill(struct ct_uses *uses, const struct ct_job *job,
                 const struct entry *entries, int n)
{
    struct ct_use *use = NULL;

    for (int i = 0; i < n; i++) {
        const struct ct_usage *usage = &job->usages[entries[i].usage];

        if (i == 0 || entries[i].comm != entries[i - 1].comm ||
            entries[i].kind != entries[i - 1].kind) {
            if (use)
                finish_use(use);
            use = &uses->uses[uses->n++];
            *use = (struct ct_use){.comm = entries[i].comm,
                                   .nranks = job->comms[entries[i].comm].nranks,
                                   .kind = entries[i].kind,
                                   .sizes = uses->room + i,
                                   .p2p_inside = NAN,
                                   .gap_ratio = NAN,
                                   .turns = NAN,
                                   .family = CT_NONE};
        }
        add_usage(use, usage, calls_of(job, usage));
        uses->of_usage[entries[i].usage] = uses->n - 1;
    }
    if (use)
        finish_use(use);
    note_init(uses, job);
}

int ct_uses_gather(const struct ct_job *job, bool *exchanges,
                   struct ct_uses *uses)
{
    const size_t room = (size_t)job->nusages + 1;
    struct entry *entries = malloc(room * sizeof *entries);
    int n = 0;

    *uses = (struct ct_uses){.exchanges = exchanges,
                             .uses = malloc(room * sizeof *uses->uses),
                             .of_usage = malloc(room * sizeof *uses->of_usage),
                             .room = malloc(room * sizeof *uses->room)};
    if (!entries || !uses->uses || !uses->of_usage || !uses->room) {
        free(entries);
        ct_uses_release(uses);
        return -1;
    }
    for (int i = 0; i < job->nusages; i++) {
        const struct ct_usage *usage = &job->usages[i];

        uses->of_usage[i] = CT_NONE;
        if (usage->comm >= 0 && usage->calls > 0)
            entries[n++] = (struct entry){usage->comm, i,
                                          kind_of_usage(job, usage, exchanges)};
    }
    qsort(entries, (size_t)n, sizeof *entries, compare_entries);
    fill(uses, job, entries, n);
    free(entries);
    return 0;
}

void ct_uses_release(struct ct_uses *uses)
{
    free(uses->uses);
    free(uses->of_usage);
    free(uses->exchanges);
    free(uses->room);
    *uses = (struct ct_uses){0};
}

int ct_uses_find(const struct ct_uses *uses, int comm, enum ct_use_kind kind)
{
    int low = 0, high = uses->n;

    while (low < high) {
        const int middle = (low + high) / 2;
        const struct ct_use *use = &uses->uses[middle];

        if (use->comm < comm || (use->comm == comm && use->kind < kind))
            low = middle + 1;
        else
            high = middle;
    }
    return low < uses->n && uses->uses[low].comm == comm &&
                   uses->uses[low].kind == kind
               ? low
               : CT_NONE;
}
