/*
 * Which of what is regular is a step. What happens every few steps (an
 * evaluation, a checkpoint) is as regular as a step, and rarer; a micro-batch
 * and a layer are as regular, and more frequent. Told apart by what the rarer
 * one holds beside the more frequent one, so and so often:
 *   - sums of gradients, or the other direction of a pipeline: the frequent
 *     one is a part of a step;
 *   - a part of it once more, forward passes of an evaluation, say: it is the
 *     step, if it is whole by itself: sums scalars, or gradients of several
 *     sizes; however many these passes are, if they sum no gradients or call
 *     nothing else;
 *   - a few small calls: the frequent one is the step if it sums scalars of
 *     its own, else they are the norm of a step; without one in them, they are
 *     a checkpoint, if the frequent one holds several micro-batches.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/select.h"
#include "trace/steps.h"

#define PART 0.1           /* of its calls, that count as a part of it */
#define FORWARD_SHARE 0.75 /* of its calls, that evaluations add at most */
#define MORE 1.05          /* of the calls, that one is not a part of another */
#define FEWER 0.05         /* of the segments, that are alike */

#define MOST_CALLS 0.5 /* that are in steps, not between them */

#define SURE 1.0
#define GUESSED 0.65

struct extra { /* of the rarer one, beside the frequent one */
    int times; /* that it holds the frequent one */
    bool gradients;
    bool direction;  /* p2p that the frequent one lacks */
    bool kinds;      /* any of these */
    bool whole_sums; /* large sums of which there are no more */
    bool scalars;    /* norm, loss, that the frequent one lacks */
    int large, lacking;
    int others;  /* large ones that the frequent one lacks */
    double most; /* of large ones: share of those of the frequent one */
};

static int times_in(const struct ct_stream *s, const struct ct_level *outer,
                    const struct ct_level *inner)
{
    const struct ct_anchor *a = &outer->anchor;
    int o, n = 0;

    for (o = a->at + 1 - a->length; o <= a->at; o++)
        n += s->token_at[o] == inner->anchor.token;
    return n;
}

static void add_more(struct extra *extra, const struct ct_kind *kind, int more,
                     int usual)
{
    const double share = (double)more / usual / extra->times;

    if (kind->small)
        return;
    extra->large += more;
    extra->most = share > extra->most ? share : extra->most;
}

static struct extra extra_of(const struct ct_stream *s,
                             const struct ct_level *outer,
                             const struct ct_level *inner)
{
    struct extra extra = {.times = times_in(s, outer, inner)};
    int k;

    for (k = 0; k < s->nkinds; k++) {
        const struct ct_kind *kind = &s->kinds[k];
        const int more = outer->calls[k] - extra.times * inner->calls[k];

        if (more < 0)
            extra.lacking -= more;
        if (!more && inner->calls[k] && !kind->small && kind->sums)
            extra.whole_sums = true;
        if (more <= 0)
            continue;
        if (inner->calls[k]) {
            add_more(&extra, kind, more, inner->calls[k]);
            continue;
        }
        extra.kinds = true;
        extra.others += kind->small ? 0 : more;
        extra.gradients |= kind->sums && !kind->small;
        extra.scalars |= ct_kind_is_scalar(kind);
        extra.direction |= kind->p2p && more >= extra.times - 1;
    }
    return extra;
}

static bool sums_scalars(const struct ct_stream *s,
                         const struct ct_level *level)
{
    int k;

    for (k = 0; k < s->nkinds; k++)
        if (level->calls[k] && ct_kind_is_scalar(&s->kinds[k]))
            return true;
    return false;
}

/* How often each message comes at least; 0: there are none. */
static int times_of_messages(const struct ct_stream *s,
                             const struct ct_level *level)
{
    int k, n = 0;

    for (k = 0; k < s->nkinds; k++)
        if (level->calls[k] && s->kinds[k].p2p && (!n || level->calls[k] < n))
            n = level->calls[k];
    return n;
}

static int large_calls(const struct ct_stream *s, const struct ct_level *level)
{
    int k, n = 0;

    for (k = 0; k < s->nkinds; k++)
        n += s->kinds[k].small ? 0 : level->calls[k];
    return n;
}

/* The pause after the usual place of level, median; where none of the other
 * level ends. */
