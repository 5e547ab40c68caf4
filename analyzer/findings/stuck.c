/*
 * RANK_NEVER_CAME, OP_NEVER_ENDED: what a job hung in when it was aborted or
 * killed, or seems to hang in while it runs. Each process waits in one op: the
 * first unfinished one for which somebody is absent, else the first unfinished
 * one. An op counts where an abort ended it, or where it had been running for
 * long when the recorder last looked at the GPU; of a process that lives, for
 * long beside what such ops took before, too.
 *
 * A rank that is absent because it waits elsewhere is no cause: what is
 * reported is the op whose absentees wait in nothing, and how much hangs behind
 * it. Where there is none they wait for each other, and all are reported.
 */
#include <stdlib.h>

#include "findings/stuck.h"

#define LONG_NS INT64_C(5000000000)
#define LONG_STEPS 10
#define LONG_BEFORE 3                 /* times the longest op of its class */
#define QUIET_NS INT64_C(15000000000) /* in which all calls are stored */
#define LOOKED_AT 64 /* unfinished ops per process: the rest queue behind */
#define REPORTED 4
#define OF_CIRCLE .8 /* sure that it is that one */

static bool is_long(const struct ct_job *job, int64_t ns)
{
    return ns >= LONG_NS &&
           (job->nsteps == 0 || ns >= LONG_STEPS * job->step_ns);
}

int64_t ct_stuck_ns(const struct ct_process *p, const struct ct_op_row *op)
{
    const struct ct_comm_row *comm = &p->comms[p->classes[op->cls].comm];
    const int64_t since =
        ct_op_start_ns(op) == CT_NO_TIME ? op->enter_ns : ct_op_start_ns(op);
    const int64_t until =
        op->flags & CT_FLAG_CUT ? comm->aborted_ns : p->looked_ns;

    return until > since ? until - since : 0;
}

/* Those of its class never took nearly as long. */
static bool is_unheard_of(const struct ct_process *p,
                          const struct ct_op_row *op, int64_t ns)
{
    int64_t longest = 0;

    for (int o = 0; o < p->nops; o++)
        if (p->ops[o].cls == op->cls && ct_op_gpu_ns(&p->ops[o]) > longest)
            longest = ct_op_gpu_ns(&p->ops[o]);
    return ns > LONG_BEFORE * longest;
}

/* Of one-sided calls nobody can say for whom they wait. */
static bool hangs(const struct ct_job *job, const struct ct_process *p,
                  const struct ct_op_row *op)
{
    if (ct_op_infos[p->classes[op->cls].kind].cls == CT_ONE_SIDED)
        return false;
    if (op->flags & CT_FLAG_CUT)
        return true;
    return op->flags & (CT_FLAG_RUNNING | CT_FLAG_IN_CALL) &&
           !(op->flags & CT_FLAG_RECOVERED) && (p->dead || ct_stuck_lives(p)) &&
           is_long(job, ct_stuck_ns(p, op)) &&
           (p->dead || is_unheard_of(p, op, ct_stuck_ns(p, op)));
}

/* Fills issued: per member, how many collectives it has issued. */
static bool count_issued(struct ct_hang *h)
{
    int members = 0;

    h->first = calloc((size_t)h->job->ncomms + 1, sizeof *h->first);
    for (int i = 0; h->first && i < h->job->ncomms; i++) {
        h->first[i] = members;
        members += h->job->comms[i].nranks;
    }
    h->issued = calloc((size_t)members + 1, sizeof *h->issued);
    if (!h->first || !h->issued)
        return false;
    for (int i = 0; i < h->job->nprocesses; i++) {
        const struct ct_process *p = &h->trace->processes[h->job->processes[i]];

        for (int o = 0; o < p->nops; o++) {
            const struct ct_op_row *op = &p->ops[o];
            const struct ct_comm_row *comm =
                &p->comms[p->classes[op->cls].comm];
            int64_t *n = &h->issued[h->first[comm->comm] + comm->rank];

            if (op->instance != CT_NONE &&
                ct_is_collective(h->job->instances[op->instance].base) &&
                op->ordinal >= *n)
                *n = (int64_t)op->ordinal + 1;
        }
    }
    return true;
}

/* What it called last may not be stored. */
static bool lacks_end(const struct ct_process *p)
{
    const int64_t last_ns = p->nops ? p->ops[p->nops - 1].enter_ns : 0;

    return p->ring_missing && p->looked_ns - last_ns < QUIET_NS;
}

