/* What NCCL's profiler said of a communicator: it counts hosts that are joined
 * by NVLink as one node. */
#include <stdio.h>

#include "trace/links.h"

static int nodes_of(const struct ct_process *p, const struct ct_comm_row *comm)
{
    int n,
        i = ct_rows_of_comm(p->nccl.comms, p->nccl.ncomms,
                            sizeof(*p->nccl.comms), (int)(comm - p->comms), &n);

    for (; n > 0; n--, i++)
        if (p->nccl.comms[i].plugin)
            return p->nccl.comms[i].nodes;
    return CT_NONE;
}

bool ct_link_by_plugin(const struct ct_ends *ends, struct ct_link_fact *fact)
{
    struct ct_link_fact topology = {.speed = CT_NONE};

    if (!ends->a || !ends->b || ct_one_node(ends) ||
        nodes_of(ends->a, ends->comm_a) != 1)
        return false;
    ct_link_by_topology(ends, &topology);
    fact->link = CT_LINK_MNNVL;
    fact->speed = topology.link == CT_LINK_MNNVL ? topology.speed : CT_NONE;
    fact->evidence = "plugin";
    snprintf(fact->detail, sizeof(fact->detail),
             "NCCL's profiler: one node, on different hosts");
    return true;
}
