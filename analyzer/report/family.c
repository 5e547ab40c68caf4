#include "report/family.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/units.h"
#include "trace/links.h"

/* Order of usages that puts those of a family side by side, and within it
 * those of a communicator. */
static int compare_keys(const struct view *view, int a, int b)
{
    const struct ct_usage *u = &view->job->usages[a];
    const struct ct_usage *v = &view->job->usages[b];
    const struct ct_comm *c = &view->job->comms[u->comm];
    const struct ct_comm *d = &view->job->comms[v->comm];
    const struct ct_role *r = view_role(view, a), *s = view_role(view, b);
    int order;

    if (!r != !s)
        return r ? -1 : 1;
    if (r && r->role != s->role)
        return r->role < s->role ? -1 : 1;
    if (r && r->best != s->best)
        return r->best < s->best ? -1 : 1;
    if (r && r->second != s->second && r->role == CT_ROLE_UNKNOWN)
        return r->second < s->second ? -1 : 1;
    order = r ? strcmp(r->use, s->use) : 0;
    if (order)
        return order;
    order = strcmp(view_op_name(u->base), view_op_name(v->base));
    if (order)
        return order;
    if (c->nranks != d->nranks)
        return c->nranks < d->nranks ? -1 : 1;
    if (u->link != v->link)
        return u->link < v->link ? -1 : 1;
    if ((c->nknown < c->nranks) != (d->nknown < d->nranks))
        return c->nknown < c->nranks ? 1 : -1;
    if (c->nnodes != d->nnodes)
        return c->nnodes < d->nnodes ? -1 : 1;
    return (c->ndomains > d->ndomains) - (c->ndomains < d->ndomains);
}

static int compare_usages(const void *a, const void *b, void *view)
{
    int x = *(const int *)a, y = *(const int *)b;
    int order = compare_keys(view, x, y);
    int comm_x = ((const struct view *)view)->job->usages[x].comm;
    int comm_y = ((const struct view *)view)->job->usages[y].comm;

    if (order)
        return order;
    if (comm_x != comm_y)
        return comm_x < comm_y ? -1 : 1;
    return (x > y) - (x < y);
}

static void join_reasons(struct family *f, const struct ct_role *role)
{
    size_t used = 0;

    for (int i = 0; i < CT_REASONS; i++)
        if (role->reasons[i][0])
            used +=
                (size_t)snprintf(f->reasons + used, sizeof f->reasons - used,
                                 "%s%s", used ? "; " : "", role->reasons[i]);
    snprintf(f->contradiction, sizeof f->contradiction, "%s",
             role->contradiction);
    if (role->role == CT_ROLE_UNKNOWN)
        snprintf(f->decides, sizeof f->decides, "%s", role->decides);
}

static void start_family(struct family *f, const struct view *view, int usage)
{
    const struct ct_usage *u = &view->job->usages[usage];
    const struct ct_comm *comm = &view->job->comms[u->comm];
    int *ranks = calloc((size_t)comm->nranks + 1, sizeof *ranks);

    f->given = view_role(view, usage);
    view_role_name(f->role, sizeof f->role, f->given);
    f->use = f->given ? f->given->use : NULL;
    f->confidence = f->given ? f->given->confidence : NAN;
    f->base = u->base;
    f->op = view_op_name(u->base);
    f->link_id = u->link;
    f->link = ct_link_names[u->link];
    f->network = ct_link_is_network(u->link);
    f->nranks = comm->nranks;
    f->nodes = comm->nnodes;
    f->domains = comm->ndomains;
    f->missing = comm->nknown < comm->nranks;
    snprintf(f->nodes_text, sizeof f->nodes_text, "%d%s", f->nodes,
             f->missing ? "+" : "");
    f->speed = CT_NONE;
    f->top_us = NAN;
    if (f->given)
        join_reasons(f, f->given);
    if (ranks)
        units_ranks(f->first_ranks, sizeof f->first_ranks, ranks,
                    view_comm_ranks(view->trace, comm, ranks));
    free(ranks);
}

struct volume { /* while a family is summed up */
    double bytes, most;
};

/* The largest message says most about bandwidth. Without clean samples a time
 * may hide a part of the transfer; of a group it is at least its share. */
static void note_top(struct family *f, const struct ct_usage *u)
{
    if (u->median_ns == CT_NO_TIME || u->median_ns <= 0 ||
        (!u->nsamples && !u->grouped) || u->bytes < f->top_bytes)
        return;
    if (u->bytes > f->top_bytes || isnan(f->top_us)) {
        f->top_us = (double)u->median_ns / 1e3;
        f->top_shared = true;
    }
    f->top_bytes = u->bytes;
    f->top_shared = f->top_shared && !u->nsamples;
}

