#include "roles/layout.h"

#include <math.h>

static bool labelled(const struct ct_view *view, const struct ct_roles *roles,
                     const struct ct_family *family, enum ct_role_id id)
{
    (void)view;
    return roles->roles[family->first].role == id;
}

/* Ranks along the axis of role id: the family that moves most, times another
 * of that role that lies across it (shards and replicas). 0: no such label. */
static int axis(const struct ct_view *view, const struct ct_roles *roles,
                enum ct_role_id id, const struct ct_family **main_p)
{
    const struct ct_families *all = view->families;
    const struct ct_family *main_family = NULL;
    int ranks;

    for (int i = 0; i < all->n; i++) {
        const struct ct_family *family = &all->families[i];

        if (labelled(view, roles, family, id) &&
            (!main_family || family->mean.bytes > main_family->mean.bytes))
            main_family = family;
    }
    *main_p = main_family;
    if (!main_family)
        return 0;
    ranks = main_family->mean.nranks;
    for (int i = 0; i < all->n; i++) {
        const struct ct_family *family = &all->families[i];

        if (family != main_family && labelled(view, roles, family, id) &&
            ct_families_cross(view->job, view->uses, main_family, family))
            return ranks * family->mean.nranks;
    }
    return ranks;
}

static bool all_labelled(const struct ct_roles *roles)
{
    for (int i = 0; i < roles->nroles; i++)
        if (roles->roles[i].role == CT_ROLE_UNKNOWN)
            return false;
    return true;
}

/* An axis without traffic has one rank, if the others fill the world and
 * nothing is left unexplained. */
static void complete(const struct ct_view *view, struct ct_roles *roles)
{
    const int product = (roles->tp ? roles->tp : 1) *
                        (roles->pp ? roles->pp : 1) *
                        (roles->dp ? roles->dp : 1);

    if (product != view->job->world_size || !all_labelled(roles))
        return;
    roles->tp = roles->tp ? roles->tp : 1;
    roles->pp = roles->pp ? roles->pp : 1;
    roles->dp = roles->dp ? roles->dp : 1;
}

static bool pipeline_labelled(const struct ct_view *view,
                              const struct ct_roles *roles)
{
    for (int i = 0; i < roles->nroles; i++)
        if (view->uses->uses[i].kind == CT_USE_P2P &&
            roles->roles[i].role == CT_ROLE_PP)
            return true;
    return false;
}

/* Tensor-parallel calls per layer and micro-batch: 4 all-reduces, or with
 * sequence parallelism 6 gathers and 4 scatters (Megatron-LM). */
static int layers(const struct ct_use *use, double micro_batches)
{
    double calls = 0, each = 4;
    double n;

    if (use->gathers + use->scatters > .5) {
        calls = (use->gathers + use->scatters) * use->calls;
        each = 10;
    } else if (use->nsizes > 0) {
        calls = use->sizes[0].calls;
    }
    n = calls / each / micro_batches;
    return n > .5 && fabs(n - round(n)) < .02 ? (int)round(n) : 0;
}

void ct_layout_derive(const struct ct_view *view, struct ct_roles *roles)
{
    const struct ct_family *tensor, *data;
    const double m = view->chains->micro_batches;

    roles->tp = axis(view, roles, CT_ROLE_TP, &tensor);
    roles->dp = axis(view, roles, CT_ROLE_DP, &data);
    if (pipeline_labelled(view, roles)) {
        roles->pp = view->chains->stages;
        roles->micro_batches = (int)round(m);
    }
    complete(view, roles);
    if (tensor && roles->micro_batches > 0)
        roles->layers_per_stage = layers(&tensor->mean, m);
}
