/*
 * Sums over ops that are alike. Layers and micro-batches make the same calls
 * again and again, so there are far fewer sums than ops, and a question about
 * the whole job need not read every op.
 */
#include <stdlib.h>

#include "report/jobdb_insert.h"
#include "trace/arena.h"
#include "trace/graphs.h"
#include "trace/intern.h"
#include "trace/stages.h"

struct key { /* no padding: it is a key of ct_intern */
    int32_t cls, usage, step, choice, told;
};

struct sum {
    struct key key;
    int64_t ops, runs, timed, transfer_ns, wait_ns, longest_ns;
    int64_t last, others_ns, kernels, kernel_ns;
};

struct sums { /* of one process */
    const struct jobdb_job *job;
    int number;
    const struct ct_process *process;
    struct ct_intern keys;
    int capacity;
    struct sum *sums;
    int *captured, *first; /* ops of graph g: captured[first[g]..first[g+1]] */
};

static struct sum *sum_of(struct sums *sums, const struct key *key)
{
    const int n = sums->keys.n;
    const int i = ct_intern_add(&sums->keys, key, sizeof *key);

    if (i < n)
        return &sums->sums[i];
    sums->sums = ct_grow(sums->sums, &sums->capacity, i, sizeof *sums->sums);
    sums->sums[i] = (struct sum){.key = *key, .longest_ns = CT_NO_TIME};
    return &sums->sums[i];
}

static void add_time(int64_t *sum, int64_t runs, int64_t ns)
{
    int64_t product;

    if (__builtin_mul_overflow(runs, ns, &product) ||
        __builtin_add_overflow(*sum, product, sum))
        *sum = ns < 0 ? INT64_MIN : INT64_MAX;
}

static void add_cost(struct sum *sum, int64_t runs,
                     const struct ct_op_cost *cost)
{
    sum->timed = ct_add_time(sum->timed, runs);
    add_time(&sum->transfer_ns, runs, cost->transfer_ns);
    add_time(&sum->wait_ns, runs, cost->wait_ns);
    if (cost->wait_ns > sum->longest_ns)
        sum->longest_ns = cost->wait_ns;
}

/* An op that ran so often in step. */
static struct sum *add_op(struct sums *sums, int i, int step, int64_t runs)
{
    const struct ct_trace *trace = sums->job->view->trace;
    const struct ct_job *job = sums->job->view->job;
    const struct ct_op_row *op = &sums->process->ops[i];
    struct key key = {op->cls, CT_NONE, step, CT_NONE, CT_NONE};
    struct ct_op_cost cost;
    int told;
    const struct ct_choice_class_row *choice =
        ct_op_choice(trace, sums->number, i, &told);
    struct sum *sum;

    if (op->instance != CT_NONE)
        key.usage = job->instances[op->instance].usage;
    if (choice) {
        key.choice = choice->id;
        key.told = told;
    }
    sum = sum_of(sums, &key);
    sum->ops++;
    sum->runs = ct_add_time(sum->runs, runs);
    if (ct_op_cost(trace, sums->number, i, &cost))
        add_cost(sum, runs, &cost);
    if (op->instance != CT_NONE &&
        sums->job->arrivals[op->instance].last == sums->number) {
        sum->last = ct_add_time(sum->last, runs);
        add_time(&sum->others_ns, runs,
                 job->instances[op->instance].wait_max_ns);
    }
    return sum;
}

static void add_graph(void *context, int graph, int step, int64_t runs)
{
    struct sums *sums = context;

    for (int i = sums->first[graph]; i < sums->first[graph + 1]; i++)
        add_op(sums, sums->captured[i], ct_step_number(sums->process, step),
               runs);
}

static void add_direct(struct sums *sums, int i)
{
    const struct ct_process *p = sums->process;
    const struct ct_kernel_row *kernel = ct_op_kernel(p, i);
    const int step = ct_step_number(p, ct_op_step(p, &p->ops[i]));
    struct sum *sum = add_op(sums, i, step, 1);

    if (!kernel)
        return;
    sum->kernels++;
    add_time(&sum->kernel_ns, 1, kernel->gpu_ns);
}

/* Sorts the ops of graphs by graph. */
static void list_captured(struct sums *sums)
{
    const struct ct_process *p = sums->process;
    int *next;

    sums->first = ct_alloc((size_t)p->ngraphs + 2, sizeof *sums->first);
    /* first[g + 2] counts, then first[g + 1] runs from g's first to its end. */
    for (int i = 0; i < p->nops; i++)
        if (ct_op_graph(p, &p->ops[i]) != CT_NONE)
            sums->first[ct_op_graph(p, &p->ops[i]) + 2]++;
    for (int g = 0; g < p->ngraphs; g++)
        sums->first[g + 2] += sums->first[g + 1];
    sums->captured =
        ct_alloc((size_t)sums->first[p->ngraphs + 1], sizeof *sums->captured);
    next = sums->first + 1;
    for (int i = 0; i < p->nops; i++)
        if (ct_op_graph(p, &p->ops[i]) != CT_NONE)
            sums->captured[next[ct_op_graph(p, &p->ops[i])]++] = i;
}