/* One group's median may be an outlier: take what the model says of all. */
static void settle_top(struct family *f, const struct ct_model *model)
{
    int nranks = f->base == CT_OP_SEND ? 2 : f->nranks;

    for (int i = 0; i < model->npredictions && !isnan(f->top_us); i++) {
        const struct ct_prediction *p = &model->predictions[i];

        if (p->link == f->link_id && p->base == f->base &&
            p->nranks == nranks && p->bytes == f->top_bytes &&
            p->observed_us > 0)
            f->top_us = p->observed_us;
    }
}

static void add_usage(struct family *f, const struct view *view, int usage,
                      struct volume *volume)
{
    const struct ct_usage *u = &view->job->usages[usage];
    const struct view_cost *cost = &view->costs[usage];
    const struct ct_role *role = view_role(view, usage);

    f->calls += cost->calls;
    volume->bytes += cost->bytes;
    f->wire_bytes += cost->bytes * ct_wire_factor(u->base, f->nranks);
    if (!isnan(cost->transfer_ms)) {
        f->timed = true;
        f->transfer_ms += cost->transfer_ms;
        f->wait_ms += cost->wait_ms;
        if (u->apart > 0 && !u->nsamples)
            f->apart_ms += cost->transfer_ms;
    }
    if (cost->bytes > volume->most) {
        volume->most = cost->bytes;
        f->main_bytes = u->bytes;
    }
    if (role && role->confidence < f->confidence)
        f->confidence = role->confidence;
    f->speed = ct_slower(f->speed, u->speed);
    note_top(f, u);
}

static void finish_family(struct family *f, const struct view *view,
                          const struct volume *volume)
{
    const int groups = f->counted ? f->counted : 1;
    char link[40];

    ct_link_text(f->link_id, f->speed, link, sizeof link);
    snprintf(f->where, sizeof f->where, "%s%s", link,
             f->missing && f->link_id != CT_LINK_UNKNOWN ? "?" : "");
    f->calls /= groups;
    f->transfer_ms /= groups;
    f->wait_ms /= groups;
    f->apart_ms /= groups;
    f->wire_bytes /= groups;
    f->bytes = (uint64_t)(volume->bytes / groups + .5);
    f->share_percent =
        (f->transfer_ms + f->wait_ms) / view_period_ms(view) * 100;
    snprintf(f->groups, sizeof f->groups, "%d x %d", f->ngroups, f->nranks);
    settle_top(f, view->model);
}

/* order[0..n) begins with the usages of one family; returns how many. */
static int build_one(struct family *f, const struct view *view,
                     const int *order, int n)
{
    struct volume volume = {0, 0};
    int last_comm = CT_NONE, i;

    start_family(f, view, order[0]);
    for (i = 0; i < n && compare_keys(view, order[0], order[i]) == 0; i++) {
        int comm = view->job->usages[order[i]].comm;

        if (comm != last_comm) {
            f->ngroups++;
            f->counted += view->costs[order[i]].ranks > 0;
            f->members += view_chosen_members(view, comm);
        }
        last_comm = comm;
        add_usage(f, view, order[i], &volume);
    }
    finish_family(f, view, &volume);
    return i;
}

static int compare_families(const void *a, const void *b)
{
    const struct family *f = a, *g = b;
    double x = f->transfer_ms + f->wait_ms, y = g->transfer_ms + g->wait_ms;

    if (x != y)
        return x > y ? -1 : 1;
    if (strcmp(f->role, g->role) != 0)
        return strcmp(f->role, g->role);
    if (f->nranks != g->nranks)
        return f->nranks < g->nranks ? -1 : 1;
    return (f->link_id > g->link_id) - (f->link_id < g->link_id);
}

int families_build(struct families *families, const struct view *view)
{
    int n = view->job->nusages;
    int *order = calloc((size_t)n + 1, sizeof *order);

    families->n = 0;
    families->rows = calloc((size_t)n + 1, sizeof *families->rows);
    if (!order || !families->rows) {
        free(order);
        families_release(families);
        return -1;
    }
    for (int i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, (size_t)n, sizeof *order, compare_usages,
            (void *)(uintptr_t)view);
    for (int i = 0; i < n; families->n++)
        i += build_one(&families->rows[families->n], view, order + i, n - i);
    qsort(families->rows, (size_t)families->n, sizeof *families->rows,
          compare_families);
    free(order);
    return 0;
}

void families_release(struct families *families)
{
    free(families->rows);
    families->rows = NULL;
    families->n = 0;
}

const struct family *families_find(const struct families *families,
                                   enum ct_role_id role, enum ct_op base)
{
    const struct family *found = NULL;

    for (int i = 0; i < families->n; i++) {
        const struct family *f = &families->rows[i];

        if (!f->given || f->given->role != role ||
            (base != CT_OP_COUNT && f->base != base))
            continue;
        if (!found || f->wire_bytes > found->wire_bytes)
            found = f;
    }
    return found;
}
