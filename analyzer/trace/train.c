/* Training sums gradients or scalars and goes through a pipeline both ways;
 * inference repeats forward passes and does neither. */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/select.h"
#include "trace/steps.h"

#define OPEN 0.5

struct traffic { /* with a peer */
    int sends, recvs;
};

/* On each communicator, with each of its ranks: an exchange has thousands. */
static struct traffic *count_peers(const struct ct_stream *s, const int *n,
                                   int *npeers_p)
{
    const struct ct_process *p = s->process;
    bool *seen = ct_alloc((size_t)s->ntokens, sizeof(*seen));
    struct traffic *peers = ct_alloc((size_t)p->nclasses, sizeof(*peers));
    struct ct_intern keys = {0};
    int c;

    for (c = 0; c < p->nclasses; c++) {
        const struct ct_op_class_row *row = &p->classes[c];
        const int key[2] = {row->comm, row->peer}, token = s->token_of[c];
        struct traffic *peer;

        if ((row->base != CT_OP_SEND && row->base != CT_OP_RECV) ||
            seen[token] || s->kinds[s->kind_of[c]].varied)
            continue;
        seen[token] = true;
        peer = &peers[ct_intern_add(&keys, key, sizeof(key))];
        *(row->base == CT_OP_SEND ? &peer->sends : &peer->recvs) += n[token];
    }
    *npeers_p = keys.n;
    ct_intern_release(&keys);
    free(seen);
    return peers;
}

/* p2p with the same peer, there and back; *equal_p: as often. */
static bool comes_back(const struct ct_stream *s, const int *n, bool *equal_p)
{
    struct traffic *peers;
    bool back = false;
    int npeers, i;

    peers = count_peers(s, n, &npeers);
    *equal_p = true;
    for (i = 0; i < npeers; i++) {
        if (!peers[i].sends || !peers[i].recvs)
            continue;
        back = true;
        *equal_p &= peers[i].sends == peers[i].recvs;
    }
    free(peers);
    return back;
}

struct calls {       /* of a step */
    int *n;          /* of each token */
    bool *tokens;    /* left to count */
    int *summed;     /* large all-reduces on each communicator */
    int *scattered;  /* reduce-scatters on each */
    int ncomms;      /* with large all-reduces */
    int sizes, sums; /* of large sums; all */
    int large;       /* tokens */
    bool once;       /* a large one of a kind, or sum, is called once */
    int times;       /* divides the numbers of each kind of reductions */
    int comm;        /* of a large call */
    bool comms;      /* not all of these are on that */
    int gathers, scatters;
    bool scalars;  /* of floats: norm, loss */
    bool smallest; /* any sum of a handful of bytes */
};

static void add_class(const struct ct_stream *s, int class, struct calls *calls)
{
    const struct ct_op_class_row *row = &s->process->classes[class];
    const struct ct_kind *kind = &s->kinds[s->kind_of[class]];
    const int token = s->token_of[class];

    if (!calls->tokens[token])
        return;
    calls->tokens[token] = false;
    calls->scalars |= ct_kind_is_scalar(kind);
    calls->smallest |= kind->small && kind->reduces;
    calls->sums += kind->sums;
    if (!kind->small && calls->comm == CT_NONE)
        calls->comm = row->comm;
    calls->comms |= !kind->small && calls->comm != row->comm;
    if (kind->scatters)
        calls->scattered[row->comm] += calls->n[token];
    if (!kind->sums || kind->small || kind->scatters)
        return;
    calls->sizes++;
    calls->ncomms += !calls->summed[row->comm];
    calls->summed[row->comm] += calls->n[token];
}

/* How the calls of each kind come in a step. */
static void count_kinds(const struct ct_stream *s,
                        const struct ct_anchor *anchor, struct calls *calls)
{
    const int first = anchor->at + 1 - anchor->length;
    int *n = ct_segment_kinds(s, first, anchor->at), k, o;

    for (k = 0; k < s->nkinds; k++)
        if (s->kinds[k].reduces &&
            (!s->kinds[k].small || ct_kind_is_scalar(&s->kinds[k])))
            calls->times = ct_divisor(calls->times, n[k]);
    for (o = first; o <= anchor->at; o++) {
        const struct ct_token *token = &s->tokens[s->token_at[o]];
        const struct ct_kind *kind = &s->kinds[token->kind];

        calls->once |= calls->n[s->token_at[o]] == 1 && !kind->small &&
                       (kind->sums || n[token->kind] == 1);
    }
    free(n);
}

