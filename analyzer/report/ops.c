#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/commands.h"
#include "report/view.h"

struct op_line {
    int rank, step, op;
    const char *kind, *role;
    int comm, peer;
    int64_t ordinal, group, count;
    const char *type;
    uint64_t bytes;
    int64_t runs;
    double enter_ms, host_us, gpu_us, kernel_us, transfer_us, wait_us;
    const char *algorithm, *protocol; /* as NCCL chose */
    int channels;
    char how[48]; /* the first two of them */
    char state[96];
};

static const struct out_column columns[] = {
    OUT_COL(struct op_line, rank, "rank", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct op_line, step, "step", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct op_line, op, "op", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct op_line, kind, "kind", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct op_line, role, "role", OUT_TEXT, 0, OUT_OPTIONAL),
    OUT_COL(struct op_line, comm, "comm", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct op_line, ordinal, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct op_line, peer, "peer", OUT_INT, 0, OUT_OPTIONAL),
    OUT_COL(struct op_line, group, "group", OUT_COUNT, 0, OUT_OPTIONAL),
    OUT_COL(struct op_line, count, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct op_line, type, "type", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct op_line, bytes, "size", OUT_SIZE, 0, OUT_BOTH),
    OUT_COL(struct op_line, runs, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct op_line, enter_ms, "at ms", OUT_REAL, 6, OUT_BOTH),
    OUT_COL(struct op_line, host_us, "", OUT_REAL, 3, OUT_DATA),
    OUT_COL(struct op_line, gpu_us, "gpu us", OUT_REAL, 4, OUT_BOTH),
    OUT_COL(struct op_line, kernel_us, "", OUT_REAL, 4, OUT_DATA),
    OUT_COL(struct op_line, transfer_us, "transfer", OUT_REAL, 4, OUT_BOTH),
    OUT_COL(struct op_line, wait_us, "wait us", OUT_REAL, 4, OUT_BOTH),
    OUT_COL(struct op_line, algorithm, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct op_line, protocol, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct op_line, channels, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct op_line, how, "NCCL's way", OUT_BUFFER, 0,
            OUT_TEXT_OPTIONAL),
    OUT_COL(struct op_line, state, "state", OUT_BUFFER, 0, OUT_OPTIONAL),
};

static const struct out_table table = OUT_TABLE(struct op_line, columns);

static const char *const type_names[CT_TYPE_COUNT] = {
#define TYPE(id_, value_, name_, bytes_) [CT_TYPE_##id_] = (name_),
#include "commtrace/nccl_types.def"
};

#define IN_FLIGHT (CT_FLAG_IN_CALL | CT_FLAG_RUNNING)

/* Filters, as indices. */
struct wanted {
    const struct cli *cli;
    int comm;                     /* CT_NONE: any */
    int role;                     /* CT_NONE: any */
    const struct ct_roles *roles; /* NULL: not asked for */
    int64_t left;                 /* lines that may follow; negative: any */
};

static bool is_kind(const struct ct_op_class_row *cls, const char *name)
{
    return !strcmp(name, ct_op_infos[cls->kind].name) ||
           !strcmp(name, ct_op_infos[cls->kind].function) ||
           !strcmp(name, ct_op_infos[cls->base].name);
}

static int role_of(const struct wanted *wanted, const struct ct_job *job,
                   const struct ct_op_row *op)
{
    int usage =
        op->instance == CT_NONE ? CT_NONE : job->instances[op->instance].usage;
    int role = usage == CT_NONE ? CT_NONE : wanted->roles->of_usage[usage];

    return role == CT_NONE ? (int)CT_ROLE_UNKNOWN
                           : (int)wanted->roles->roles[role].role;
}

static bool is_wanted(const struct wanted *wanted, const struct ct_job *job,
                      const struct ct_process *p, const struct ct_op_row *op)
{
    const struct ct_op_class_row *cls = &p->classes[op->cls];
    const struct cli *cli = wanted->cli;

    if (cli->step != CT_NONE &&
        ct_step_number(p, ct_op_step(p, op)) != cli->step)
        return false;
    if (cli->in_flight && !(op->flags & IN_FLIGHT))
        return false;
    if (cli->kind && !is_kind(cls, cli->kind))
        return false;
    if (wanted->comm != CT_NONE && p->comms[cls->comm].comm != wanted->comm)
        return false;
    return wanted->role == CT_NONE || role_of(wanted, job, op) == wanted->role;
}

static double us(int64_t ns)
{
    return ns == CT_NO_TIME ? NAN : (double)ns / 1e3;
}

