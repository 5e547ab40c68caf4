#include "model/nccl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Facts of NCCL's src/graph/tuning.cc, ncclTopoGetAlgoTime (2.30.7), per call:
 * - Trees miss the model at middle sizes: their bandwidth is corrected by a
 *   factor per protocol and power of two from 64 B on. These are the factors
 *   since 2.10; those of 2.5 to 2.9 differ by at most .2.
 * - Rings with the SIMPLE protocol have a plateau between nodes, from 64 B per
 *   rank and channel on: latency times 1.4, or 1.9 before 2.18 and on GPUs
 *   before Ampere. Channels are taken for one: rings are LL at such sizes.
 * - Latency counts once per operation of a group; here always once.
 * The table itself has every other effect, and one decimal.
 */
#define SIZES 24
#define LEAST_LOG 6 /* 64 B */
#define PLATEAU 1.4
#define OLD_PLATEAU 1.9
#define PLATEAU_BYTES 64
#define NEW_PLATEAU_VERSION 21800

static const struct {
    const char *protocol;
    unsigned char tenths[SIZES];
} tree_factors[] = {
    {"LL", {10, 10, 10, 10, 9, 8, 7, 7,  7,  7,  6,  5,
            4,  4,  5,  6,  7, 8, 9, 10, 10, 10, 10, 10}},
    {"LL128", {10, 10, 10, 10, 10, 9, 8, 8, 8, 7,  6,  6,
               6,  6,  6,  6,  8,  9, 9, 9, 9, 10, 10, 10}},
    {"SIMPLE",
     {9, 9, 9, 9, 9, 9, 9, 8, 7, 6, 6, 5, 5, 5, 5, 6, 7, 8, 7, 7, 8, 9, 9, 9}},
};

static int log_of(uint64_t bytes)
{
    int log = -1;

    for (; bytes; bytes >>= 1)
        log++;
    return log;
}

static double tree_factor(const char *protocol, uint64_t bytes)
{
    const int at = log_of(bytes) - LEAST_LOG;

    for (size_t i = 0; i < sizeof tree_factors / sizeof *tree_factors; i++)
        if (!strcmp(tree_factors[i].protocol, protocol) && at >= 0 &&
            at < SIZES - 1)
            return tree_factors[i].tenths[at] / 10.;
    return 1;
}

double ct_nccl_us(const struct ct_tuning_row *row,
                  const struct ct_nccl_comm *comm, uint64_t bytes)
{
    double latency_us = row->latency_us, GBps = row->algbw_GBps;

    if (row->base == CT_OP_ALL_REDUCE && !strcmp(row->algorithm, "TREE"))
        GBps *= tree_factor(row->protocol, bytes);
    if (row->base == CT_OP_ALL_REDUCE && !strcmp(row->algorithm, "RING") &&
        !strcmp(row->protocol, "SIMPLE") && comm->network &&
        bytes / (uint64_t)comm->nranks >= PLATEAU_BYTES)
        latency_us *= comm->old ? OLD_PLATEAU : PLATEAU;
    return latency_us + (double)bytes / (1e3 * GBps);
}

struct table { /* of a communicator: rows of a process's tunings */
    const struct ct_tuning_row *rows;
    int n;
    struct ct_nccl_comm comm;
};

static int version_of(const struct ct_process *p, int library)
{
    for (int i = 0; i < p->nlibraries; i++)
        if (p->libraries[i].id == library)
            return p->libraries[i].version;
    return CT_NONE;
}