static int64_t pause_after(const struct ct_stream *s,
                           const struct ct_level *level)
{
    struct ct_places p = ct_places_of(s, &level->anchor);
    int64_t *pauses = ct_alloc((size_t)p.n, sizeof(*pauses)), middle = 0;
    int i, n = 0;

    for (i = 0; i < p.n; i++)
        if (p.at[i] + 1 < s->n)
            pauses[n++] =
                ct_stream_begin(s, p.at[i] + 1) - ct_stream_end(s, p.at[i]);
    if (n)
        middle = ct_nth(pauses, n, n / 2);
    free(pauses);
    return middle;
}

struct verdict {
    bool inner; /* is the step */
    double confidence;
    const char *doubt;
};

/* Only a few small calls tell them apart. */
static struct verdict by_small(const struct ct_stream *s,
                               const struct ct_level *outer,
                               const struct ct_level *inner,
                               const struct extra *extra)
{
    const int messages = times_of_messages(s, inner);

    if (sums_scalars(s, inner))
        return (struct verdict){true, CT_LIKELY, NULL};
    if (inner->sizes >= CT_DDP_SIZES && !inner->scatters)
        return (struct verdict){true, CT_PLAUSIBLE,
                                "gradients are summed more often than scalars"};
    if (messages && extra->scalars)
        return (struct verdict){false, CT_LIKELY, NULL};
    if (messages)
        return (struct verdict){messages > 1, CT_PLAUSIBLE,
                                "only a small call tells a step from a part"};
    if (pause_after(s, outer) > pause_after(s, inner))
        return (struct verdict){false, CT_PLAUSIBLE,
                                "only a small call tells a step from a part"};
    return (struct verdict){false, GUESSED,
                            "only a small call tells a step from a part"};
}

/* Calls that are in steps, if it is one. */
static double size_of(const struct ct_level *level)
{
    return level->equal * level->n * level->anchor.length;
}

static struct verdict weigh(const struct ct_stream *s,
                            const struct ct_level *outer,
                            const struct ct_level *inner)
{
    const struct extra extra = extra_of(s, outer, inner);
    const int large = large_calls(s, inner);

    if (extra.times < 2 && inner->equal >= outer->equal - FEWER &&
        size_of(inner) > MORE * size_of(outer))
        return (struct verdict){true, CT_LIKELY, NULL};
    if (extra.times < 2 || extra.gradients || extra.direction)
        return (struct verdict){false, SURE, NULL};
    if (extra.others >= 2 * extra.times) /* more than a checkpoint */
        return (struct verdict){false, CT_LIKELY, NULL};
    if (extra.lacking > PART * extra.times * large)
        return (struct verdict){false, CT_LIKELY, NULL};
    if (extra.large > PART * large) {
        if (sums_scalars(s, inner) &&
            (extra.most < FORWARD_SHARE || extra.whole_sums || !extra.kinds))
            return (struct verdict){true, CT_LIKELY, NULL};
        if (extra.most < FORWARD_SHARE && inner->sizes > 1 && extra.whole_sums)
            return (struct verdict){true, CT_LIKELY, NULL};
        if (sums_scalars(s, inner) || (inner->sizes > 1 && extra.whole_sums))
            return (struct verdict){
                false, CT_PLAUSIBLE,
                "parts of them may be steps, the rest an evaluation"};
        return (struct verdict){false, CT_LIKELY, NULL};
    }
    if (!extra.kinds)
        return (struct verdict){true, CT_LIKELY, NULL};
    return by_small(s, outer, inner, &extra);
}

bool ct_stream_period(const struct ct_stream *s, int steps,
                      struct ct_period *period)
{
    struct ct_levels levels;
    int i, step = 0;

    ct_levels_find(s, steps, &levels);
    *period = (struct ct_period){.confidence = 1};
    for (i = 1; i < levels.n; i++) {
        struct verdict verdict =
            weigh(s, &levels.levels[step], &levels.levels[i]);

        if (verdict.inner)
            step = i;
        if (verdict.confidence < period->confidence) {
            period->confidence = verdict.confidence;
            period->doubt = verdict.doubt;
        }
    }
    if (levels.n && levels.levels[step].inside < MOST_CALLS &&
        period->confidence > CT_PLAUSIBLE) {
        period->confidence = CT_PLAUSIBLE;
        period->doubt = "most of such calls are between them";
    }
    if (levels.n)
        period->anchor = levels.levels[step].anchor;
    ct_levels_release(&levels);
    return levels.n > 0;
}
