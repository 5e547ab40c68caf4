/* What communication costs a rank. */
#ifndef COMMTRACE_REPORT_COST_H
#define COMMTRACE_REPORT_COST_H

struct view;

/* Fills view->per, costs and times. Returns 0, or -1 without memory. */
int cost_measure(struct view *view);

#endif
