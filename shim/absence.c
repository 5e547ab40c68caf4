#include "absence.h"

#include "texts.h"

#include <string.h>

enum { KINDS = 32 };

void absence_add(struct batch *batch, const char *what, const char *why)
{
    static const char *known[KINDS];
    int i = 0;
    while (i < KINDS && known[i] && strcmp(known[i], what) != 0)
        i++;
    if (i == KINDS || known[i])
        return;
    known[i] = text_keep(what);
    struct row *row = known[i] ? batch_add(batch, ROW_absence) : NULL;
    if (row)
        row->u.absence = (struct row_absence){known[i], text_keep(why)};
}
