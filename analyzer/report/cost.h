/* Fills view->per, costs and times from the job's instances. */
#ifndef COMMTRACE_REPORT_COST_H
#define COMMTRACE_REPORT_COST_H

struct view;

int cost_measure(struct view *view);

#endif
