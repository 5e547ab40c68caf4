#include "roles/roles.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roles/chains.h"
#include "roles/evidence.h"
#include "roles/family.h"
#include "roles/layout.h"
#include "roles/order.h"
#include "roles/use.h"

static const char *const use_names[CT_USE_KINDS] = {
    [CT_USE_LARGE] = "large", [CT_USE_SMALL] = "small",
    [CT_USE_P2P] = "p2p",     [CT_USE_EXCHANGE] = "exchange",
    [CT_USE_INIT] = "init",
};

/* Two ranks of the communicator are stages of one pipeline. */
static bool joins_stages(const struct ct_chains *chains,
                         const struct ct_comm *comm, int *seen)
{
    for (int i = 0; i < comm->nranks; i++) {
        const int process = comm->members[i].process;

        if (process == CT_NONE || chains->stage[process] == CT_NONE)
            continue;
        if (seen[chains->chain[process]] == comm->nranks)
            return true;
        seen[chains->chain[process]] = comm->nranks;
    }
    return false;
}

static bool mark_pipelines(const struct ct_view *view, struct ct_uses *uses)
{
    const size_t room = (size_t)view->chains->n + 1;
    int *seen = malloc(room * sizeof *seen);

    if (!seen)
        return false;
    for (int i = 0; i < uses->n; i++) {
        struct ct_use *use = &uses->uses[i];

        memset(seen, 0, room * sizeof *seen);
        use->one_pipeline =
            joins_stages(view->chains, &view->job->comms[use->comm], seen);
    }
    free(seen);
    return true;
}

static void say_what_decides(const struct ct_view *view,
                             const struct ct_use *use, struct ct_role *role)
{
    const char *text = "";

    if (role->role != CT_ROLE_UNKNOWN)
        return;
    if (use->kind == CT_USE_EXCHANGE)
        text = "expert parallelism varies its sizes from call to call, "
               "sequence parallelism does not";
    else if (use->kind == CT_USE_P2P)
        text = "a whole step in which the first stage sends before it "
               "receives";
    else if (view->job->nsteps == 0)
        text = "training steps: how often it is called in each, and where";
    else if (use->one_pipeline)
        text = "how its size compares with the shared embedding";
    else if (view->chains->npaths == 0)
        text = "more than one bucket size, a pipeline's payload to compare "
               "with, or the call site";
    else
        text = "the call site, or a step with more micro-batches";
    snprintf(role->decides, sizeof role->decides, "%s", text);
}

/* What a group does beside others of the same ranks supports its label. */
static void add_contrast(const struct ct_view *view,
                         const struct ct_family *family,
                         const struct ct_role *labels,
                         struct ct_verdict *verdict)
{
    const double calls = family->mean.calls;

    for (int i = 0; i < view->families->n; i++) {
        const struct ct_family *other = &view->families->families[i];

        if (other == family || labels[i].role == CT_ROLE_UNKNOWN ||
            !ct_families_cross(view->job, view->uses, family, other))
            continue;
        if (labels[i].role == CT_ROLE_DP && calls > 1.5 * other->mean.calls &&
            family->mean.sizes[0].calls > .7 * calls) {
            ct_evidence_add(verdict, (struct ct_weights){.tp = 1.5, .dp = -1},
                            "gradients go across its groups, in %s call%s "
                            "beside its %s",
                            CT_NUM(other->mean.calls, 3),
                            ct_plural(other->mean.calls), CT_NUM(calls, 4));
            return;
        }
        if (labels[i].role == CT_ROLE_TP && calls * 1.5 < other->mean.calls) {
            ct_evidence_add(verdict, (struct ct_weights){.tp = -1, .dp = 1},
                            "tensor parallelism lies across its groups, with "
                            "%s calls beside its %s",
                            CT_NUM(other->mean.calls, 4), CT_NUM(calls, 3));
            return;
        }
    }
}

/* Two axes cannot both be tensor parallel: the less sure one steps back. */
static void settle_axes(const struct ct_view *view, struct ct_role *labels)
{
    const struct ct_families *all = view->families;

    for (int i = 0; i < all->n; i++)
        for (int k = 0; k < all->n; k++)
            if (i != k && labels[i].role == CT_ROLE_TP &&
                labels[k].role == CT_ROLE_TP &&
                labels[i].confidence < labels[k].confidence &&
                ct_families_cross(view->job, view->uses, &all->families[i],
                                  &all->families[k])) {
                labels[i].role = CT_ROLE_UNKNOWN;
                snprintf(labels[i].contradiction,
                         sizeof labels[i].contradiction,
                         "another axis is tensor parallel with more "
                         "certainty");
            }
}

static struct ct_role *label_families(const struct ct_view *view)
{
    const int n = view->families->n;
    struct ct_role *labels = calloc((size_t)n + 1, sizeof *labels);
    struct ct_verdict *verdicts = calloc((size_t)n + 1, sizeof *verdicts);

