/* Options and their values: each ends the program where it is not understood.
 */
#ifndef TRACEGEN_OPTION_VALUES_H
#define TRACEGEN_OPTION_VALUES_H

#include <stdbool.h>

struct options;

/* An option with a value; a table of them ends with one without name. */
struct option_row {
    const char *name, *value; /* value: what it looks like */
    void (*set)(struct options *o, const char *name, const char *value);
    const char *help;
};

/* Takes an option; false: it is not in the table. */
bool option_set(const struct option_row *rows, struct options *o,
                const char *name, const char *value);

_Noreturn void option_fail(const char *option, const char *text);

/* A number of at least low. */
double option_number(const char *option, const char *text, double low);
int option_int(const char *option, const char *text, int low);

/* Reads numbers that are separated by commas, all of them. */
void option_numbers(const char *option, const char *text, double *values,
                    int n);

/* N or N-M at the start of text; gives what follows. */
const char *option_range(const char *option, const char *text, int *from,
                         int *to);

#endif
