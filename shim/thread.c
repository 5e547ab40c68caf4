#include "thread.h"

#include "group.h"

#include <stdbool.h>
#include <stdlib.h>

_Thread_local struct thread thread_state;

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    pthread_key_t key;
    bool has_key;
    struct group *unused;
} blocks = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void give_back(struct group *group)
{
    group_reset(group); /* a thread may end inside its bracket */
    pthread_mutex_lock(&blocks.lock);
    group->next = blocks.unused;
    blocks.unused = group;
    pthread_mutex_unlock(&blocks.lock);
}

static void give_back_all(void *unused)
{
    (void)unused;
    for (int i = 0; i < NCCL_COPIES; i++) {
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

static struct group *obtain(void)
{
    pthread_once(&blocks.once, make_key);
    if (!blocks.has_key) /* the program uses them all */
        return NULL;
    pthread_mutex_lock(&blocks.lock);
    struct group *group = blocks.unused;
    if (group)
        blocks.unused = group->next;
    pthread_mutex_unlock(&blocks.lock);
    if (!group)
        group = calloc(1, sizeof(*group));
    if (group)
        pthread_setspecific(blocks.key, group);
    return group;
}

struct group *thread_group(const struct nccl_copy *copy)
{
    struct group **group = &thread_state.group[copy->number];
    if (!*group)
        *group = obtain();
    return *group;
}