enum ct_presence ct_stuck_presence(const struct ct_hang *h,
                                   const struct ct_instance *instance, int rank)
{
    const struct ct_comm *comm = &h->job->comms[instance->comm];
    const int process = comm->members[rank].process;
    const struct ct_process *p;

    if (process == CT_NONE)
        return CT_UNKNOWN;
    p = &h->trace->processes[process];
    if (ct_is_collective(instance->base)
            ? h->issued[h->first[instance->comm] + rank] > instance->ordinal
            : h->came[instance - h->job->instances] &
                  (rank == ct_usage_of(h->job, instance)->dst ? CT_RECEIVER_CAME
                                                              : CT_SENDER_CAME))
        return CT_CAME;
    return p->lost || lacks_end(p) ? CT_UNKNOWN : CT_ABSENT;
}

bool ct_stuck_takes_part(const struct ct_hang *h,
                         const struct ct_instance *instance, int rank)
{
    const struct ct_usage *usage = ct_usage_of(h->job, instance);

    return ct_is_collective(instance->base) || rank == usage->src ||
           rank == usage->dst;
}

static bool lacks_a_rank(const struct ct_hang *h,
                         const struct ct_instance *instance)
{
    for (int r = 0; r < h->job->comms[instance->comm].nranks; r++)
        if (ct_stuck_takes_part(h, instance, r) &&
            ct_stuck_presence(h, instance, r) != CT_CAME)
            return true;
    return false;
}

/* Which ends of each send/recv were issued. */
static bool note_ends(struct ct_hang *h)
{
    h->came = calloc((size_t)h->job->ninstances + 1, sizeof *h->came);
    for (int i = 0; h->came && i < h->job->nprocesses; i++) {
        const struct ct_process *p = &h->trace->processes[h->job->processes[i]];

        for (int o = 0; o < p->nops; o++) {
            const enum ct_op_class cls =
                ct_op_infos[p->classes[p->ops[o].cls].kind].cls;

            if (p->ops[o].instance != CT_NONE)
                h->came[p->ops[o].instance] |=
                    cls == CT_RECV ? CT_RECEIVER_CAME : CT_SENDER_CAME;
        }
    }
    return h->came != NULL;
}

static int find_wait(const struct ct_hang *h, const struct ct_process *p)
{
    int first = CT_NONE, seen = 0;

    for (int o = 0; o < p->nops && seen < LOOKED_AT; o++) {
        const struct ct_op_row *op = &p->ops[o];

        if (op->instance == CT_NONE || !hangs(h->job, p, op))
            continue;
        if (lacks_a_rank(h, &h->job->instances[op->instance]))
            return o;
        first = seen++ ? first : o;
    }
    return first;
}

static bool find_waits(struct ct_hang *h)
{
    h->waits_in =
        malloc(((size_t)h->trace->nprocesses + 1) * sizeof *h->waits_in);
    h->blamed = calloc((size_t)h->trace->nprocesses + 1, sizeof *h->blamed);
    if (!h->waits_in || !h->blamed)
        return false;
    for (int i = 0; i < h->trace->nprocesses; i++)
        h->waits_in[i] = CT_NONE;
    for (int i = 0; i < h->job->nprocesses; i++) {
        const int id = h->job->processes[i];

        h->waits_in[id] = find_wait(h, &h->trace->processes[id]);
    }
    return true;
}

static int instance_of(const struct ct_hang *h, int process)
{
    const int op = h->waits_in[process];

    return op == CT_NONE ? CT_NONE
                         : h->trace->processes[process].ops[op].instance;
}

struct absent {     /* ranks that an instance lacks */
    int free, busy; /* those that wait in something else are busy */
    int news;       /* free, and in no finding yet */
};

static struct absent count_absent(const struct ct_hang *h,
                                  const struct ct_instance *instance)
{
    const struct ct_comm *comm = &h->job->comms[instance->comm];
    struct absent absent = {0};

    for (int r = 0; r < comm->nranks; r++) {
        const int process = comm->members[r].process;

        if (!ct_stuck_takes_part(h, instance, r))
            continue;
        if (process != CT_NONE && h->waits_in[process] != CT_NONE) {
            absent.busy +=
                instance_of(h, process) != (int)(instance - h->job->instances);
            continue;
        }
        if (ct_stuck_presence(h, instance, r) == CT_CAME)
            continue;
        absent.free++;
        absent.news += process == CT_NONE || !h->blamed[process];
    }
    return absent;
}

