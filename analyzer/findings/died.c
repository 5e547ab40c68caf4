/*
 * PROCESS_DIED: who ended without closing its trace, who of them was the first,
 * and what it was doing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/rules.h"
#include "trace/clocks.h"

/* A process that communicates leaves a sign of life every second: less says
 * nothing about who was first. */
#define SIGN_NS INT64_C(2500000000)
#define CLOCK_ERROR_NS 1e8
#define UNSURE .5 /* on another host, or with its ring refused: may live */

struct silence { /* the dead, by their last sign of life */
    const struct ct_process *first;
    int64_t first_ns, second_ns; /* of its sign, and of the next one's */
    bool comparable;
};

static int64_t last_sign(const struct ct_trace *trace,
                         const struct ct_process *p)
{
    return ct_common_ns(trace, p, p->last_ns);
}

static struct silence compare_silence(const struct ct_trace *trace,
                                      const struct ct_process *const *dead,
                                      int n)
{
    struct silence s = {.comparable = true};

    for (int i = 0; i < n; i++) {
        const int64_t sign = last_sign(trace, dead[i]);

        s.comparable &= ct_common_error(trace, dead[0], dead[i],
                                        dead[0]->last_ns) < CLOCK_ERROR_NS;
        if (!s.first || sign < s.first_ns) {
            s.second_ns = s.first_ns;
            s.first = dead[i];
            s.first_ns = sign;
        } else if (i == 1 || sign < s.second_ns) {
            s.second_ns = sign;
        }
    }
    return s;
}

static void describe_last(const struct ct_process *p, char *text, size_t size)
{
    const struct ct_op_row *op = p->nops ? &p->ops[p->nops - 1] : NULL;
    const struct ct_op_class_row *class;
    char bytes[24];

    *text = 0;
    if (!op)
        return;
    class = &p->classes[op->cls];
    ct_bytes_text((double)class->bytes, bytes, sizeof bytes);
    snprintf(text, size,
             "; the last call of rank %d, %s number %" PRIu32
             " (%s) of comm %d, %s",
             p->rank, ct_op_infos[class->kind].name, op->ordinal, bytes,
             p->comms[class->comm].comm,
             op->flags & CT_FLAG_CUT       ? "was aborted"
             : op->flags & CT_FLAG_IN_CALL ? "had not returned"
             : op->flags & CT_FLAG_RUNNING ? "is not known to have finished"
                                           : "had finished");
}

static void describe_first(const struct silence *s, int dead, char *text,
                           size_t size)
{
    const int64_t gap = s->second_ns - s->first_ns;

    *text = 0;
    if (dead == 1)
        return;
    if (!s->comparable)
        snprintf(text, size, "; which was first cannot be told between hosts");
    else if (gap < SIGN_NS)
        snprintf(text, size,
                 "; which was first cannot be told: the last signs of the two "
                 "earliest are %s s apart",
                 CT_NUM((double)gap / 1e9, 3));
    else
        snprintf(text, size,
                 "; rank %d was the first to fall silent, %s s before the "
                 "next",
                 s->first->rank, CT_NUM((double)gap / 1e9, 3));
}

static int by_rank(const void *pa, const void *pb)
{
    const int a = *(const int *)pa, b = *(const int *)pb;

    return (a > b) - (a < b);
}

static bool tell(const struct ct_case *c, const struct ct_process **dead,
                 int *ranks, int n, struct ct_findings *findings)
{
    struct ct_finding_row *row =
        ct_finding_add(findings, CT_FINDING_PROCESS_DIED);
    const struct silence s = compare_silence(c->trace, dead, n);
    char first[160], last[300] = "", who[80];
    int recovered = 0, unsure = 0;

    if (!row)
        return false;
    for (int i = 0; i < n; i++) {
        recovered += dead[i]->recovered;
        unsure += dead[i]->ring_missing;
    }
    qsort(ranks, (size_t)n, sizeof *ranks, by_rank);
    ct_rank_list(ranks, n, who, sizeof who);
    describe_first(&s, n, first, sizeof first);
    for (int i = 0; i < n && n <= 2; i++)
        describe_last(dead[i], last + strlen(last), sizeof last - strlen(last));
    if (n > 2)
        describe_last(s.first, last, sizeof last);
    snprintf(row->text, sizeof row->text,
             "%d of %d processes ended without closing their trace (rank %s)%s"
             "%s%s; %d of their ops were read from the ring",
             n, c->job->nprocesses, who,
             unsure ? ", or run where they cannot be reached: their rings are "
                      "not here"
                    : "",
             first, last, recovered);
    if (unsure)
        row->confidence = UNSURE;
    snprintf(row->advice, sizeof row->advice,
             "see the ops in flight for what they were doing");
    return true;
}

bool ct_rule_died(const struct ct_case *c, struct ct_findings *findings)
{
    const size_t room = (size_t)c->job->nprocesses + 1;
    const struct ct_process **dead = malloc(room * sizeof(*dead));
    int *ranks = malloc(room * sizeof *ranks);
    bool good = dead && ranks;
    int n = 0;

    for (int i = 0; good && i < c->job->nprocesses; i++) {
        const struct ct_process *p = &c->trace->processes[c->job->processes[i]];

        if (!p->dead)
            continue;
        ranks[n] = p->rank;
        dead[n++] = p;
    }
    if (n > 0)
        good = tell(c, dead, ranks, n, findings);
    free((void *)dead);
    free(ranks);
    return good;
}
