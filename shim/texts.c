#include "texts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 4096 };

const char *text_keep(const char *text)
{
    static struct chunk {
        struct chunk *next;
        char text[];
    } * last;
    static size_t left;
    size_t n = text ? strlen(text) + 1 : 0;
    if (n <= 1)
        return NULL;
    if (n > left) {
        size_t room = n > CHUNK ? n : CHUNK;
        struct chunk *chunk = malloc(sizeof(*chunk) + room);
        if (!chunk)
            return NULL;
        chunk->next = last; /* none is ever freed, nor leaks */
        last = chunk;
        left = room;
    }
    left -= n;
    return memcpy(last->text + left, text, n);
}
