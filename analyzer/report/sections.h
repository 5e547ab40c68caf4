/*
 * The sections of `commtrace report`, in their order. Each writes one member of
 * the job's object in JSON, one titled block in text.
 */
#ifndef COMMTRACE_REPORT_SECTIONS_H
#define COMMTRACE_REPORT_SECTIONS_H

#include "report/family.h"

#define SECTION_ALL (-1)

/* Nothing where the whole job is reported. */
void section_selection(struct out *out, const struct view *view);
/* Ranks that are chosen. */
void selection_ranks_text(const struct view *view, char *text, size_t size);

void section_verdict(struct out *out, const struct view *view,
                     const struct families *families);
void section_job(struct out *out, const struct view *view);
void section_roles(struct out *out, const struct view *view,
                   const struct families *families);
void section_links(struct out *out, const struct view *view);

/* Observed beside predicted, and the fits. most: lines at most, the dearest
 * first chosen; the rest is left to `commtrace model`. */
void section_predictions(struct out *out, const struct view *view, int most);
void section_fits(struct out *out, const struct view *view);

/* The textbook's figures beside the job's. */
void section_seed(struct out *out, const struct view *view,
                  const struct families *families);
void section_findings(struct out *out, const struct view *view);

/* Part of the section of data quality. */
void section_graphs(struct out *out, const struct view *view);
void section_absences(struct out *out, const struct view *view);
void section_met(struct out *out, const struct view *view);
void section_clocks(struct out *out, const struct view *view);
void section_choices(struct out *out, const struct view *view);
void section_quality(struct out *out, const struct view *view);

extern const char *const section_source_names[CT_SOURCE_COUNT];

#endif