static void blame(struct ct_hang *h, const struct ct_instance *instance)
{
    const struct ct_comm *comm = &h->job->comms[instance->comm];

    for (int r = 0; r < comm->nranks; r++)
        if (comm->members[r].process != CT_NONE &&
            ct_stuck_takes_part(h, instance, r) &&
            ct_stuck_presence(h, instance, r) != CT_CAME)
            h->blamed[comm->members[r].process] = true;
}

/* The first process of those that wait in the same. */
static bool is_first(const struct ct_hang *h, int number)
{
    const int instance = instance_of(h, h->job->processes[number]);

    for (int i = 0; i < number; i++)
        if (instance_of(h, h->job->processes[i]) == instance)
            return false;
    return instance != CT_NONE;
}

/* What each pass reports: ops of which no rank waits elsewhere; other ops that
 * lack a rank which no finding names. */
enum pass { PLAIN, MORE, PASSES };

static bool is_reported(const struct ct_hang *h,
                        const struct ct_instance *instance, enum pass pass)
{
    const struct absent absent = count_absent(h, instance);

    return pass == PLAIN ? absent.busy == 0
                         : absent.busy > 0 && absent.news > 0;
}

static bool report(struct ct_hang *h, const struct ct_instance *instance,
                   struct ct_findings *findings)
{
    struct ct_finding_row *row = ct_finding_add(
        findings, lacks_a_rank(h, instance) ? CT_FINDING_RANK_NEVER_CAME
                                            : CT_FINDING_OP_NEVER_ENDED);

    if (!row)
        return false;
    row->comm = instance->comm;
    ct_stuck_tell(h, instance, row);
    blame(h, instance);
    return true;
}

static bool report_pass(struct ct_hang *h, enum pass pass, int *reported_p,
                        struct ct_findings *findings)
{
    for (int i = 0; i < h->job->nprocesses && *reported_p < REPORTED; i++) {
        const struct ct_instance *instance;

        if (!is_first(h, i))
            continue;
        instance = &h->job->instances[instance_of(h, h->job->processes[i])];
        if (!is_reported(h, instance, pass))
            continue;
        if (!report(h, instance, findings))
            return false;
        ++*reported_p;
    }
    return true;
}

/* The most that is lacked by what a rank waits in of those that instance
 * lacks: so far ahead it is. */
static int count_ahead(const struct ct_hang *h,
                       const struct ct_instance *instance)
{
    const struct ct_comm *comm = &h->job->comms[instance->comm];
    int most = 0;

    for (int r = 0; r < comm->nranks; r++) {
        const int process = comm->members[r].process;
        int other, n;

        if (process == CT_NONE || !ct_stuck_takes_part(h, instance, r))
            continue;
        other = instance_of(h, process);
        if (other == CT_NONE || &h->job->instances[other] == instance)
            continue;
        n = count_absent(h, &h->job->instances[other]).busy;
        most = n > most ? n : most;
    }
    return most;
}

static bool report_circle(struct ct_hang *h, struct ct_findings *findings)
{
    const struct ct_instance *best = NULL;
    int lacks = 0, ahead = 0;

    for (int i = 0; i < h->job->nprocesses; i++) {
        const struct ct_instance *instance;
        int n, far;

        if (!is_first(h, i))
            continue;
        instance = &h->job->instances[instance_of(h, h->job->processes[i])];
        n = count_absent(h, instance).busy;
        far = count_ahead(h, instance);
        if (best && (n > lacks || (n == lacks && far <= ahead)))
            continue;
        best = instance;
        lacks = n;
        ahead = far;
    }
    if (!report(h, best, findings))
        return false;
    findings->rows[findings->n - 1].confidence *= OF_CIRCLE;
    return true;
}

static bool report_all(struct ct_hang *h, struct ct_findings *findings)
{
    int ops = 0, reported = 0;

    for (int i = 0; i < h->job->nprocesses; i++)
        ops += is_first(h, i);
    for (enum pass pass = PLAIN; pass < PASSES; pass++)
        if (!report_pass(h, pass, &reported, findings))
            return false;
    if (ops > 0 && reported == 0) {
        if (!report_circle(h, findings))
            return false;
        reported++;
    }
    if (ops > reported)
        ct_stuck_tell_rest(ops - reported, &findings->rows[findings->n - 1]);
    return true;
}

bool ct_rule_stuck(const struct ct_case *c, struct ct_findings *findings)
{
    struct ct_hang h = {.trace = c->trace, .job = c->job};
    bool good = true;

    if (c->job->in_flight > 0)
        good = count_issued(&h) && note_ends(&h) && find_waits(&h) &&
               report_all(&h, findings);
    free(h.first);
    free(h.issued);
    free(h.came);
    free(h.waits_in);
    free(h.blamed);
    return good;
}
