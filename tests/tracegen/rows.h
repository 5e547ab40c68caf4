/* The rows of op and launch of one rank's file, in its host's clock, with the
 * damage that the options ask for. */
#ifndef TRACEGEN_ROWS_H
#define TRACEGEN_ROWS_H

#include "output.h"
#include "writer.h"

int64_t stream_handle(int stream);

/* Adds the records of rank and notes in them under which id. */
void rows_put(struct writer *w, struct output *out, const struct options *o,
              struct rank *rank, int r);
/* Adds what was lost of them. */
void rows_put_losses(struct writer *w, const struct output *out);

#endif
