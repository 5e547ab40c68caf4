#include <stdio.h>
#include <stdlib.h>

#include "findings/slow_link.h"

static void name_rank(const struct ct_case *c, int process, char *text,
                      size_t size)
{
    const struct ct_process *p = &c->trace->processes[process];

    snprintf(text, size, "rank %d (%.30s)", p->rank, p->host);
}

/* "ranks 4-7 (host1)", "rank 1 (host0) and rank 5 (host1)" */
static void name_way(const struct ct_case *c, const struct ct_way *way,
                     char *text, size_t size)
{
    const struct ct_comm *comm = &c->job->comms[way->comm];
    int *processes = malloc(((size_t)comm->nranks + 1) * sizeof *processes);
    const int n = processes ? ct_way_processes(c->job, way, processes) : 0;
    char ranks[60], first[60], second[60];

    *text = 0;
    if (n == 2) {
        name_rank(c, processes[0], first, sizeof first);
        name_rank(c, processes[1], second, sizeof second);
        snprintf(text, size, "%s and %s", first, second);
    } else if (n > 0) {
        const struct ct_process *p = &c->trace->processes[processes[0]];

        ct_ranks_text(c->trace, comm, ranks, sizeof ranks);
        if (comm->nnodes > 1)
            snprintf(text, size, "ranks %s", ranks);
        else
            snprintf(text, size, "ranks %s (%.30s)", ranks, p->host);
    }
    free(processes);
}

static void name_shared(const struct ct_case *c, const struct ct_slow *slow,
                        char *text, size_t size)
{
    const struct ct_shared *shared = &slow->shared;

    switch (shared->kind) {
    case CT_SHARED_RANK:
        name_rank(c, shared->a, text, size);
        break;
    case CT_SHARED_NODE:
        snprintf(text, size, "host %.50s", c->job->node_names[shared->a]);
        break;
    case CT_SHARED_NODES:
        snprintf(text, size, "hosts %.24s and %.24s",
                 c->job->node_names[shared->a], c->job->node_names[shared->b]);
        break;
    default:
        name_way(c, slow->worst, text, size);
    }
}

static void say_times(const struct ct_case *c, const struct ct_way *way,
                      struct ct_finding_row *row)
{
    const struct ct_usage *u = &c->job->usages[way->top];
    char size[24], link[40];

    ct_bytes_text((double)u->bytes, size, sizeof size);
    ct_link_text(u->link, u->speed, link, sizeof link);
    ct_finding_say(row, "%s of %s over %s: %s us",
                   ct_is_p2p(u->base) ? "send/recv" : ct_op_infos[u->base].name,
                   size, link, CT_NUM(way->own_ns / 1e3, 3));
    if (way->by_reference)
        ct_finding_say(row, ", where it takes %s us in the reference",
                       CT_NUM(way->usual_ns / 1e3, 3));
    else
        ct_finding_say(row, ", where %d like it take %s us", way->alike - 1,
                       CT_NUM(way->usual_ns / 1e3, 3));
}

static void advise(const struct ct_slow *slow, struct ct_finding_row *row)
{
    snprintf(row->advice, sizeof row->advice, "%s",
             slow->worst->network
                 ? "look at the ports, cables and switches between these: "
                   "rate, errors, other traffic; SLOW_PORT and LINKS say what "
                   "is known of them"
                 : "look at NVLink or PCIe there: nvidia-smi nvlink -s and -e, "
                   "width and rate of PCIe, clocks of the GPUs");
}

void ct_slow_tell(const struct ct_case *c, const struct ct_slow *slow,
                  struct ct_finding_row *row)
{
    const char *others = slow->worst->by_reference ? "in the reference"
                                                   : "the same ones of others";
    char way[160];

    name_shared(c, slow, row->who, sizeof row->who);
    name_way(c, slow->worst, way, sizeof way);
    if (slow->ways == 1)
        ct_finding_say(row, "transfers between %s take longer than %s: ", way,
                       others);
    else if (slow->shared.kind == CT_SHARED_NOTHING)
        ct_finding_say(
            row,
            "transfers of %d groups or pairs of ranks take longer than %s; "
            "worst between %s: ",
            slow->ways, others, way);
    else
        ct_finding_say(
            row,
            "transfers of %d groups or pairs of ranks take longer than %s, and "
            "what they share is %s; worst between %s: ",
            slow->ways, others, row->who, way);
    say_times(c, slow->worst, row);
    ct_finding_say(
        row,
        "; waiting for late ranks is not in it. %s ms of each %s are lost, "
        "at most %s",
        CT_NUM(row->loss_ms, 3), row->per, CT_NUM(row->loss_high_ms, 3));
    if (slow->kept_ns > 0)
        ct_finding_say(
            row, "; others that do the same work wait %s ms for these ranks",
            CT_NUM(slow->kept_ns / 1e6, 3));
    else
        ct_finding_say(row, "; how much of it computing hides is not known");
    advise(slow, row);
}
