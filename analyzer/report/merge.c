/* `commtrace merge`: job.db, and with --json what went into it. */
#include "report/commands.h"
#include "report/jobdb.h"
#include "report/view.h"

struct merged {
    const char *db;
    int64_t processes, communicators, ops;
};

static const struct out_column columns[] = {
    OUT_COL(struct merged, db, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct merged, processes, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct merged, communicators, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct merged, ops, "", OUT_COUNT, 0, OUT_BOTH),
};

static const struct out_table table = OUT_TABLE(struct merged, columns);

static int put_job(struct out *out, const struct view_input *input,
                   const struct cli *cli, int number)
{
    const struct ct_job *job = &input->trace->jobs[number];
    struct merged merged = {.db = cli->db,
                            .processes = job->nprocesses,
                            .communicators = job->ncomms};

    for (int i = 0; i < job->nprocesses; i++)
        merged.ops += input->trace->processes[job->processes[i]].nops;
    out_fields(out, &table, &merged);
    return 0;
}

int merge_run(const struct cli *cli)
{
    struct view_input input;
    int status = 0;

    if (!cli->db)
        return cli_fail(cli, "--db FILE is missing");
    if (view_input_open(&input, cli) < 0)
        return CLI_EXIT_INPUT;
    if (jobdb_write(cli->db, &input, cli) < 0)
        status = CLI_EXIT_INPUT;
    else if (cli->json)
        status = view_print_jobs(cli, &input, put_job);
    view_input_close(&input);
    return status;
}
