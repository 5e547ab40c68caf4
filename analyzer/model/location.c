#include <math.h>
#include <stdlib.h>

#include "model/fit.h"

static int compare_doubles(const void *pa, const void *pb)
{
    const double a = *(const double *)pa;
    const double b = *(const double *)pb;

    return (a > b) - (a < b);
}

/* Mean of the sorted us that lie in [low, high]; relative deviation there. */
static double mean_within(const double *us, int64_t n, double low, double high,
                          double *spread_p)
{
    double sum = 0, squares = 0;
    int64_t k = 0;

    for (int64_t i = 0; i < n; i++) {
        if (us[i] < low || us[i] > high)
            continue;
        sum += us[i];
        squares += us[i] * us[i];
        k++;
    }
    const double mean = sum / (double)k;
    const double variance = squares / (double)k - mean * mean;

    *spread_p = variance > 0 && mean > 0 ? sqrt(variance) / mean : 0;
    return mean;
}

double ct_location(double *us, int64_t n, double *spread_p)
{
    const int64_t half = n / 2 + 1;
    int64_t best = 0;

    qsort(us, (size_t)n, sizeof *us, compare_doubles);
    if (n < 5) { /* too few for a shortest half: the lower middle */
        const double middle = us[(n - 1) / 2];

        *spread_p = n > 1 ? (us[n - 1] - us[0]) / 2 / middle : .05;
        return middle;
    }
    for (int64_t i = 1; i + half <= n; i++)
        if (us[i + half - 1] - us[i] < us[best + half - 1] - us[best])
            best = i;
    const double middle = (us[best] + us[best + half - 1]) / 2;
    const double reach = (us[best + half - 1] - us[best]) * 1.5 + middle * 1e-9;

    return mean_within(us, n, middle - reach, middle + reach, spread_p);
}
