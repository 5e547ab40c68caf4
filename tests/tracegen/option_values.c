#include "option_values.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool option_set(const struct option_row *rows, struct options *o,
                const char *name, const char *value)
{
    for (; rows->name; rows++)
        if (!strcmp(rows->name, name)) {
            rows->set(o, name, value);
            return true;
        }
    return false;
}

void option_fail(const char *option, const char *text)
{
    fprintf(stderr, "tracegen: --%s %s: not understood\n", option, text);
    exit(2);
}

double option_number(const char *option, const char *text, double low)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value >= low && value < 1e15))
        option_fail(option, text);
    return value;
}

int option_int(const char *option, const char *text, int low)
{
    const double value = option_number(option, text, low);

    if (value > INT_MAX)
        option_fail(option, text);
    return (int)value;
}

void option_numbers(const char *option, const char *text, double *values, int n)
{
    const char *at = text;
    int i;

    for (i = 0; i < n; i++) {
        char *end;

        values[i] = strtod(at, &end);
        if (end == at || *end != (i + 1 < n ? ',' : 0) ||
            !(values[i] > -1e15 && values[i] < 1e15))
            option_fail(option, text);
        at = end + 1;
    }
}

const char *option_range(const char *option, const char *text, int *from,
                         int *to)
{
    char *end, *second;

    *from = *to = (int)strtol(text, &end, 10);
    if (end == text || *from < 0)
        option_fail(option, text);
    if (*end == '-') {
        second = end + 1;
        *to = (int)strtol(second, &end, 10);
        if (end == second || *to < *from)
            option_fail(option, text);
    }
    return end;
}
