#include "report/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *units_size(char buffer[UNITS_SIZE], uint64_t bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < sizeof names / sizeof names[0]) {
        value /= 1024;
        unit++;
    }
    snprintf(buffer, UNITS_SIZE,
             value < 100 && value != floor(value) ? "%.1f %s" : "%.0f %s",
             value, names[unit]);
    return buffer;
}

const char *units_real(char buffer[UNITS_SIZE], double value, int digits)
{
    int decimals = 0;

    if (!isfinite(value)) {
        snprintf(buffer, UNITS_SIZE, "n/a");
        return buffer;
    }
    if (value != 0) {
        decimals = digits - 1 - (int)floor(log10(fabs(value)));
        /* 0.9996 is 1.00, not 1.000. */
        if (round(fabs(value) * pow(10, decimals)) >= pow(10, digits))
            decimals--;
        decimals = decimals < 0 ? 0 : decimals > 4 ? 4 : decimals;
    }
    if (round(value * pow(10, decimals)) == 0)
        value = 0; /* no "-0.0" */
    snprintf(buffer, UNITS_SIZE, "%.*f", decimals, value);
    return buffer;
}

const char *units_sure(char buffer[UNITS_SIZE], double confidence)
{
    if (confidence < 1 && confidence >= .995)
        snprintf(buffer, UNITS_SIZE, "> 0.99");
    else
        snprintf(buffer, UNITS_SIZE, "%.2f", confidence);
    return buffer;
}

/* Length of the run of equal distances that starts at ranks[0]. */
static int run_length(const int *ranks, int n)
{
    int length = n < 2 ? n : 2;

    while (length < n &&
           ranks[length] - ranks[length - 1] == ranks[1] - ranks[0])
        length++;
    return length;
}

static int put_run(char *buffer, size_t size, const int *ranks, int length)
{
    int step = length > 1 ? ranks[1] - ranks[0] : 1;

    if (length == 1)
        return snprintf(buffer, size, "%d", ranks[0]);
    if (step == 1)
        return snprintf(buffer, size, "%d-%d", ranks[0], ranks[length - 1]);
    return snprintf(buffer, size, "%d-%d:%d", ranks[0], ranks[length - 1],
                    step);
}

const char *units_ranks(char *buffer, size_t size, const int *ranks, int n)
{
    size_t used = 0;

    buffer[0] = '\0';
    for (int i = 0; i < n;) {
        char run[3 * UNITS_SIZE];
        int length = run_length(ranks + i, n - i);

        /* Two numbers are clearer as such. */
        if (length == 2 && (n > 2 || ranks[i + 1] != ranks[i] + 1))
            length = 1;
        put_run(run, sizeof run, ranks + i, length);
        if (used + strlen(run) + sizeof ",,..." > size) {
            snprintf(buffer + used, size - used, ",...");
            break;
        }
        used += (size_t)snprintf(buffer + used, size - used, "%s%s",
                                 used ? "," : "", run);
        i += length;
    }
    return buffer;
}
