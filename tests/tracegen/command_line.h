/* The command line of tracegen. */
#ifndef TRACEGEN_COMMAND_LINE_H
#define TRACEGEN_COMMAND_LINE_H

struct options;

/* Ends the program where it is not understood, and where there cannot be such a
 * job. */
void command_line_read(struct options *o, int argc, char **argv);

#endif
