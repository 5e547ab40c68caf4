#include "report/sections.h"

#include <math.h>
#include <stdio.h>

#include "report/units.h"

const char *const section_source_names[CT_SOURCE_COUNT] = {
    [CT_SOURCE_FIT] = "this job's own fit",
    [CT_SOURCE_REFERENCE] = "the reference trace",
    [CT_SOURCE_PRIOR] = "the prior of the link class",
};

static const char *const source_keys[CT_SOURCE_COUNT] = {
    [CT_SOURCE_FIT] = "fit",
    [CT_SOURCE_REFERENCE] = "reference",
    [CT_SOURCE_PRIOR] = "prior",
};

struct finding_line {
    const char *code, *severity;
    int comm, groups;
    double observed_ms, predicted_ms, loss_ms, loss_low_ms, loss_high_ms;
    const char *per, *source;
    double confidence;
    const char *text, *advice, *meaning;
};

static const struct out_column columns[] = {
    OUT_COL(struct finding_line, code, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct finding_line, severity, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct finding_line, comm, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct finding_line, groups, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct finding_line, observed_ms, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct finding_line, predicted_ms, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct finding_line, loss_ms, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct finding_line, loss_low_ms, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct finding_line, loss_high_ms, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct finding_line, per, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct finding_line, source, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct finding_line, confidence, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct finding_line, text, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct finding_line, advice, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct finding_line, meaning, "", OUT_TEXT, 0, OUT_BOTH),
};

static const struct out_table table = OUT_TABLE(struct finding_line, columns);

static void fill(struct finding_line *line, const struct ct_finding_row *row)
{
    const struct ct_finding_info *info = &ct_finding_infos[row->id];
    bool priced = !isnan(row->loss_ms);

    line->code = info->code;
    line->severity = info->severity;
    line->meaning = info->meaning;
    line->comm = row->comm;
    line->groups = row->groups ? row->groups : CT_NONE;
    line->observed_ms = row->observed_ms;
    line->predicted_ms = row->predicted_ms;
    line->loss_ms = row->loss_ms;
    line->loss_low_ms = row->loss_low_ms;
    line->loss_high_ms = row->loss_high_ms;
    line->per = priced ? row->per : NULL;
    line->source = isnan(row->predicted_ms) ? NULL : source_keys[row->source];
    line->confidence = row->confidence;
    line->text = row->text;
    line->advice = row->advice;
}

static void say_finding(struct out *out, const struct ct_finding_row *row)
{
    const struct ct_finding_info *info = &ct_finding_infos[row->id];
    char sure[UNITS_SIZE];

    out_say(out, 2, "%s (%s, sure %s): %s", info->code, info->severity,
            units_sure(sure, row->confidence),
            row->text[0] ? row->text : info->meaning);
    if (row->advice[0])
        out_say(out, 4, "-> %s", row->advice);
}

void section_findings(struct out *out, const struct view *view)
{
    const struct ct_findings *findings = view->findings;

    out_title(out, "FINDINGS", NULL);
    out_list(out, "findings");
    for (int i = 0; i < findings->n; i++) {
        struct finding_line line;

        fill(&line, &findings->rows[i]);
        out_record(out, NULL, &table, &line);
        say_finding(out, &findings->rows[i]);
    }
    out_list_end(out);
    if (!findings->n)
        out_say(out, 2, "none");
}
