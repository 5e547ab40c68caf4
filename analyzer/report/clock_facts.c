#include "report/clock_facts.h"

const char *const ct_clock_tie_names[] = {
    [CT_TIE_NONE] = NULL,
    [CT_TIE_COLLECTIVES] = "collectives",
    [CT_TIE_P2P] = "send/recv",
};

double clock_offset_ns(const struct ct_clock *clock)
{
    return (double)(clock->first_ns - ct_clock_common(clock, clock->first_ns));
}

double clock_drift_ppm(const struct ct_clock *clock)
{
    const int64_t first = clock->first_ns, last = clock->last_ns;
    const int64_t common =
        ct_clock_common(clock, last) - ct_clock_common(clock, first);

    if (last <= first || common <= 0)
        return -1e6 * clock->pieces[0].rate;
    return 1e6 * ((double)(last - first) / (double)common - 1);
}