/* Whatever is unusual about an op, in words. */
static void fill_state(char *state, size_t size, uint32_t flags, int64_t runs)
{
    static const struct {
        unsigned bit;
        const char *name;
    } words[] = {
        {CT_FLAG_IN_CALL, "in call"},     {CT_FLAG_RUNNING, "running"},
        {CT_FLAG_RECOVERED, "from ring"}, {CT_FLAG_CAPTURED, "captured"},
        {CT_FLAG_UNSAMPLED, "unsampled"}, {CT_FLAG_ZERO, "empty"},
        {CT_FLAG_TOLD, "told"},
    };
    unsigned result = flags >> CT_FLAG_RESULT_SHIFT;
    size_t used = 0;

    state[0] = '\0';
    if (flags & CT_FLAG_CUT)
        used = (size_t)snprintf(state, size, "aborted");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (flags & words[i].bit &&
            !(words[i].bit == CT_FLAG_RUNNING && flags & CT_FLAG_CUT))
            used += (size_t)snprintf(state + used, size - used, "%s%s",
                                     used ? ", " : "", words[i].name);
    if (flags & CT_FLAG_CAPTURED)
        used +=
            (size_t)snprintf(state + used, size - used, ", ran %" PRId64, runs);
    if (result)
        snprintf(state + used, size - used, "%sresult %u", used ? ", " : "",
                 result);
}

static void fill_times(struct op_line *line, const struct ct_trace *trace,
                       int process, int i)
{
    const struct ct_process *p = &trace->processes[process];
    const struct ct_op_row *op = &p->ops[i];
    const struct ct_kernel_row *kernel = ct_op_kernel(p, i);
    struct ct_op_cost cost;

    ct_op_cost(trace, process, i, &cost);
    line->enter_ms = (double)op->enter_ns / 1e6;
    line->host_us = us(ct_op_host_ns(op));
    line->gpu_us = us(ct_op_gpu_ns(op));
    line->kernel_us = kernel ? us(kernel->gpu_ns) : NAN;
    line->transfer_us = us(cost.transfer_ns);
    line->wait_us = us(cost.wait_ns);
}

static void fill_choice(struct op_line *line, const struct ct_trace *trace,
                        int process, int i)
{
    int told;
    const struct ct_choice_class_row *choice =
        ct_op_choice(trace, process, i, &told);

    line->algorithm = choice ? choice->algorithm : NULL;
    line->protocol = choice ? choice->protocol : NULL;
    line->channels = choice ? choice->channels : CT_NONE;
    if (line->algorithm && line->protocol)
        snprintf(line->how, sizeof line->how, "%s/%s", line->algorithm,
                 line->protocol);
}

static void fill_line(struct op_line *line, const struct wanted *wanted,
                      const struct ct_trace *trace, int process, int i)
{
    const struct ct_process *p = &trace->processes[process];
    const struct ct_job *job = &trace->jobs[p->job];
    const struct ct_op_row *op = &p->ops[i];
    const struct ct_op_class_row *cls = &p->classes[op->cls];

    line->rank = p->rank;
    line->step = ct_step_number(p, ct_op_step(p, op));
    line->op = i;
    line->kind = ct_op_infos[cls->kind].name;
    line->role = wanted->roles ? ct_role_names[role_of(wanted, job, op)] : NULL;
    line->comm = p->comms[cls->comm].comm;
    line->peer = cls->peer;
    line->ordinal = op->ordinal;
    line->group =
        op->launch == CT_NONE ? CT_NONE : (int64_t)p->launches[op->launch].grp;
    line->count = cls->count > INT64_MAX ? INT64_MAX : (int64_t)cls->count;
    line->type = cls->type >= 0 && cls->type < CT_TYPE_COUNT
                     ? type_names[cls->type]
                     : NULL;
    line->bytes = cls->bytes;
    line->runs = ct_op_runs(p, op);
    fill_times(line, trace, process, i);
    fill_choice(line, trace, process, i);
    fill_state(line->state, sizeof line->state, op->flags, line->runs);
}

static void put_process(struct out *out, struct wanted *wanted,
                        const struct ct_trace *trace, int process)
{
    const struct ct_process *p = &trace->processes[process];
    const struct ct_job *job = &trace->jobs[p->job];

    if (wanted->cli->rank != CT_NONE && p->rank != wanted->cli->rank)
        return;
    for (int i = 0; i < p->nops && wanted->left != 0; i++) {
        struct op_line line;

        if (!is_wanted(wanted, job, p, &p->ops[i]))
            continue;
        memset(&line, 0, sizeof line);
        fill_line(&line, wanted, trace, process, i);
        out_row(out, &line);
        wanted->left -= wanted->left > 0;
    }
}

