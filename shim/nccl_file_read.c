/* What is read of a log, ours or the user's. */
#include "nccl_file_parts.h"

#include "descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_open(struct nccl_file *file)
{
    if (stage_of(file) == SOUGHT)
        file_find_theirs(file);
    int stage = stage_of(file);
    if (stage != OURS && stage != THEIRS)
        return false;
    if (descriptor_is_ours(file->fd))
        return true;
    descriptor_close(file->fd);
    file_give_up(file, "the program has closed NCCL's log");
    return false;
}

/* Where NCCL will write no more. */
static void give_back(struct nccl_file *file)
{
    enum { PAGE = 4096 };
    off_t whole = file->at / PAGE * PAGE;
    if (whole > file->punched &&
        fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  file->punched, whole - file->punched) == 0)
        file->punched = whole;
}

/* Nobody waits for us to read all of that, at the end of the program say. */
static void leave_alone(struct nccl_file *file)
{
    file->end = file->at;
    descriptor_close(file->fd);
    file_give_up(file, "too much came into it at once (%s)", file->path);
}

void nccl_file_mark(void)
{
    enum { MOST = 256 << 20 };
    for (int i = 0; i < NCCL_COPIES; i++) {
        struct nccl_file *file = &nccl_files[i];
        struct stat st;
        if (!is_open(file) || fstat(file->fd, &st) != 0)
            continue;
        file->end = st.st_size;
        if (file->end < file->at) /* somebody has emptied it */
            file->at = 0;
        if (file->end - file->at > MOST)
            leave_alone(file);
    }
}

size_t nccl_file_read(int copy, char *bytes, size_t n)
{
    struct nccl_file *file = &nccl_files[copy];
    if (file->at >= file->end)
        return 0;
    if (n > (size_t)(file->end - file->at))
        n = (size_t)(file->end - file->at);
    ssize_t got =
        descriptor_is_ours(file->fd) ? pread(file->fd, bytes, n, file->at) : 0;
    if (got <= 0) {
        file->end = file->at;
        return 0;
    }
    file->at += got;
    if (stage_of(file) == OURS)
        give_back(file);
    return (size_t)got;
}

const char *nccl_file_absence(int copy)
{
    const struct nccl_file *file = &nccl_files[copy];
    return stage_of(file) == NONE || is_full(file) ? file->why : NULL;
}

bool nccl_file_may_tell(int copy)
{
    return stage_of(&nccl_files[copy]) != NONE;
}

bool nccl_file_has_choices(int copy)
{
    return stage_of(&nccl_files[copy]) == THEIRS ||
           nccl_logs.config->nccl_log == LOGS_TUNING;
}

int64_t nccl_file_pid(int copy)
{
    return stage_of(&nccl_files[copy]) == THEIRS ? nccl_logs.process->pid : 0;
}

const char *nccl_file_host(int copy)
{
    return stage_of(&nccl_files[copy]) == THEIRS ? nccl_logs.process->host
                                                 : NULL;
}
