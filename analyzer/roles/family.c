#include "roles/family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool within(double a, double b, double factor)
{
    return a <= b * factor && b <= a * factor;
}

/* How one process that has a trace holds the communicator; NULL: none has. */
static const struct ct_comm_row *any_row(const struct ct_trace *trace,
                                         const struct ct_comm *comm,
                                         const struct ct_process **process_p)
{
    for (int i = 0; i < comm->nranks; i++) {
        const struct ct_member *member = &comm->members[i];

        if (member->process == CT_NONE)
            continue;
        *process_p = &trace->processes[member->process];
        return &(*process_p)->comms[member->row];
    }
    return NULL;
}

/* One ncclCommSplit made both. */
static bool same_split(const struct ct_trace *trace, const struct ct_comm *a,
                       const struct ct_comm *b)
{
    const struct ct_process *pa = NULL, *pb = NULL;
    const struct ct_comm_row *ra = any_row(trace, a, &pa);
    const struct ct_comm_row *rb = any_row(trace, b, &pb);

    if (!ra || !rb || ra->parent == CT_NONE || rb->parent == CT_NONE)
        return false;
    return ra->child > 0 && ra->child == rb->child && ra->color != rb->color &&
           pa->comms[ra->parent].comm == pb->comms[rb->parent].comm;
}

static bool alike(const struct ct_use *a, const struct ct_use *b)
{
    const struct ct_use_size *sa = &a->sizes[0];
    const struct ct_use_size *sb = &b->sizes[0];

    if (sa->base != sb->base || !within(a->calls, b->calls, 2))
        return false;
    if (within((double)sa->bytes, (double)sb->bytes, 1.01))
        return within(sa->calls, sb->calls, 2);
    return abs(a->nsizes - b->nsizes) <= 2 &&
           within(sa->calls, sb->calls, 1.5) && within(a->bytes, b->bytes, 8);
}

static bool overlaps(const struct ct_family *family, const struct ct_comm *comm)
{
    for (int i = 0; i < comm->nranks; i++)
        if (comm->members[i].process != CT_NONE &&
            family->has[comm->members[i].process])
            return true;
    return false;
}

static bool belongs(const struct ct_trace *trace, const struct ct_job *job,
                    const struct ct_uses *uses, const struct ct_family *family,
                    const struct ct_use *use)
{
    const struct ct_use *first = &uses->uses[family->first];
    const struct ct_comm *comm = &job->comms[use->comm];

    if (first->nranks != use->nranks || overlaps(family, comm))
        return false;
    return alike(first, use) ||
           same_split(trace, &job->comms[first->comm], comm);
}

static void add_mean(double *mean, double value, int n)
{
    if (isnan(value))
        return;
    *mean = isnan(*mean) ? value : *mean + (value - *mean) / n;
}

static void join(const struct ct_job *job, struct ct_family *family,
                 struct ct_use *use, int index)
{
    const struct ct_comm *comm = &job->comms[use->comm];
    struct ct_use *mean = &family->mean;

    use->family = index;
    for (int i = 0; i < comm->nranks; i++)
        if (comm->members[i].process != CT_NONE)
            family->has[comm->members[i].process] = true;
    if (family->n++ == 0) {
        *mean = *use;
        return;
    }
    add_mean(&mean->calls, use->calls, family->n);
    add_mean(&mean->bytes, use->bytes, family->n);
    add_mean(&mean->reduces, use->reduces, family->n);
    add_mean(&mean->scatters, use->scatters, family->n);
    add_mean(&mean->gathers, use->gathers, family->n);
    add_mean(&mean->broadcasts, use->broadcasts, family->n);
    add_mean(&mean->averages, use->averages, family->n);
    add_mean(&mean->init_bytes, use->init_bytes, family->n);
    add_mean(&mean->p2p_inside, use->p2p_inside, family->n);
    add_mean(&mean->gap_ratio, use->gap_ratio, family->n);
    add_mean(&mean->turns, use->turns, family->n);
    mean->one_pipeline = mean->one_pipeline || use->one_pipeline;
}

static int family_for(const struct ct_trace *trace, const struct ct_job *job,
                      const struct ct_uses *uses, struct ct_families *families,
                      int use)
{
    struct ct_family *family;

    for (int i = 0; i < families->n; i++)
        if (belongs(trace, job, uses, &families->families[i], &uses->uses[use]))
            return i;
    family = &families->families[families->n];
    *family = (struct ct_family){.first = use};
    family->has = calloc((size_t)trace->nprocesses + 1, sizeof *family->has);
    return family->has ? families->n++ : CT_NONE;
}

int ct_families_find(const struct ct_trace *trace, const struct ct_job *job,
                     struct ct_uses *uses, struct ct_families *families)
{
    *families = (struct ct_families){
        0, calloc((size_t)uses->n + 1, sizeof *families->families)};
    if (!families->families)
        return -1;
    for (int i = 0; i < uses->n; i++) {
        int index;

        if (uses->uses[i].kind != CT_USE_LARGE)
            continue;
        index = family_for(trace, job, uses, families, i);
        if (index == CT_NONE) {
            ct_families_release(families);
            return -1;
        }
        join(job, &families->families[index], &uses->uses[i], index);
    }
    return 0;
}

void ct_families_release(struct ct_families *families)
{
    for (int i = 0; i < families->n; i++)
        free(families->families[i].has);
    free(families->families);
    *families = (struct ct_families){0};
}

bool ct_families_cross(const struct ct_job *job, const struct ct_uses *uses,
                       const struct ct_family *a, const struct ct_family *b)
{
    const struct ct_comm *ca = &job->comms[uses->uses[a->first].comm];
    const struct ct_comm *cb = &job->comms[uses->uses[b->first].comm];
    int common = 0;

    /* Ranks without a trace, which may be nearly all, are passed over. */
    for (int i = 0; i < ca->nranks && common <= 1; i++)
        for (int k = 0; k < cb->nranks; k++) {
            if (ca->members[i].process == CT_NONE)
                break;
            common += ca->members[i].process == cb->members[k].process;
        }
    return common <= 1;
}