    for (int i = 0; labels && verdicts && i < n; i++) {
        ct_evidence_large(view, &view->families->families[i], &verdicts[i]);
        ct_evidence_judge(view, &verdicts[i], &labels[i]);
    }
    for (int i = 0; labels && verdicts && i < n; i++) {
        struct ct_role label = {0};

        add_contrast(view, &view->families->families[i], labels, &verdicts[i]);
        ct_evidence_judge(view, &verdicts[i], &label);
        if (label.role == labels[i].role || labels[i].role == CT_ROLE_UNKNOWN)
            labels[i] = label;
    }
    if (labels && verdicts)
        settle_axes(view, labels);
    if (!verdicts) {
        free(labels);
        labels = NULL;
    }
    free(verdicts);
    return labels;
}

static void label_by(const struct ct_view *view, const struct ct_use *use,
                     void (*evidence)(const struct ct_view *,
                                      const struct ct_use *,
                                      struct ct_verdict *),
                     struct ct_role *role)
{
    struct ct_verdict verdict;

    evidence(view, use, &verdict);
    ct_evidence_judge(view, &verdict, role);
}

/* Traffic before the steps serves what the communicator is for. */
static void label_init(const struct ct_view *view, const struct ct_use *use,
                       struct ct_role *role, const struct ct_role *labels)
{
    const int large = ct_uses_find(view->uses, use->comm, CT_USE_LARGE);
    const int family =
        large == CT_NONE ? CT_NONE : view->uses->uses[large].family;
    char size[32];

    ct_bytes_text(use->bytes, size, sizeof size);
    snprintf(role->reasons[0], sizeof role->reasons[0],
             "%s call%s with %s, none in a step", CT_NUM(use->calls, 4),
             ct_plural(use->calls), size);
    role->best = CT_ROLE_CONTROL;
    if (family != CT_NONE && labels[family].role != CT_ROLE_UNKNOWN) {
        role->role = role->best = labels[family].role;
        role->confidence = labels[family].confidence;
        snprintf(role->reasons[1], sizeof role->reasons[1],
                 "the communicator is %s's", ct_role_names[role->role]);
    } else if (use->bytes / fmax(use->calls, 1) <= 4096) {
        role->role = CT_ROLE_CONTROL;
        role->confidence = .8;
    } else {
        role->confidence = .5;
    }
}

static void label_use(const struct ct_view *view, const struct ct_use *use,
                      const struct ct_role *labels, struct ct_role *role)
{
    if (use->kind == CT_USE_LARGE)
        *role = labels[use->family];
    role->comm = use->comm;
    role->use = use->only ? "all" : use_names[use->kind];
    switch (use->kind) {
    case CT_USE_SMALL:
        label_by(view, use, ct_evidence_small, role);
        break;
    case CT_USE_P2P:
        label_by(view, use, ct_evidence_p2p, role);
        break;
    case CT_USE_EXCHANGE:
        label_by(view, use, ct_evidence_exchange, role);
        break;
    case CT_USE_INIT:
        label_init(view, use, role, labels);
        break;
    case CT_USE_LARGE:
    case CT_USE_KINDS:
        break;
    }
    say_what_decides(view, use, role);
}

static struct ct_roles *label_all(const struct ct_view *view)
{
    struct ct_roles *roles = calloc(1, sizeof *roles);
    struct ct_role *labels = label_families(view);

    if (roles)
        roles->roles = calloc((size_t)view->uses->n + 1, sizeof *roles->roles);
    if (!roles || !roles->roles || !labels) {
        ct_roles_free(roles);
        roles = NULL;
    } else {
        roles->nroles = view->uses->n;
        for (int i = 0; i < roles->nroles; i++)
            label_use(view, &view->uses->uses[i], labels, &roles->roles[i]);
        ct_layout_derive(view, roles);
    }
    free(labels);
    return roles;
}

struct ct_roles *ct_roles_build(const struct ct_trace *trace,
                                const struct ct_job *job)
{
    struct ct_uses uses = {0};
    struct ct_chains chains = {0};
    struct ct_families families = {0};
    const struct ct_view view = {trace, job, &uses, &chains, &families};
    struct ct_roles *roles = NULL;
    bool *exchanges = ct_exchanges(trace, job);

    if (!exchanges || ct_uses_gather(job, exchanges, &uses) != 0)
        return NULL;
    if (ct_chains_find(trace, job, uses.exchanges, &chains) == 0 &&
        mark_pipelines(&view, &uses) &&
        ct_order_measure(trace, job, &uses) == 0 &&
        ct_families_find(trace, job, &uses, &families) == 0)
        roles = label_all(&view);
    if (roles) {
        roles->of_usage = uses.of_usage;
        uses.of_usage = NULL;
    }
    ct_families_release(&families);
    ct_chains_release(&chains);
    ct_uses_release(&uses);
    return roles;
}

void ct_roles_free(struct ct_roles *roles)
{
    if (!roles)
        return;
    free(roles->roles);
    free(roles->of_usage);
    free(roles);
}