/* One that no op has, where the job has none of that name. */
static int comm_in(const struct ct_job *job, const char *text)
{
    const int comm = ct_find_comm(job, text);

    return comm == CT_NONE ? job->ncomms : comm;
}

static int put_job(struct out *out, const struct view_input *input,
                   const struct cli *cli, int number)
{
    const struct ct_job *job = &input->trace->jobs[number];
    struct wanted wanted = {cli, CT_NONE, CT_NONE, NULL, cli->limit};
    struct ct_roles *roles = NULL;

    if (cli->comm)
        wanted.comm = comm_in(job, cli->comm);
    if (cli->role) {
        wanted.roles = roles = ct_roles_build(input->trace, job);
        if (!roles)
            return -1;
        for (int i = 0; i < CT_ROLE_COUNT; i++)
            if (!strcasecmp(cli->role, ct_role_names[i]))
                wanted.role = i;
    }
    out_table(out, "ops", &table);
    for (int i = 0; i < job->nprocesses; i++)
        put_process(out, &wanted, input->trace, job->processes[i]);
    out_table_end(out);
    ct_roles_free(roles);
    return 0;
}

#define NAMES_SIZE 1024

static void add_name(char *names, const char *name)
{
    const size_t used = strlen(names);

    snprintf(names + used, NAMES_SIZE - used, "%s%s", used ? ", " : "", name);
}

/* Several functions may do one operation. */
static bool is_named_before(int op)
{
    for (int i = 0; i < op; i++)
        if (!strcmp(ct_op_infos[i].name, ct_op_infos[op].name))
            return true;
    return false;
}

/* What the filters name must exist: a typing error would read as "no op". */
static int check_kind(const struct cli *cli)
{
    char names[NAMES_SIZE] = "";

    for (int i = 0; i < CT_OP_COUNT; i++) {
        if (!strcmp(cli->kind, ct_op_infos[i].name) ||
            !strcmp(cli->kind, ct_op_infos[i].function))
            return 0;
        if (!is_named_before(i))
            add_name(names, ct_op_infos[i].name);
    }
    return cli_fail(cli, "--kind: no operation is called '%s'; there are %s",
                    cli->kind, names);
}

static int check_role(const struct cli *cli)
{
    char names[NAMES_SIZE] = "";

    for (int i = 0; i < CT_ROLE_COUNT; i++) {
        if (!strcasecmp(cli->role, ct_role_names[i]))
            return 0;
        add_name(names, ct_role_names[i]);
    }
    return cli_fail(cli, "--role: no role is called '%s'; there are %s",
                    cli->role, names);
}

static int check_names(const struct cli *cli)
{
    const int status = cli->kind ? check_kind(cli) : 0;

    return status || !cli->role ? status : check_role(cli);
}

static int check_comm(const struct cli *cli, const struct ct_trace *trace)
{
    if (!cli->comm)
        return 0;
    for (int i = 0; i < trace->njobs; i++)
        if (ct_find_comm(&trace->jobs[i], cli->comm) != CT_NONE)
            return 0;
    return cli_fail(cli, "--comm: no communicator has number or uid '%s'",
                    cli->comm);
}

static int check_rank(const struct cli *cli, const struct ct_trace *trace)
{
    if (cli->rank == CT_NONE || view_has_rank(trace, cli->rank))
        return 0;
    return cli_fail(cli, "--rank: rank %d has no trace", cli->rank);
}

/* Steps of the rank that is asked for: where one is, the ops of others need
 * not have been read. */
static int check_step(const struct cli *cli, const struct ct_trace *trace)
{
    int steps = 0;

    for (int i = 0; i < trace->nprocesses; i++) {
        const struct ct_process *p = &trace->processes[i];
        const int own = view_steps(p);

        if ((cli->rank == CT_NONE || p->rank == cli->rank) && own > steps)
            steps = own;
    }
    if (cli->step < steps)
        return 0;
    if (!steps)
        return cli_fail(cli, "--step %d: no steps were found", cli->step);
    return cli_fail(cli, "--step %d: there are steps 0..%d", cli->step,
                    steps - 1);
}

int ops_run(const struct cli *cli)
{
    const struct ct_part part = {cli->rank, cli->comm};
    /* Roles are those of the whole job. */
    const bool some = !cli->role && (cli->comm || cli->rank != CT_NONE);
    struct view_input input;
    int status = check_names(cli);

    if (status)
        return status;
    if (view_input_open_part(&input, cli, some ? &part : NULL) < 0)
        return CLI_EXIT_INPUT;
    status = check_comm(cli, input.trace);
    if (!status)
        status = check_rank(cli, input.trace);
    if (!status)
        status = check_step(cli, input.trace);
    if (!status)
        status = view_print_jobs(cli, &input, put_job);
    view_input_close(&input);
    return status;
}
