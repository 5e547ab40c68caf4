/* What reports say of a clock that is tied to the common time. */
#ifndef COMMTRACE_REPORT_CLOCK_FACTS_H
#define COMMTRACE_REPORT_CLOCK_FACTS_H

#include "trace/clocks.h"

extern const char *const ct_clock_tie_names[];

/* How far it was ahead of the common time at its first tie. */
double clock_offset_ns(const struct ct_clock *clock);

/* How much faster it ran, over the time of its ties. */
double clock_drift_ppm(const struct ct_clock *clock);

#endif
