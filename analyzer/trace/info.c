#include <math.h>
#include <stdio.h>

#include "trace/trace.h"

const struct ct_op_info ct_op_infos[CT_OP_COUNT] = {
#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, ...) \
    [CT_OP_##id_] = {.name = (name_),                                 \
                     .function = #fn_,                                \
                     .base = CT_OP_##base_,                           \
                     .cls = CT_##class_,                              \
                     .size = CT_##size_,                              \
                     .wire = CT_##wire_},
#include "commtrace/nccl_ops.def"
};

double ct_wire_factor(enum ct_op op, int nranks)
{
    double n = nranks > 0 ? nranks : 1;

    switch (ct_op_infos[op].wire) {
    case CT_RING:
        return (n - 1) / n;
    case CT_TWO_RING:
        return 2 * (n - 1) / n;
    case CT_UNIT:
        break;
    }
    return 1;
}

const char *ct_number(char text[CT_NUMBER_SIZE], double value, int digits)
{
    const double size = fabs(value);

    if (!isfinite(value))
        snprintf(text, CT_NUMBER_SIZE, "n/a");
    else if (size >= pow(10, digits) - .5 && size < 1e15)
        snprintf(text, CT_NUMBER_SIZE, "%.0f", value);
    else if (size > 0 && size < 1e-4)
        snprintf(text, CT_NUMBER_SIZE, "%.*f",
                 size < 1e-9 ? 9 : digits - 1 - (int)floor(log10(size)), value);
    else
        snprintf(text, CT_NUMBER_SIZE, "%.*g", digits, value);
    return text;
}

void ct_bytes_text(double bytes, char *text, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;

    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, size, "%.4g %s", bytes, units[unit]);
}
