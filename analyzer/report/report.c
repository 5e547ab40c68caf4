#include "report/commands.h"
#include "report/jobdb.h"
#include "report/sections.h"

/* Enough lines to see what matters, few enough for one screen. */
#define PREDICTIONS_SHOWN 12

static int put_job(struct out *out, const struct view_input *input,
                   const struct cli *cli, int number)
{
    struct families families;
    struct view view;

    (void)cli;
    if (view_open(&view, input, number) < 0)
        return -1;
    if (families_build(&families, &view) < 0) {
        view_close(&view);
        return -1;
    }
    section_selection(out, &view);
    section_verdict(out, &view, &families);
    section_job(out, &view);
    section_roles(out, &view, &families);
    section_links(out, &view);
    section_predictions(out, &view, PREDICTIONS_SHOWN);
    section_fits(out, &view);
    section_seed(out, &view, &families);
    section_findings(out, &view);
    section_quality(out, &view);
    families_release(&families);
    view_close(&view);
    return 0;
}

int report_run(const struct cli *cli)
{
    struct view_input input;
    int status = CLI_EXIT_INPUT;

    if (view_input_open(&input, cli) < 0)
        return status;
    if (!cli->db || jobdb_write(cli->db, &input, cli) == 0)
        status = view_print_jobs(cli, &input, put_job);
    view_input_close(&input);
    return status;
}
