#include "layout.h"

#include <stdio.h>
#include <string.h>

static const char *const names[DIMENSIONS] = {"tp", "pp", "dp"};

static int parse_name(const char *text, size_t n, enum dimension *out)
{
    for (int d = 0; d < DIMENSIONS; d++) {
        if (strlen(names[d]) == n && !strncmp(names[d], text, n)) {
            *out = (enum dimension)d;
            return 0;
        }
    }
    return -1;
}

int layout_parse_order(struct layout *layout, const char *text)
{
    unsigned seen = 0;

    for (int i = 0; i < DIMENSIONS; i++) {
        size_t n = strcspn(text, "-");

        if (parse_name(text, n, &layout->order[i]))
            return -1;
        seen |= 1u << layout->order[i];
        text += n;
        if (i < DIMENSIONS - 1 && *text++ != '-')
            return -1;
    }
    return *text || seen != (1u << DIMENSIONS) - 1 ? -1 : 0;
}

int layout_world(const struct layout *layout)
{
    return layout->size[TP] * layout->size[PP] * layout->size[DP];
}

int layout_coordinate(const struct layout *layout, int rank,
                      enum dimension dimension)
{
    for (int i = 0; layout->order[i] != dimension; i++)
        rank /= layout->size[layout->order[i]];
    return rank % layout->size[dimension];
}

/* The rank's number when only the chosen dimensions count. */
static int number(const struct layout *layout, int rank, unsigned dimensions)
{
    int result = 0;
    int stride = 1;

    for (int i = 0; i < DIMENSIONS; i++) {
        enum dimension d = layout->order[i];

        if (!(dimensions & (1u << d)))
            continue;
        result += layout_coordinate(layout, rank, d) * stride;
        stride *= layout->size[d];
    }
    return result;
}

int layout_group(const struct layout *layout, int rank, unsigned dimensions)
{
    return number(layout, rank, ~dimensions);
}

int layout_place(const struct layout *layout, int rank, unsigned dimensions)
{
    return number(layout, rank, dimensions);
}
