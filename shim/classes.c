#include "classes.h"

#include "hash.h"

#include <string.h>

int classes_init(struct classes *classes)
{
    *classes = (struct classes){0};
    classes->entries = calloc(CLASSES, sizeof(*classes->entries));
    return classes->entries ? 0 : -1;
}

void classes_release(struct classes *classes)
{
    free(classes->entries);
    classes->entries = NULL;
}

static uint32_t stack_of(const struct ct_slot *slot)
{
    return slot->u.call.stack < CT_STACK_NO_MORE ? slot->u.call.stack : 0;
}

static uint64_t hash_slot(const struct ct_slot *slot)
{
    uint64_t small = (uint64_t)slot->comm << 32 | (uint64_t)slot->op << 16 |
                     (uint64_t)(slot->u.call.type & 0xff) << 8 |
                     (uint64_t)(slot->u.call.redop & 0xff);
    uint64_t rest = slot->u.call.count * 0x9e3779b97f4a7c15u ^
                    slot->u.call.stream * 0xc2b2ae3d27d4eb4fu ^
                    slot->u.call.site * 0x165667b19e3779f9u ^
                    (uint64_t)slot->u.call.graph * 0xd6e8feb86659fd93u ^
                    (uint64_t)stack_of(slot) << 32 ^
                    (uint64_t)(uint32_t)slot->u.call.peer;
    return hash_mix(hash_mix(small) ^ rest);
}

static bool is_same(const struct class_entry *entry, const struct ct_slot *slot)
{
    return entry->comm == slot->comm && entry->op == slot->op &&
           entry->count == slot->u.call.count &&
           entry->type == slot->u.call.type &&
           entry->redop == slot->u.call.redop &&
           entry->peer == slot->u.call.peer &&
           entry->stream == slot->u.call.stream &&
           entry->site == slot->u.call.site &&
           entry->graph == slot->u.call.graph &&
           entry->stack == stack_of(slot) && entry->id;
}

static void fill(struct class_entry *entry, const struct ct_slot *slot,
                 int64_t id)
{
    *entry = (struct class_entry){
        .id = id,
        .comm = slot->comm,
        .op = slot->op,
        .type = slot->u.call.type,
        .redop = slot->u.call.redop,
        .peer = slot->u.call.peer,
        .count = slot->u.call.count,
        .stream = slot->u.call.stream,
        .site = slot->u.call.site,
        .graph = slot->u.call.graph,
        .stack = stack_of(slot),
    };
}

static void tell(const struct class_entry *entry, struct batch *batch)
{
    struct row *row = batch_add(batch, ROW_op_class);
    if (!row)
        return;
    row->u.op_class = (struct row_op_class){
        .id = entry->id,
        .comm = entry->comm,
        .kind = entry->op,
        .type = entry->type < 0 ? CT_NULL : entry->type,
        .redop = entry->redop < 0 ? CT_NULL : entry->redop,
        .count = (int64_t)entry->count,
        .peer = entry->peer < 0 ? CT_NULL : entry->peer,
        .stream =
            entry->stream == CT_NO_STREAM ? CT_NULL : (int64_t)entry->stream,
        .site = entry->site ? (int64_t)entry->site : CT_NULL,
        .graph = entry->graph ? entry->graph : CT_NULL,
        .stack = entry->stack ? entry->stack : CT_NULL,
    };
}

int64_t classes_find(struct classes *classes, const struct ct_slot *slot,
                     struct batch *batch)
{
    if (is_same(&classes->entries[classes->last], slot))
        return classes->entries[classes->last].id;
    if (classes->used > CLASSES * 3 / 4) {
        memset(classes->entries, 0, CLASSES * sizeof(*classes->entries));
        classes->used = 0;
    }
    size_t i = (size_t)hash_slot(slot) & (CLASSES - 1);
    while (classes->entries[i].id && !is_same(&classes->entries[i], slot))
        i = (i + 1) & (CLASSES - 1);
    struct class_entry *entry = &classes->entries[i];
    if (!entry->id) {
        fill(entry, slot, ++classes->last_id);
        classes->used++;
        tell(entry, batch);
    }
    classes->last = (int64_t)i;
    return entry->id;
}
