#include "nccl_file_parts.h"

#include "descriptor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* In how many calls NCCL may leave its file alone. */
enum { TRIES = 4 };

struct nccl_file nccl_files[NCCL_COPIES];
struct nccl_logs nccl_logs = {.lock = LOCK_INITIALIZER};

void nccl_file_begin(const struct config *config, const struct process *process)
{
    nccl_logs.config = config;
    nccl_logs.process = process;
}

void file_give_up(struct nccl_file *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(file->why, sizeof(file->why), format, args);
    va_end(args);
    set_stage(file, NONE);
}

static struct nccl_file *file_of(const struct nccl_copy *copy)
{
    return &nccl_files[copy_number(copy)];
}

static bool is_settled(const struct nccl_file *file)
{
    int stage = stage_of(file);
    return stage != NEW && stage != MADE;
}

/* Another copy that has still to open its file would open this one's. */
static void make_way(const struct nccl_file *file)
{
    for (int i = 0; i < NCCL_COPIES; i++) {
        struct nccl_file *other = &nccl_files[i];
        enum { PATIENCE = 50 };
        for (int k = 0; k < PATIENCE && other != file &&
                        stage_of(other) == MADE && other->within;
             k++) {
            file_look(other);
            if (stage_of(other) == MADE)
                usleep(1000);
        }
        if (other != file)
            publish_end(&other->variables);
    }
}

static void enter(struct nccl_file *file, struct nccl_copy *copy)
{
    if (is_settled(file))
        return;
    make_way(file);
    /* The program may have closed it, have settings of its own now, or be
     * another user. */
    if (stage_of(file) == MADE &&
        (!descriptor_is_ours(file->fd) || !file_is_reachable(file) ||
         !publish(&file->variables)))
        file_drop(file);
    if (stage_of(file) == NEW)
        file_decide(file, copy);
    file->within++;
}

/* Still not opened: NCCL knew before whether to log, or the call has failed
 * before it got there. */
static void leave(struct nccl_file *file)
{
    file_look(file);
    if (stage_of(file) != MADE || (file->within && --file->within))
        return;
    publish_end(&file->variables);
    if (++file->tries < TRIES)
        return;
    file_drop(file);
    file_give_up(file, "NCCL had begun to log, or not to, before it was asked");
}

void nccl_file_before(struct nccl_copy *copy)
{
    struct nccl_file *file = file_of(copy);
    int saved = errno;
    if (!is_settled(file)) {
        lock_take(&nccl_logs.lock);
        enter(file, copy);
        lock_give(&nccl_logs.lock);
    }
    file_heed_limit(file);
    errno = saved;
}

void nccl_file_after(struct nccl_copy *copy)
{
    struct nccl_file *file = file_of(copy);
    int saved = errno;
    if (is_settled(file))
        return;
    lock_take(&nccl_logs.lock);
    leave(file);
    lock_give(&nccl_logs.lock);
    errno = saved;
}

bool nccl_file_watch(void)
{
    bool is_long = false;
    for (int i = 0; i < NCCL_COPIES; i++) {
        struct nccl_file *file = &nccl_files[i];
        if (stage_of(file) == MADE) {
            lock_take(&nccl_logs.lock);
            file_look(file);
            lock_give(&nccl_logs.lock);
        }
        file_heed_limit(file);
        is_long |= file_is_long(file);
    }
    return is_long;
}

void nccl_file_end(void)
{
    lock_take(&nccl_logs.lock);
    for (int i = 0; i < NCCL_COPIES; i++) {
        struct nccl_file *file = &nccl_files[i];
        int stage = stage_of(file);
        publish_end(&file->variables);
        if (stage == MADE)
            unlink(file->path);
        if (stage == OURS)
            file_silence(file);
        if (stage == MADE || stage == OURS || stage == THEIRS)
            descriptor_close(file->fd);
        set_stage(file, NONE);
    }
    lock_give(&nccl_logs.lock);
}
