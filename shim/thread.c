#include "thread.h"

#include "group.h"
#include "lock.h"

#include <stdbool.h>
#include <stdlib.h>

_Thread_local struct thread thread_state;

static struct {
    struct lock lock;
    pthread_once_t once;
    pthread_key_t key;
    bool has_key;
    struct group *unused;
} blocks = {.lock = LOCK_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void give_back(struct group *group)
{
    group_reset(group); /* a thread may end inside its bracket */
    lock_take(&blocks.lock);
    group->next = blocks.unused;
    blocks.unused = group;
    lock_give(&blocks.lock);
}

static void give_back_all(void *unused)
{
    (void)unused;
    for (int i = 0; i < NCCL_COPIES + 1; i++) {
        struct group *group = thread_state.group[i];
        thread_state.group[i] = NULL;
        if (group)
            give_back(group);
    }
}

static void make_key(void)
{
    blocks.has_key = pthread_key_create(&blocks.key, give_back_all) == 0;
}

static struct group *find_or_make(void)
{
    pthread_once(&blocks.once, make_key);
    if (!blocks.has_key) /* the program uses them all */
        return NULL;
    lock_take(&blocks.lock);
    struct group *group = blocks.unused;
    if (group)
        blocks.unused = group->next;
    lock_give(&blocks.lock);
    if (!group)
        group = calloc(1, sizeof(*group));
    if (group)
        pthread_setspecific(blocks.key, group);
    return group;
}

static struct group *obtain(void)
{
    struct thread_hold before;
    thread_hold(&before);
    struct group *group = find_or_make();
    thread_release(&before);
    return group;
}

static struct group *group_at(uint32_t i)
{
    struct group **group = &thread_state.group[i];
    if (!*group)
        *group = obtain();
    return *group;
}

struct group *thread_group(const struct nccl_copy *copy)
{
    return group_at(copy_number(copy));
}

struct group *thread_told_group(void)
{
    return group_at(NCCL_COPIES);
}