static struct calls calls_of(const struct ct_stream *s,
                             const struct ct_anchor *anchor)
{
    const struct ct_process *p = s->process;
    struct calls calls = {
        .n = ct_alloc((size_t)s->ntokens, sizeof(*calls.n)),
        .tokens = ct_alloc((size_t)s->ntokens, sizeof(*calls.tokens)),
        .summed = ct_alloc((size_t)p->ncomms, sizeof(*calls.summed)),
        .scattered = ct_alloc((size_t)p->ncomms, sizeof(*calls.scattered)),
        .comm = CT_NONE};
    int o, c;

    for (o = anchor->at + 1 - anchor->length; o <= anchor->at; o++) {
        const struct ct_kind *kind = ct_kind_at(s, o);

        calls.large += !calls.n[s->token_at[o]]++ && !kind->small;
        calls.tokens[s->token_at[o]] = true;
        calls.gathers += kind->gathers;
        calls.scatters += kind->scatters;
    }
    count_kinds(s, anchor, &calls);
    for (c = 0; c < p->nclasses; c++)
        add_class(s, c, &calls);
    return calls;
}

/* Shards of gradients are summed over replicas as often as they are scattered:
 * also after each micro-batch. */
static bool is_hybrid(const struct ct_stream *s, const struct calls *calls)
{
    const int n = s->process->ncomms;
    int c, d;

    for (c = 0; c < n; c++)
        for (d = 0; d < n && calls->summed[c]; d++)
            if (calls->scattered[d] == calls->summed[c])
                return true;
    return false;
}

static void release(struct calls *calls)
{
    free(calls->n);
    free(calls->tokens);
    free(calls->summed);
    free(calls->scattered);
}

bool ct_stream_trains(const struct ct_stream *s, const struct ct_anchor *anchor)
{
    struct calls calls = calls_of(s, anchor);
    bool equal;
    /* Sequence parallel, also of inference, has as many of both. */
    const bool trains = comes_back(s, calls.n, &equal) ||
                        (calls.scatters && calls.scatters != calls.gathers) ||
                        calls.smallest || calls.sums > 1;

    release(&calls);
    return trains;
}

/* What can only be called once in a step, at its end. */
double ct_stream_ends(const struct ct_stream *s, const struct ct_anchor *anchor,
                      const char **doubt_p)
{
    struct calls calls = calls_of(s, anchor);
    bool equal;
    const bool back = comes_back(s, calls.n, &equal);
    /* Of activations alone, summed in one group, a step may be several, and
     * the scalar that of the evaluation after them. */
    const bool whole = calls.once || calls.comms || back;
    const bool hybrid = is_hybrid(s, &calls);

    release(&calls);
    *doubt_p = NULL;
    if (back && !equal) {
        *doubt_p = "they hold more passes forward than backward";
        return OPEN;
    }
    if (calls.scalars && calls.large > 1 && whole) {
        if (calls.times == 1)
            return 1;
        *doubt_p =
            "all their sums come several times: each may be several steps";
        return CT_PLAUSIBLE;
    }
    if (!hybrid && whole && calls.times == 1 &&
        (calls.sizes >= CT_DDP_SIZES || calls.ncomms > 1))
        return CT_LIKELY;
    if (calls.scalars) {
        *doubt_p = "all their calls but scalars are repeated";
        return CT_PLAUSIBLE;
    }
    if (back) {
        *doubt_p = "nothing is summed in a step, periods may be of several";
        return CT_PLAUSIBLE;
    }
    if (calls.scatters || calls.sizes > 1) {
        *doubt_p = "no scalar is summed in a step, micro-batches may be alike";
        return CT_PLAUSIBLE;
    }
    *doubt_p = "nothing in them can only be of a step, not of a micro-batch";
    return OPEN;
}

bool ct_stream_forwards(const struct ct_stream *s,
                        const struct ct_anchor *anchor)
{
    int o, n = 0;

    for (o = anchor->at + 1 - anchor->length; o <= anchor->at; o++)
        n += ct_kind_at(s, o)->sums && !ct_kind_at(s, o)->small;
    return n > 1;
}
