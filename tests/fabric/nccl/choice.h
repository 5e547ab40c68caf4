/* What NCCL chooses for an op. */
#ifndef FABRIC_NCCL_CHOICE_H
#define FABRIC_NCCL_CHOICE_H

#include <stdint.h>

struct op;

struct choice {
    const char *algorithm; /* NULL: a send or recv has none */
    const char *protocol;
    int channels;
};

struct choice choice_of(const struct op *op);

#endif
