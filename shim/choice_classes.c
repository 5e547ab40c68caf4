#include "choice_classes.h"

#include "hash.h"

#include <string.h>

/* NCCL's own texts may be unloaded; there are few of them. */
static const char *keep_word(struct choice_classes *classes, const char *word)
{
    int i = 0;
    if (!*word)
        return NULL;
    while (i < CHOICE_WORDS && *classes->words[i] &&
           strcmp(classes->words[i], word) != 0)
        i++;
    if (i == CHOICE_WORDS)
        return NULL;
    if (!*classes->words[i])
        memcpy(classes->words[i], word, PROFILER_WORD);
    return classes->words[i];
}

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
    entry->id = classes->last_id += classes->last_id ? 2 : 1;
    classes->used++;
    struct row *row = batch_add(batch, ROW_choice_class);
    if (row)
        row->u.choice_class = *entry;
    return entry->id;
}

int64_t choice_classes_find(struct choice_classes *classes, int64_t comm,
                            const struct profiler_event *event,
                            struct batch *batch)
{
    const struct row_choice_class wanted = {
        .comm = comm,
        .kind = event->kind,
        .bytes = (int64_t)event->bytes,
        .peer = event->peer < 0 ? CT_NULL : event->peer,
        .algorithm = keep_word(classes, event->algorithm),
        .protocol = keep_word(classes, event->protocol),
        .channels = event->channels ? event->channels : CT_NULL,
        .source = "plugin",
    };
    if (classes->used > CHOICE_CLASSES * 3 / 4) {
        memset(classes->entries, 0, sizeof(classes->entries));
        classes->used = 0;
    }
    size_t i = (size_t)hash_class(&wanted) & (CHOICE_CLASSES - 1);
    while (classes->entries[i].id && !is_same(&classes->entries[i], &wanted))
        i = (i + 1) & (CHOICE_CLASSES - 1);
    struct row_choice_class *entry = &classes->entries[i];
    return entry->id ? entry->id : add(classes, entry, &wanted, batch);
}
