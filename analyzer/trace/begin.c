/*
 * Where the usual step begins. Before it, an evaluation or a checkpoint may
 * stand so often that it seems to be its beginning; but where other steps begin
 * later, and are alike from there on, all do.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/steps.h"

/* Calls of the segment after place at, from its end on, that are of the kinds
 * of those at the end of the usual one. */
static int alike_at_end(const struct ct_stream *s,
                        const struct ct_anchor *anchor, int at, int last)
{
    int n = 0;

    while (n < anchor->length && last - n > at &&
           ct_kind_at(s, last - n) == ct_kind_at(s, anchor->at - n))
        n++;
    return n;
}

/* late[n]: segments that are the last n calls of the usual one; what is before
 * them, if anything, is no call of it. */
static int *count_late(const struct ct_stream *s,
                       const struct ct_anchor *anchor)
{
    const struct ct_places p = ct_places_of(s, anchor);
    int *late = ct_alloc((size_t)anchor->length + 1, sizeof(*late)), i;
    int *usual =
        ct_segment_kinds(s, anchor->at + 1 - anchor->length, anchor->at);

    for (i = 0; i + 1 < p.n; i++) {
        const int n = alike_at_end(s, anchor, p.at[i], p.at[i + 1]);
        const int before = p.at[i + 1] - n;

        late[n] +=
            before == p.at[i] || !usual[s->tokens[s->token_at[before]].kind];
    }
    free(usual);
    return late;
}

/* A step may have a micro-batch less, but that is of the step. */
static bool is_apart(const struct ct_kind *kind)
{
    return !kind->p2p && (kind->small || !kind->sums);
}

/* Calls of the usual step from where more than a few segments begin on. */
static int common_length(const struct ct_stream *s,
                         const struct ct_anchor *anchor)
{
    const double few = (1 - CT_EQUAL_SHARE) * (ct_places_of(s, anchor).n - 1);
    int *late = count_late(s, anchor), n = anchor->length - 1;

    while (n > 0 && late[n] <= few && is_apart(ct_kind_at(s, anchor->at - n)))
        n--;
    if (n <= 0 || late[n] <= few || !is_apart(ct_kind_at(s, anchor->at - n)))
        n = anchor->length;
    free(late);
    return n;
}

void ct_anchor_begin(const struct ct_stream *s, struct ct_anchor *anchor)
{
    const int end = anchor->at + 1;
    int first;

    anchor->length = common_length(s, anchor);
    first = end - anchor->length;
    anchor->usual = s->hashes[end] - s->hashes[first];
    anchor->usual_kinds = s->kind_hashes[end] - s->kind_hashes[first];
}
