/* Values of options: each ends the program where it is not understood. */
#ifndef TRACEGEN_OPTION_VALUES_H
#define TRACEGEN_OPTION_VALUES_H

_Noreturn void option_fail(const char *option, const char *text);

/* A number of at least low. */
double option_number(const char *option, const char *text, double low);

/* Reads numbers that are separated by commas, all of them. */
void option_numbers(const char *option, const char *text, double *values,
                    int n);

/* N or N-M at the start of text; gives what follows. */
const char *option_range(const char *option, const char *text, int *from,
                         int *to);

#endif
