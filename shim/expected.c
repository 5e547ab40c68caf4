#include "expected.h"

#include <stdlib.h>

static struct expected *at(const struct expected_list *list, uint64_t i)
{
    return &list->items[i & (list->room - 1)];
}

static void drop_met(struct expected_list *list)
{
    while (list->first != list->end && at(list, list->first)->met)
        list->first++;
}

/* Without more memory the room stays as it is. */
static void grow(struct expected_list *list)
{
    struct expected_list more = *list;
    more.room = list->room ? 2 * list->room : 64;
    if (more.room > list->most ||
        !(more.items = malloc(more.room * sizeof(*more.items))))
        return;
    for (uint64_t i = list->first; i != list->end; i++)
        *at(&more, i) = *at(list, i);
    free(list->items);
    *list = more;
}

void expected_add(struct expected_list *list, const struct expected *call)
{
    if (list->end - list->first == list->room)
        grow(list);
    if (!list->room)
        return;
    if (list->end - list->first == list->room)
        list->first++;
    *at(list, list->end++) = *call;
    drop_met(list);
}

static bool is_like(const struct expected *a, const struct expected *b)
{
    return a->op == b->op && a->kind == b->kind && a->bytes == b->bytes &&
           a->peer == b->peer;
}

const struct expected *expected_find(struct expected_list *list,
                                     const struct expected *like)
{
    for (uint64_t i = list->first; i != list->end; i++) {
        struct expected *call = at(list, i);
        if (call->met || !is_like(call, like))
            continue;
        call->met = true;
        drop_met(list);
        return call;
    }
    return NULL;
}

void expected_drop_launches(struct expected_list *list, int64_t before)
{
    while (list->first != list->end && at(list, list->first)->launch < before)
        list->first++;
}

static void move_up(struct expected_list *list, uint64_t after, int32_t peer)
{
    for (uint64_t i = after + 1; i != list->end; i++)
        at(list, i)->n -= at(list, i)->peer == peer;
}

void expected_drop_group(struct expected_list *list, uint64_t grp,
                         void (*dropped)(void *arg, int32_t peer), void *arg)
{
    for (uint64_t i = list->first; i != list->end; i++) {
        struct expected *call = at(list, i);
        if (call->met || call->grp != grp)
            continue;
        call->met = true;
        move_up(list, i, call->peer);
        dropped(arg, call->peer);
    }
    drop_met(list);
}

void expected_release(struct expected_list *list)
{
    free(list->items);
    *list = (struct expected_list){.most = list->most};
}
