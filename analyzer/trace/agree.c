/*
 * Where ranks issued different operations under one ordinal: what most of them
 * issued is what the operation was, and the others are named. Where as many
 * differ, nobody can say which is wrong, so all are.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/match.h"

struct ballot { /* ranks of an instance with the same signature */
    int poll, signature, votes;
};

struct poll { /* of an instance; CT_NONE: none */
    int instance;
    int first, second; /* ballots with most votes */
};

struct agreeing {
    struct ct_matching *m;
    struct ct_intern instances, keys, ranks;
    int npolls, poll_capacity, ballot_capacity, rank_capacity;
    struct poll *polls;     /* by number in instances */
    struct ballot *ballots; /* by number in keys: poll, signature */
};

typedef void visit(struct agreeing *a, int process, const struct ct_op_row *op,
                   int signature);

/* Every op of an instance that is a mismatch. */
static void each(struct agreeing *a, visit *told)
{
    const struct ct_matching *m = a->m;

    for (int i = 0; i < m->job->nprocesses; i++) {
        const struct ct_process *p = ct_process_at(m, i);

        for (int o = 0; o < p->nops; o++)
            if (m->job->instances[p->ops[o].instance].mismatch)
                told(a, i, &p->ops[o], m->infos[i][p->ops[o].cls].signature);
    }
}

static void vote(struct agreeing *a, int process, const struct ct_op_row *op,
                 int signature)
{
    const int poll = ct_intern_add(&a->instances, &op->instance, sizeof(int));
    const int key[2] = {poll, signature};
    const int n = a->keys.n, i = ct_intern_add(&a->keys, key, sizeof(key));

    (void)process;
    if (poll == a->npolls) {
        a->polls =
            ct_grow(a->polls, &a->poll_capacity, poll, sizeof(*a->polls));
        a->polls[a->npolls++] = (struct poll){op->instance, CT_NONE, CT_NONE};
    }
    if (i == n) {
        a->ballots =
            ct_grow(a->ballots, &a->ballot_capacity, n, sizeof(*a->ballots));
        a->ballots[n] = (struct ballot){poll, signature, 0};
    }
    a->ballots[i].votes++;
}

static int votes_of(const struct agreeing *a, int ballot)
{
    return ballot == CT_NONE ? 0 : a->ballots[ballot].votes;
}

/* Of equal votes those of the rank that was seen first come first. */
static void count(struct agreeing *a)
{
    for (int i = 0; i < a->keys.n; i++) {
        struct poll *poll = &a->polls[a->ballots[i].poll];

        if (votes_of(a, i) > votes_of(a, poll->first)) {
            poll->second = poll->first;
            poll->first = i;
        } else if (votes_of(a, i) > votes_of(a, poll->second)) {
            poll->second = i;
        }
    }
    for (int i = 0; i < a->npolls; i++) {
        const int signature = a->ballots[a->polls[i].first].signature;

        a->m->signature_of[a->polls[i].instance] = signature;
        a->m->job->instances[a->polls[i].instance].base =
            (uint8_t)a->m->signatures[signature].base;
    }
}

static struct ct_unlike *row_of(struct agreeing *a, int comm, int rank)
{
    struct ct_job *job = a->m->job;
    const int key[2] = {comm, rank};
    const int i = ct_intern_add(&a->ranks, key, sizeof(key));

    if (i == job->nunlike) {
        job->unlike =
            ct_grow(job->unlike, &a->rank_capacity, i, sizeof(*job->unlike));
        job->unlike[job->nunlike++] =
            (struct ct_unlike){.comm = comm, .rank = rank};
    }
    return &job->unlike[i];
}

static struct ct_call_kind kind_of(const struct agreeing *a, int signature)
{
    const struct ct_usage *usage = &a->m->signatures[signature];

    return (struct ct_call_kind){usage->base, usage->type, usage->redop,
                                 usage->count, usage->bytes};
}

static void name(struct agreeing *a, int process, const struct ct_op_row *op,
                 int signature)
{
    const struct ct_process *p = ct_process_at(a->m, process);
    const struct ct_comm_row *comm = &p->comms[p->classes[op->cls].comm];
    const struct poll *poll =
        &a->polls[ct_intern_find(&a->instances, &op->instance, sizeof(int))];
    const bool tied = votes_of(a, poll->first) == votes_of(a, poll->second);
    int other = a->ballots[poll->first].signature;
    struct ct_unlike *row;

    if (signature == other && tied)
        other = a->ballots[poll->second].signature;
    if (signature == other)
        return;
    row = row_of(a, comm->comm, comm->rank);
    if (row->calls++)
        return;
    row->first = op->ordinal;
    row->own = kind_of(a, signature);
    row->others = kind_of(a, other);
    row->tied = tied;
}

void ct_match_agree(struct ct_matching *m)
{
    struct agreeing a = {.m = m};
    int i = 0;

    while (i < m->job->ninstances && !m->job->instances[i].mismatch)
        i++;
    if (i == m->job->ninstances)
        return;
    each(&a, vote);
    count(&a);
    each(&a, name);
    ct_arena_adopt(m->trace->arena, m->job->unlike);
    ct_intern_release(&a.instances);
    ct_intern_release(&a.keys);
    ct_intern_release(&a.ranks);
    free(a.polls);
    free(a.ballots);
}
