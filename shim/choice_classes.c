#include "choice_classes.h"

#include "hash.h"

#include <string.h>

static bool is_same(const struct row_choice_class *a,
                    const struct row_choice_class *b)
{
    return a->comm == b->comm && a->kind == b->kind && a->bytes == b->bytes &&
           a->peer == b->peer && a->algorithm == b->algorithm &&
           a->protocol == b->protocol && a->channels == b->channels;
}

static uint64_t hash_class(const struct row_choice_class *row)
{
    const uint64_t parts[] = {
        (uint64_t)row->comm,       (uint64_t)row->kind,
        (uint64_t)row->bytes,      (uint64_t)row->peer,
        (uintptr_t)row->algorithm, (uintptr_t)row->protocol,
        (uint64_t)row->channels};
    return hash_bytes(0, parts, sizeof(parts));
}

static int64_t add(struct choice_classes *classes,
                   struct row_choice_class *entry,
                   const struct row_choice_class *wanted, struct batch *batch)
{
    *entry = *wanted;
    entry->id = classes->last_id += 2;
    classes->used++;
    struct row *row = batch_add(batch, ROW_choice_class);
    if (row)
        row->u.choice_class = *entry;
    return entry->id;
}

int64_t choice_classes_find(struct choice_classes *classes,
                            const struct row_choice_class *wanted,
                            struct batch *batch)
{
    if (classes->used > CHOICE_CLASSES * 3 / 4) {
        memset(classes->entries, 0, sizeof(classes->entries));
        classes->used = 0;
    }
    size_t i = (size_t)hash_class(wanted) & (CHOICE_CLASSES - 1);
    while (classes->entries[i].id && !is_same(&classes->entries[i], wanted))
        i = (i + 1) & (CHOICE_CLASSES - 1);
    struct row_choice_class *entry = &classes->entries[i];
    return entry->id ? entry->id : add(classes, entry, wanted, batch);
}
