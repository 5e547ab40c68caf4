/*
 * How the ranks of a job are cut into tensor-, pipeline- and data-parallel
 * groups. An order such as tp-dp-pp names the dimensions, innermost first.
 */
#ifndef JOBS_LAYOUT_H
#define JOBS_LAYOUT_H

enum dimension { TP, PP, DP, DIMENSIONS };

struct layout {
    int size[DIMENSIONS];
    enum dimension order[DIMENSIONS];
};

/* -1 when the text does not name each dimension once. */
int layout_parse_order(struct layout *layout, const char *text);
int layout_world(const struct layout *layout);
int layout_coordinate(const struct layout *layout, int rank,
                      enum dimension dimension);

/* The number of the rank's group, and its place in it, when the given
 * dimensions (1 << TP, ...) vary inside the group and the others are fixed. */
int layout_group(const struct layout *layout, int rank, unsigned dimensions);
int layout_place(const struct layout *layout, int rank, unsigned dimensions);

#endif
