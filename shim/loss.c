#include "loss.h"

static const char *const causes[] = {
#define X(id_, cause_, what_) cause_,
    LOSSES(X)
#undef X
};

static const char *const whats[] = {
#define X(id_, cause_, what_) what_,
    LOSSES(X)
#undef X
};

void losses_add(struct losses *losses, enum loss loss, uint64_t n,
                int64_t since_ns, int64_t now_ns)
{
    if (!n)
        return;
    if (!losses->of[loss].n)
        losses->of[loss].first_ns = since_ns;
    losses->of[loss].n += n;
    losses->of[loss].last_ns = now_ns;
}

void losses_reach(struct losses *losses, enum loss loss, uint64_t total,
                  int64_t since_ns, int64_t now_ns)
{
    losses_add(losses, loss, total - losses->of[loss].n, since_ns, now_ns);
}

void losses_tell(struct losses *losses, struct batch *batch)
{
    for (int i = 0; i < LOSS_COUNT; i++) {
        if (losses->of[i].n == losses->of[i].told)
            continue;
        struct row *row = batch_add(batch, ROW_loss);
        if (!row)
            return;
        row->rowid = i + 1;
        row->u.loss = (struct row_loss){
            .cause = causes[i],
            .what = whats[i],
            .comm = CT_NULL,
            .n = (int64_t)losses->of[i].n,
            .first_ns = losses->of[i].first_ns,
            .last_ns = losses->of[i].last_ns,
        };
        losses->of[i].told = losses->of[i].n;
    }
}
