/*
 * What a job hung in, or hangs in: who waits, and for whom.
 */
#ifndef COMMTRACE_STUCK_H
#define COMMTRACE_STUCK_H

#include "findings/rules.h"

#define CT_SENDER_CAME 1
#define CT_RECEIVER_CAME 2

struct ct_hang {
    const struct ct_trace *trace;
    const struct ct_job *job;
    int *first;          /* per communicator: of its members in issued */
    int64_t *issued;     /* per member: collectives */
    unsigned char *came; /* per instance: ends of a send/recv */
    int *waits_in;       /* per process of the trace: op; CT_NONE */
    bool *blamed;        /* per process of the trace: a finding names it */
};

enum ct_presence {
    CT_CAME,
    CT_ABSENT,
    CT_UNKNOWN /* its trace is missing or not whole */
};

/* Of rank of instance's communicator. */
enum ct_presence ct_stuck_presence(const struct ct_hang *hang,
                                   const struct ct_instance *instance,
                                   int rank);
bool ct_stuck_takes_part(const struct ct_hang *h,
                         const struct ct_instance *instance, int rank);

static inline bool ct_stuck_lives(const struct ct_process *p)
{
    return p->end_ns == CT_NO_TIME && !p->dead && !p->left;
}

/* How long op had been waiting when it was cut off or last seen, at least. */
int64_t ct_stuck_ns(const struct ct_process *process,
                    const struct ct_op_row *op);

/* Text and advice. */
void ct_stuck_tell(const struct ct_hang *hang,
                   const struct ct_instance *instance,
                   struct ct_finding_row *row);
/* Of ops that hung, too, and were not reported. */
void ct_stuck_tell_rest(int ops, struct ct_finding_row *row);

#endif