static bool is_old_gpu(const struct ct_process *p, int device)
{
    static const char *const names[] = {"P100", "V100", "T4"};

    for (int i = 0; i < p->ndevices; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (p->devices[i].id == device && p->devices[i].name &&
                strstr(p->devices[i].name, names[k]))
                return true;
    return false;
}

/* Between what NCCL calls nodes: hosts that NVLink joins are one. */
static bool has_network(const struct ct_job *job, const struct ct_process *p,
                        int comm)
{
    for (int i = 0; i < p->nccl.ncomms; i++)
        if (p->nccl.comms[i].comm == comm && p->nccl.comms[i].nodes > 0)
            return p->nccl.comms[i].nodes > 1;
    return job->comms[p->comms[comm].comm].ndomains > 1;
}

static void note_table(const struct ct_job *job, const struct ct_process *p,
                       int first, int n, struct table *tables)
{
    const struct ct_comm_row *row = &p->comms[p->tunings[first].comm];
    const int version = version_of(p, row->library);

    if (row->comm == CT_NONE || tables[row->comm].n)
        return;
    tables[row->comm] = (struct table){
        .rows = &p->tunings[first],
        .n = n,
        .comm = {.nranks = row->nranks,
                 .network = has_network(job, p, p->tunings[first].comm),
                 .old = (version != CT_NONE && version < NEW_PLATEAU_VERSION) ||
                        is_old_gpu(p, row->device)},
    };
}

/* Of each communicator the first table found: NCCL prints it on rank 0. */
static bool note_tables(const struct ct_trace *trace, const struct ct_job *job,
                        struct table *tables)
{
    bool any = false;

    for (int i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = &trace->processes[job->processes[i]];

        for (int k = 0, n; k < p->ntunings; k += n) {
            for (n = 1; k + n < p->ntunings &&
                        p->tunings[k + n].comm == p->tunings[k].comm;
                 n++)
                ;
            note_table(job, p, k, n, tables);
            any = true;
        }
    }
    return any;
}

static double best_us(const struct table *table, enum ct_op base,
                      uint64_t bytes)
{
    double best = NAN;

    for (int i = 0; i < table->n; i++)
        if (table->rows[i].base == base)
            best = fmin(best, ct_nccl_us(&table->rows[i], &table->comm, bytes));
    return best;
}

static double chosen_us(const struct table *table,
                        const struct ct_choice_class_row *choice,
                        enum ct_op base, uint64_t bytes)
{
    for (int i = 0; i < table->n; i++) {
        const struct ct_tuning_row *row = &table->rows[i];

        if (row->base == base && choice->algorithm && choice->protocol &&
            !strcmp(row->algorithm, choice->algorithm) &&
            !strcmp(row->protocol, choice->protocol))
            return ct_nccl_us(row, &table->comm, bytes);
    }
    return NAN;
}

/* The mean over the runs whose choice is known. */
static bool use_choices(const struct ct_trace *trace, const struct ct_job *job,
                        const struct table *tables, double *us)
{
    struct sum {
        double us, n;
    } *sums = calloc((size_t)job->nusages + 1, sizeof *sums);

    if (!sums)
        return false;
    for (int i = 0; i < job->ninstances; i++) {
        const struct ct_instance *instance = &job->instances[i];
        const struct ct_choice_of *of = &job->choices[i];
        double own;

        if (of->choice == CT_NONE || instance->usage == CT_NONE)
            continue;
        own =
            chosen_us(&tables[instance->comm],
                      &trace->processes[of->process].choice_classes[of->choice],
                      instance->base, ct_usage_of(job, instance)->bytes);
        if (isnan(own))
            continue;
        sums[instance->usage].us += own * (double)instance->runs;
        sums[instance->usage].n += (double)instance->runs;
    }
    for (int u = 0; u < job->nusages; u++)
        if (sums[u].n > 0)
            us[u] = sums[u].us / sums[u].n;
    free(sums);
    return true;
}

int ct_nccl_locate(const struct ct_trace *trace, const struct ct_job *job,
                   double *us)
{
    struct table *tables = calloc((size_t)job->ncomms + 1, sizeof *tables);
    bool good = tables != NULL;

    for (int u = 0; u < job->nusages; u++)
        us[u] = NAN;
    if (good && note_tables(trace, job, tables)) {
        for (int u = 0; u < job->nusages; u++)
            us[u] = best_us(&tables[job->usages[u].comm], job->usages[u].base,
                            job->usages[u].bytes);
        if (job->choices)
            good = use_choices(trace, job, tables, us);
    }
    free(tables);
    return good ? 0 : -1;
}
