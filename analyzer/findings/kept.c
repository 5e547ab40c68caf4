#include "findings/kept.h"

#include <math.h>
#include <stdlib.h>

struct sums {           /* of a communicator */
    bool some, others;  /* of its ranks: those, and others */
    double least_ns[2]; /* that one of others, of those waits per step */
    double now_ns;      /* the process that is being walked, in all */
    bool calls;         /* it does */
};

struct keeping {
    const struct ct_case *c;
    const bool *those;
    struct sums *sums; /* per communicator */
    bool *same_work;   /* per usage */
};

bool ct_same_work(const struct ct_case *c, int usage)
{
    const int role = c->roles->of_usage[usage];
    const enum ct_role_id id =
        role == CT_NONE ? CT_ROLE_UNKNOWN : c->roles->roles[role].role;

    return id == CT_ROLE_TP || id == CT_ROLE_DP;
}

bool ct_any_same_work(const struct ct_case *c)
{
    bool p2p = false;

    for (int u = 0; u < c->job->nusages; u++) {
        if (ct_same_work(c, u))
            return false;
        p2p |= c->job->usages[u].src != CT_NONE && c->job->usages[u].bytes > 0;
    }
    return !p2p;
}

static bool begin(struct keeping *k)
{
    const struct ct_job *job = k->c->job;
    const bool any = ct_any_same_work(k->c);

    k->sums = calloc((size_t)job->ncomms + 1, sizeof *k->sums);
    k->same_work = calloc((size_t)job->nusages + 1, sizeof *k->same_work);
    if (!k->sums || !k->same_work)
        return false;
    for (int i = 0; i < job->ncomms; i++) {
        const struct ct_comm *comm = &job->comms[i];

        k->sums[i].least_ns[0] = k->sums[i].least_ns[1] = INFINITY;
        for (int r = 0; r < comm->nranks; r++) {
            const int process = comm->members[r].process;

            k->sums[i].some |= process != CT_NONE && k->those[process];
            k->sums[i].others |= process != CT_NONE && !k->those[process];
        }
    }
    for (int u = 0; u < job->nusages; u++)
        k->same_work[u] = (any || ct_same_work(k->c, u)) &&
                          ct_op_infos[job->usages[u].base].cls == CT_COLL;
    return true;
}

static void add_op(struct keeping *k, int process, int o)
{
    const struct ct_process *p = &k->c->trace->processes[process];
    const struct ct_op_row *op = &p->ops[o];
    struct sums *sums = &k->sums[p->comms[p->classes[op->cls].comm].comm];
    struct ct_op_cost cost;

    if (!sums->some || !sums->others || op->instance == CT_NONE ||
        !k->same_work[k->c->job->instances[op->instance].usage] ||
        ct_op_graph(p, op) != CT_NONE ||
        !ct_op_cost(k->c->trace, process, o, &cost))
        return;
    sums->now_ns += (double)cost.wait_ns;
    sums->calls = true;
}

static void end_process(struct keeping *k, int process, int steps)
{
    const struct ct_process *p = &k->c->trace->processes[process];
    const bool it = k->those[process];

    for (int i = 0; i < p->ncomms; i++) {
        struct sums *sums = &k->sums[p->comms[i].comm];

        if (sums->calls)
            sums->least_ns[it] = fmin(sums->least_ns[it], sums->now_ns / steps);
        sums->now_ns = 0;
        sums->calls = false;
    }
}

static void add_process(struct keeping *k, int process)
{
    const struct ct_process *p = &k->c->trace->processes[process];
    int steps = 0;

    for (int s = 0; s < p->nsteps; s++) {
        if (p->steps[s].kind != CT_STEP_STEADY)
            continue;
        steps++;
        for (int o = p->steps[s].first_op; o <= p->steps[s].last_op; o++)
            add_op(k, process, o);
    }
    end_process(k, process, steps);
}

static double most(const struct keeping *k)
{
    double most = NAN;

    for (int i = 0; i < k->c->job->ncomms; i++) {
        const double *least_ns = k->sums[i].least_ns;

        if (!isinf(least_ns[0]) && !isinf(least_ns[1]))
            most = fmax(most, least_ns[0] - least_ns[1]);
    }
    return most;
}

bool ct_kept_waiting(const struct ct_case *c, const bool *those, double *ns_p)
{
    struct keeping k = {.c = c, .those = those};
    const bool good = begin(&k);

    for (int i = 0; good && i < c->job->nprocesses; i++)
        add_process(&k, c->job->processes[i]);
    *ns_p = good ? most(&k) : NAN;
    free(k.sums);
    free(k.same_work);
    return good;
}
