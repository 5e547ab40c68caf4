#include "trace/select.h"

int64_t ct_nth(int64_t *values, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;

    while (low < high) {
        int64_t pivot = values[low + (high - low) / 2], i = low, j = high;

        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i <= j) {
                int64_t swap = values[i];

                values[i++] = values[j];
                values[j--] = swap;
            }
        }
        if (k > j && k < i)
            break;
        if (k <= j)
            high = j;
        else
            low = i;
    }
    return values[k];
}
