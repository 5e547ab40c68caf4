/* Stretches of the sequence of calls, compared by what is called in them. */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/steps.h"

/* Calls of a step that may be others than usual. */
#define FEW(length_) (2 + (length_) / 50)

int *ct_segment_kinds(const struct ct_stream *s, int first, int last)
{
    int *calls = ct_alloc((size_t)s->nkinds, sizeof(*calls)), o;

    for (o = first; o <= last; o++)
        calls[s->tokens[s->token_at[o]].kind]++;
    return calls;
}

/* Calls that first..last has too many or too few of. */
static int difference(const struct ct_stream *s, const int *usual, int first,
                      int last, int *messages)
{
    int *calls = ct_segment_kinds(s, first, last), k, n = 0;

    *messages = 0;
    for (k = 0; k < s->nkinds; k++) {
        n += abs(calls[k] - usual[k]);
        *messages += s->kinds[k].small ? 0 : abs(calls[k] - usual[k]);
    }
    free(calls);
    return n;
}

int ct_segment_start(const struct ct_stream *s, const struct ct_anchor *anchor,
                     const int *usual, int first, int last)
{
    const int few = FEW(anchor->length);
    const int middle = last + 1 - anchor->length;
    int best = middle, least = INT32_MAX, k;

    for (k = 0; k <= 2 * few; k++) {
        /* The nearest first: middle, 1 before, 1 after, ... */
        const int start = middle + (k % 2 ? -(k + 1) / 2 : k / 2);
        int messages, n;

        if (start < first || start > last)
            continue;
        n = difference(s, usual, start, last, &messages);
        if (n < least) {
            least = n;
            best = start;
        }
    }
    return best;
}

bool ct_segment_alike(const struct ct_stream *s, const struct ct_anchor *anchor,
                      const int *usual, int first, int last)
{
    const int few = FEW(anchor->length);
    int messages;

    if (first < 0 || abs(last + 1 - first - anchor->length) > few)
        return false;
    return difference(s, usual, first, last, &messages) <= few &&
           (!messages || s->lossy);
}
