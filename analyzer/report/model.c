#include "report/commands.h"
#include "report/sections.h"

static int put_job(struct out *out, const struct view_input *input,
                   const struct cli *cli, int number)
{
    const struct ct_trace *trace = input->trace;
    struct view view = {.trace = trace,
                        .number = number,
                        .job = &trace->jobs[number],
                        .reference = input->reference};

    (void)cli;
    view.model = ct_model_build(trace, view.job);
    if (!view.model)
        return -1;
    section_fits(out, &view);
    section_predictions(out, &view, SECTION_ALL);
    ct_model_free(view.model);
    return 0;
}

int model_run(const struct cli *cli)
{
    return view_print(cli, put_job);
}