static void add_all(struct sums *sums)
{
    const struct ct_process *p = sums->process;

    for (int i = 0; i < p->nops; i++)
        if (ct_op_graph(p, &p->ops[i]) == CT_NONE)
            add_direct(sums, i);
    if (!p->by_launches)
        return;
    list_captured(sums);
    ct_graphs_by_step(p, add_graph, sums);
}

static int64_t bytes_of(const struct ct_process *p, const struct sum *sum)
{
    int64_t bytes = 0;

    add_time(&bytes, sum->runs, (int64_t)p->classes[sum->key.cls].bytes);
    return bytes;
}

static void put_sum(struct jobdb *db, const struct sums *sums, int i)
{
    const struct sum *sum = &sums->sums[i];
    const int usage = sum->key.usage;

    jobdb_start(db, JOBDB_T_op_sum);
    jobdb_int(db, sums->number);
    jobdb_int(db, i);
    jobdb_int(db, sum->key.cls);
    jobdb_index(db,
                usage == CT_NONE ? CT_NONE : sums->job->first_usage + usage);
    jobdb_index(db, sum->key.step);
    jobdb_index(db, sum->key.choice);
    jobdb_index(db, sum->key.told);
    jobdb_int(db, sum->ops);
    jobdb_int(db, sum->runs);
    jobdb_int(db, bytes_of(sums->process, sum));
    jobdb_int(db, sum->timed);
    jobdb_time(db, sum->timed ? sum->transfer_ns : CT_NO_TIME);
    jobdb_time(db, sum->timed ? sum->wait_ns : CT_NO_TIME);
    jobdb_time(db, sum->longest_ns);
    jobdb_int(db, sum->last);
    jobdb_int(db, sum->others_ns);
    jobdb_int(db, sum->kernels);
    jobdb_time(db, sum->kernels ? sum->kernel_ns : CT_NO_TIME);
    jobdb_end(db);
}

struct step_role_key {        /* no padding */
    int32_t step, role, link; /* role: enum ct_role_id; CT_NONE: none */
};

struct step_role {
    struct step_role_key key;
    int64_t runs, bytes, timed, transfer_ns, wait_ns;
};

static struct step_role_key step_role_of(const struct view *view,
                                         const struct key *key)
{
    const struct ct_role *role = view_role(view, key->usage);

    return (struct step_role_key){key->step, role ? (int)role->role : CT_NONE,
                                  (int)view->job->usages[key->usage].link};
}

static void add_sum(struct step_role *to, const struct ct_process *p,
                    const struct sum *sum)
{
    to->runs = ct_add_time(to->runs, sum->runs);
    add_time(&to->bytes, 1, bytes_of(p, sum));
    to->timed = ct_add_time(to->timed, sum->timed);
    add_time(&to->transfer_ns, 1, sum->transfer_ns);
    add_time(&to->wait_ns, 1, sum->wait_ns);
}

static void put_step_role(struct jobdb *db, int process, int id,
                          const struct step_role *r)
{
    jobdb_start(db, JOBDB_T_step_role);
    jobdb_int(db, process);
    jobdb_int(db, id);
    jobdb_index(db, r->key.step);
    jobdb_text(db, r->key.role == CT_NONE ? NULL : ct_role_names[r->key.role]);
    jobdb_int(db, r->key.link);
    jobdb_int(db, r->runs);
    jobdb_int(db, r->bytes);
    jobdb_time(db, r->timed ? r->transfer_ns : CT_NO_TIME);
    jobdb_time(db, r->timed ? r->wait_ns : CT_NO_TIME);
    jobdb_end(db);
}

static void put_step_roles(struct jobdb *db, const struct sums *sums)
{
    struct ct_intern keys = {0};
    struct step_role *rows = ct_alloc((size_t)sums->keys.n + 1, sizeof *rows);

    for (int i = 0; i < sums->keys.n; i++) {
        struct step_role_key key;
        int at;

        if (sums->sums[i].key.usage == CT_NONE)
            continue;
        key = step_role_of(sums->job->view, &sums->sums[i].key);
        at = ct_intern_add(&keys, &key, sizeof key);
        rows[at].key = key;
        add_sum(&rows[at], sums->process, &sums->sums[i]);
    }
    for (int i = 0; i < keys.n && !db->error[0]; i++)
        put_step_role(db, sums->number, i, &rows[i]);
    ct_intern_release(&keys);
    free(rows);
}

void jobdb_put_sums(struct jobdb *db, const struct jobdb_job *job, int process)
{
    struct sums sums = {.job = job,
                        .number = process,
                        .process = &job->view->trace->processes[process]};

    add_all(&sums);
    for (int i = 0; i < sums.keys.n && !db->error[0]; i++)
        put_sum(db, &sums, i);
    put_step_roles(db, &sums);
    ct_intern_release(&sums.keys);
    free(sums.sums);
    free(sums.captured);
    free(sums.first);
}
