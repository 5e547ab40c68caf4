#include "report/callers.h"

#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/intern.h"

struct frame_key {
    uint64_t module, offset;
};

struct search {
    struct callers *callers;
    const struct ct_trace *trace;
    struct ct_intern modules, stacks;
    struct frame_key *key;
    int key_capacity;
};

/* The same file on all hosts has one build id, wherever it lies. */
static uint64_t module_number(struct search *search,
                              const struct ct_module_row *module)
{
    const char *name = module->build_id ? module->build_id : module->path;

    return 1 + (uint64_t)ct_intern_add(&search->modules, name, strlen(name));
}

/* A number for what the stack consists of, the same on all ranks. */
static int content_of(struct search *search, const struct ct_process *p,
                      int stack)
{
    const struct ct_stack_row *row = &p->stacks[stack];
    int i;

    for (i = 0; i < row->depth; i++) {
        const struct ct_frame_row *frame = &p->frames[row->first_frame + i];

        search->key =
            ct_grow(search->key, &search->key_capacity, i, sizeof *search->key);
        search->key[i].module =
            frame->module == CT_NONE
                ? 0
                : module_number(search, &p->modules[frame->module]);
        search->key[i].offset = frame->offset;
    }
    search->key =
        ct_grow(search->key, &search->key_capacity, i, sizeof *search->key);
    search->key[i++] = (struct frame_key){row->cut, 0};
    return ct_intern_add(&search->stacks, search->key,
                         (size_t)i * sizeof *search->key);
}

static struct caller *caller_of(struct search *search, int process, int stack)
{
    struct callers *callers = search->callers;
    int content = content_of(search, &search->trace->processes[process], stack);

    if (content == callers->n) {
        callers->of = ct_grow(callers->of, &callers->capacity, callers->n,
                              sizeof *callers->of);
        callers->of[callers->n] = (struct caller){0};
        callers->of[callers->n].process = process;
        callers->of[callers->n++].stack = stack;
    }
    return &callers->of[content];
}

static void add_rank(struct caller *caller, int rank)
{
    if (rank == CT_NONE ||
        (caller->nranks && caller->ranks[caller->nranks - 1] == rank))
        return;
    caller->ranks = ct_grow(caller->ranks, &caller->capacity, caller->nranks,
                            sizeof *caller->ranks);
    caller->ranks[caller->nranks++] = rank;
}

/* Times of a damaged trace may be as large as they like. */
static int64_t sum(int64_t a, int64_t b)
{
    int64_t total;

    return __builtin_add_overflow(a, b, &total) ? INT64_MAX : total;
}

static uint64_t product(uint64_t a, int64_t b)
{
    uint64_t n = b > 0 ? (uint64_t)b : 0;

    return n && a > UINT64_MAX / 2 / n ? UINT64_MAX / 2 : a * n;
}

static void add_op(struct search *search, int process, int i,
                   struct caller *caller)
{
    const struct ct_process *p = &search->trace->processes[process];
    const struct ct_op_row *op = &p->ops[i];
    uint64_t bytes = product(p->classes[op->cls].bytes, ct_op_runs(p, op));
    struct ct_op_cost cost;

    ct_op_cost(search->trace, process, i, &cost);
    caller->calls += ct_op_runs(p, op);
    caller->bytes = caller->bytes > UINT64_MAX / 2 - bytes
                        ? UINT64_MAX / 2
                        : caller->bytes + bytes;
    if (cost.transfer_ns != CT_NO_TIME) {
        caller->timed++;
        caller->transfer_ns = sum(caller->transfer_ns, cost.transfer_ns);
    }
    if (cost.wait_ns != CT_NO_TIME)
        caller->wait_ns = sum(caller->wait_ns, cost.wait_ns);
    caller->kinds[p->classes[op->cls].kind] = true;
    add_rank(caller, p->rank);
}

static void add_process(struct search *search, int process)
{
    const struct ct_process *p = &search->trace->processes[process];
    int *callers = ct_alloc((size_t)p->nstacks + 1, sizeof *callers);

    for (int i = 0; i < p->nstacks; i++)
        callers[i] = CT_NONE;
    for (int i = 0; i < p->nops; i++) {
        int stack = p->classes[p->ops[i].cls].stack;

        if (stack == CT_NONE) {
            search->callers->unknown += ct_op_runs(p, &p->ops[i]);
            continue;
        }
        if (callers[stack] == CT_NONE)
            callers[stack] =
                (int)(caller_of(search, process, stack) - search->callers->of);
        add_op(search, process, i, &search->callers->of[callers[stack]]);
    }
    free(callers);
}

static int compare(const void *a, const void *b)
{
    const struct caller *x = a, *y = b;
    int64_t x_ns = sum(x->transfer_ns, x->wait_ns);
    int64_t y_ns = sum(y->transfer_ns, y->wait_ns);

    if (x_ns != y_ns)
        return x_ns > y_ns ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->calls != y->calls)
        return x->calls > y->calls ? -1 : 1;
    return x->process != y->process ? x->process - y->process
                                    : x->stack - y->stack;
}

void callers_find(struct callers *callers, const struct ct_trace *trace,
                  const struct ct_job *job, int rank)
{
    struct search search = {.callers = callers, .trace = trace};

    *callers = (struct callers){0};
    for (int i = 0; i < job->nprocesses; i++)
        if (rank == CT_NONE || trace->processes[job->processes[i]].rank == rank)
            add_process(&search, job->processes[i]);
    if (callers->n)
        qsort(callers->of, (size_t)callers->n, sizeof *callers->of, compare);
    ct_intern_release(&search.modules);
    ct_intern_release(&search.stacks);
    free(search.key);
}

void callers_release(struct callers *callers)
{
    for (int i = 0; i < callers->n; i++)
        free(callers->of[i].ranks);
    free(callers->of);
    *callers = (struct callers){0};
}
