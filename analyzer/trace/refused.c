/*
 * Calls that NCCL answered with an error, or whose group it did, or that were
 * only simulated, or whose group never ended: nothing was launched and nobody
 * waits for them, so they are no communications. Their arguments may be
 * anything. The recorder counts them like all calls; ranks that had none would
 * count otherwise from then on, and so those that follow count without them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "trace/load.h"

enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 };

static bool is_error(uint32_t flags)
{
    const uint32_t result = flags >> CT_FLAG_RESULT_SHIFT;

    return result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS;
}

/* What decides: the call, else the end of its group. */
static uint32_t verdict_of(const struct ct_process *p,
                           const struct ct_op_row *op)
{
    if (is_error(op->flags) || op->launch == CT_NONE)
        return op->flags;
    return p->launches[op->launch].flags;
}

static bool is_refused(const struct ct_process *p, const struct ct_op_row *op)
{
    const uint32_t flags = verdict_of(p, op);

    return is_error(flags) || flags & CT_FLAG_SIMULATED;
}

bool ct_load_is_refused(struct ct_loader *loader, int64_t class)
{
    char sql[128];

    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM op WHERE class = %lld AND flags >> %d IN"
             " (%d, %d)",
             (long long)class, CT_FLAG_RESULT_SHIFT, NCCL_SUCCESS,
             NCCL_IN_PROGRESS);
    return ct_db_int(&loader->db, sql, 1) == 0;
}

/* Number of the sequence that op.ordinal counts in. */
static int sequence_of(struct ct_intern *keys, const struct ct_process *p,
                       const struct ct_op_row *op)
{
    const struct ct_op_class_row *class = &p->classes[op->cls];
    const enum ct_op_class cls = ct_op_infos[class->kind].cls;
    const bool collective = ct_is_collective(class->kind);
    const int key[3] = {class->comm, collective ? CT_NONE : (int)cls,
                        collective ? CT_NONE : class->peer};

    return ct_intern_add(keys, key, sizeof(key));
}

static void note(struct ct_process *p, const struct ct_op_row *op)
{
    const struct ct_op_class_row *class = &p->classes[op->cls];
    const uint32_t flags = verdict_of(p, op);

    if (!is_error(flags)) {
        p->simulated++;
        return;
    }
    if (p->refused++)
        return;
    p->first_refused = (struct ct_refusal){
        .kind = class->kind,
        .comm = class->comm,
        .result = (int)(flags >> CT_FLAG_RESULT_SHIFT),
    };
}

/* Places of the ops that stay; renumbers those. */
static int *keep(struct ct_process *p, int *n_p)
{
    int *place = ct_alloc((size_t)p->nops + 1, sizeof(*place));
    struct ct_intern sequences = {0};
    uint32_t *gone = NULL; /* by sequence */
    int i, n = 0, known = 0, capacity = 0;

    for (i = 0; i < p->nops; i++) {
        struct ct_op_row *op = &p->ops[i];
        const int sequence = sequence_of(&sequences, p, op);

        if (sequence == known) {
            gone = ct_grow(gone, &capacity, known, sizeof(*gone));
            gone[known++] = 0;
        }
        place[i] = n;
        if (is_refused(p, op)) {
            note(p, op);
            gone[sequence]++;
            continue;
        }
        op->ordinal -= op->ordinal < gone[sequence] ? 0 : gone[sequence];
        p->ops[n++] = *op;
    }
    place[p->nops] = n;
    ct_intern_release(&sequences);
    free(gone);
    *n_p = n;
    return place;
}

void ct_load_drop_refused(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    int i, n = 0, *place;

    for (i = 0; i < p->nops && !is_refused(p, &p->ops[i]); i++)
        ;
    if (i == p->nops)
        return;
    place = keep(p, &n);
    for (i = 0; i < p->nlaunches; i++) {
        struct ct_launch_row *launch = &p->launches[i];
        const int first = launch->first_op;

        if (first == CT_NONE)
            continue;
        launch->first_op = place[first];
        if (place[first] == n || p->ops[place[first]].launch != i)
            launch->first_op = CT_NONE;
    }
    p->nops = n;
    free(place);
}
