/*
 * TP_CROSSES_NODES in words: who, what it costs, what to do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/crossing.h"

static const char *const source_words[CT_SOURCE_COUNT] = {
    [CT_SOURCE_FIT] = "this job's own measurements",
    [CT_SOURCE_REFERENCE] = "the reference trace",
    [CT_SOURCE_PRIOR] = "published figures",
};

/* Name of a node, with its identity where another node has that name, too. */
static void name_host(const struct ct_case *c, const struct ct_process *process,
                      char *text, size_t size)
{
    const char *name = c->job->node_names[process->node];
    int same = 0;

    for (int node = 0; node < c->job->nnodes; node++)
        same += strcmp(c->job->node_names[node], name) == 0;
    if (same > 1 && process->host_id)
        snprintf(text, size, "%.14s:%.14s", name, process->host_id);
    else
        snprintf(text, size, "%.30s", name);
}

static void name_hosts(const struct ct_case *c, const struct ct_comm *comm,
                       char *text, size_t size)
{
    size_t used = 0;
    int last = CT_NONE;

    *text = 0;
    for (int node = 0; node < c->job->nnodes; node++)
        for (int i = 0; i < comm->nranks; i++) {
            const int id = comm->members[i].process;
            char name[32];

            if (id == CT_NONE || c->trace->processes[id].node != node ||
                node == last)
                continue;
            last = node;
            if (used + 40 > size) {
                snprintf(text + used, size - used, ", ...");
                return;
            }
            name_host(c, &c->trace->processes[id], name, sizeof name);
            used += (size_t)snprintf(text + used, size - used, "%s%s",
                                     used ? ", " : "", name);
        }
}

/* Ranks in the smallest NVLink domain of the job. */
static int smallest_domain(const struct ct_case *c)
{
    int *ranks = calloc((size_t)c->job->ndomains + 1, sizeof *ranks);
    int least = 0;

    if (!ranks)
        return 1;
    for (int i = 0; i < c->job->nprocesses; i++) {
        const int domain = c->trace->processes[c->job->processes[i]].domain;

        if (domain >= 0 && domain < c->job->ndomains)
            ranks[domain]++;
    }
    for (int i = 0; i < c->job->ndomains; i++)
        if (ranks[i] > 0 && (least == 0 || ranks[i] < least))
            least = ranks[i];
    free(ranks);
    return least > 0 ? least : 1;
}

static int largest_divisor(int n, int limit)
{
    int best = 1;

    for (int i = 1; i <= n && i <= limit; i++)
        if (n % i == 0)
            best = i;
    return best;
}

void ct_crossing_advise(const struct ct_case *c, int nranks,
                        struct ct_finding_row *row)
{
    const int room = smallest_domain(c);
    const int fits = largest_divisor(nranks, room);
    const int stages = c->roles->pp > 0 ? c->roles->pp : 1;

    if (fits == nranks)
        snprintf(row->advice, sizeof row->advice,
                 "TP=%d fits into one domain of %d GPUs: order the ranks so "
                 "that each tensor-parallel group stays inside one, and let "
                 "PP or DP cross",
                 nranks, room);
    else if (fits > 1)
        snprintf(row->advice, sizeof row->advice,
                 "use TP=%d x PP=%d instead of TP=%d%s: TP inside a domain of "
                 "%d GPUs, PP between them, with at least %d micro-batches",
                 fits, stages * (nranks / fits), nranks,
                 stages > 1 ? " with the pipeline that there is" : "", room,
                 4 * stages * (nranks / fits));
    else
        snprintf(row->advice, sizeof row->advice,
                 "no domain holds 2 of its ranks: use PP=%d instead of TP=%d, "
                 "or machines with several GPUs",
                 stages * nranks, nranks);
}

void ct_crossing_tell(const struct ct_case *c, const struct ct_price *price,
                      struct ct_finding_row *row)
{
    const struct ct_comm *comm = &c->job->comms[row->comm];
    char ranks[60], hosts[90], bytes[24], more[40] = "";
    char more_of_step[80] = "", doubt[160] = "";

    ct_ranks_text(c->trace, comm, ranks, sizeof ranks);
    name_hosts(c, comm, hosts, sizeof hosts);
    ct_bytes_text(price->top_bytes, bytes, sizeof bytes);
    if (row->groups > 1)
        snprintf(more, sizeof more, ", the worst of %d such groups,",
                 row->groups);
    if (row->stretch > 1.01)
        snprintf(more_of_step, sizeof more_of_step,
                 " of the step, %s of it to fill and drain the pipeline",
                 CT_NUM(row->loss_ms * (1 - 1 / row->stretch), 3));
    if (price->prior_off > 1)
        snprintf(doubt, sizeof doubt,
                 ". Those do not describe this machine, whose network takes "
                 "%s times as long: measure a sweep inside a node and give "
                 "it as --reference",
                 CT_NUM(price->prior_off, 2));
    if (!price->timed) {
        snprintf(row->text, sizeof row->text,
                 "TP=%d: the group of ranks %s%s spans %d NVLink domains "
                 "(%s); none of its calls was timed on the GPU",
                 comm->nranks, ranks, more, comm->ndomains, hosts);
        return;
    }
    snprintf(row->text, sizeof row->text,
             "TP=%d: the group of ranks %s%s spans %d NVLink domains (%s); its "
             "%s call%s, mostly %s of %s, take %s ms per %s, inside one "
             "%s ms by %s: %s ms lost [%s, %s]%s%s",
             comm->nranks, ranks, more, comm->ndomains, hosts,
             CT_NUM(price->calls, 4), ct_plural(price->calls),
             ct_op_infos[price->top_base].name, bytes,
             CT_NUM(row->observed_ms, 3), row->per,
             CT_NUM(row->predicted_ms, 3), source_words[row->source],
             CT_NUM(row->loss_ms, 3), CT_NUM(row->loss_low_ms, 3),
             CT_NUM(row->loss_high_ms, 3), more_of_step, doubt);
}
