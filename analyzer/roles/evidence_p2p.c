/*
 * Evidence for uses whose kind says most: send/recv, scalars, all-to-all.
 */
#include "roles/evidence.h"

void ct_evidence_small(const struct ct_view *view, const struct ct_use *use,
                       struct ct_verdict *verdict)
{
    ct_verdict_start(verdict, (struct ct_weights){.pp = -1});
    ct_evidence_add(
        verdict, (struct ct_weights){.control = use->calls > 64 ? 2.5 : 4},
        "%s call%s %s of at most %d elements", CT_NUM(use->calls, 4),
        ct_plural(use->calls), ct_view_per(view), CT_SMALL_COUNT);
}

void ct_evidence_exchange(const struct ct_view *view, const struct ct_use *use,
                          struct ct_verdict *verdict)
{
    ct_verdict_start(verdict, (struct ct_weights){
                                  .tp = -3, .pp = -3, .dp = -3, .control = -3});
    ct_evidence_add(verdict, (struct ct_weights){.none = 2},
                    "%s exchange%s %s of every rank with every other",
                    CT_NUM(use->calls, 4), ct_plural(use->calls),
                    ct_view_per(view));
}

/* The chain that most ranks of a communicator are in; NULL: none. */
static const struct ct_chain *chain_of(const struct ct_view *view,
                                       const struct ct_use *use)
{
    const struct ct_comm *comm = &view->job->comms[use->comm];

    for (int i = 0; i < comm->nranks; i++) {
        const int process = comm->members[i].process;

        if (process != CT_NONE && view->chains->chain[process] != CT_NONE)
            return &view->chains->chains[view->chains->chain[process]];
    }
    return NULL;
}

static void weigh_chain(const struct ct_chain *chain,
                        struct ct_verdict *verdict)
{
    switch (chain->shape) {
    case CT_CHAIN_PATH:
        ct_evidence_add(
            verdict, (struct ct_weights){.pp = chain->both_ways ? 2.5 : 1.5},
            "send/recv joins %d ranks to a row of stages, %s", chain->nranks,
            chain->both_ways ? "there and back" : "one way");
        break;
    case CT_CHAIN_CYCLE:
        ct_evidence_add(
            verdict, (struct ct_weights){.pp = chain->both_ways ? 1 : -1},
            "send/recv runs round a ring of %d ranks, %s", chain->nranks,
            chain->both_ways ? "both ways" : "one way");
        break;
    case CT_CHAIN_TOGETHER:
        ct_evidence_add(verdict, (struct ct_weights){.pp = -.5},
                        "two ranks that only ever send and receive at once");
        break;
    case CT_CHAIN_OTHER:
        ct_evidence_add(verdict, (struct ct_weights){.pp = .5},
                        "send/recv joins %d ranks, but not to a row",
                        chain->nranks);
        break;
    }
}

void ct_evidence_p2p(const struct ct_view *view, const struct ct_use *use,
                     struct ct_verdict *verdict)
{
    const struct ct_chain *chain = chain_of(view, use);
    char size[32];

    ct_verdict_start(verdict,
                     (struct ct_weights){.tp = -4, .dp = -4, .control = -3});
    if (!chain)
        return;
    weigh_chain(chain, verdict);
    ct_bytes_text((double)view->chains->payload, size, sizeof size);
    if (chain->shape == CT_CHAIN_PATH && view->chains->micro_batches > 0)
        ct_evidence_add(verdict, (struct ct_weights){.pp = 1},
                        "%s message%s of %s per step, boundary and "
                        "direction",
                        CT_NUM((double)view->chains->micro_batches, 3),
                        ct_plural(view->chains->micro_batches), size);
    else if (chain->shape == CT_CHAIN_PATH && view->chains->payload > 0)
        ct_evidence_add(verdict, (struct ct_weights){.pp = 1},
                        "its messages are %s", size);
    if (use->nranks > chain->nranks)
        ct_evidence_add(verdict, (struct ct_weights){.pp = -.3},
                        "the communicator holds %d ranks, more than a "
                        "pipeline",
                        use->nranks);
}
