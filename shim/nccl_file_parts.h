/* What the files of NCCL's log share: when there is one (nccl_file.c), whether
 * (nccl_file_decide.c), ours, theirs, and what is read of it. */
#ifndef SHIM_NCCL_FILE_PARTS_H
#define SHIM_NCCL_FILE_PARTS_H

#include "lock.h"
#include "nccl_file.h"
#include "nccl_settings.h"
#include "publish.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

enum stage {
    NEW,    /* nobody has asked yet */
    MADE,   /* it is there, and NCCL has not opened it */
    OURS,   /* NCCL writes into it */
    SOUGHT, /* the user's, which NCCL may not have opened yet */
    THEIRS, /* the user's */
    NONE    /* see why */
};

struct nccl_file {
    _Atomic int stage;
    struct publication variables;
    unsigned within;      /* calls in which NCCL may be about to open it */
    unsigned tries;       /* of them that are over, and it did not */
    _Atomic bool is_full; /* NCCL's words go nowhere now; see why */
    int fd;
    dev_t dev;
    ino_t ino;
    off_t at;      /* read so far */
    off_t end;     /* of what may be read */
    off_t punched; /* given back so far */
    char path[1024];
    char text[160]; /* NCCL_DEBUG_FILE=path */
    char why[1200];
};

extern struct nccl_file nccl_files[NCCL_COPIES];

extern struct nccl_logs {
    struct lock lock;
    const struct config *config;
    const struct process *process;
    struct nccl_setting debug, file, subsys;
} nccl_logs;

static inline int stage_of(const struct nccl_file *file)
{
    return atomic_load_explicit(&file->stage, memory_order_acquire);
}

static inline bool is_full(const struct nccl_file *file)
{
    return atomic_load_explicit(&file->is_full, memory_order_acquire);
}

/* Release: who sees the stage sees what it goes with. */
static inline void set_stage(struct nccl_file *file, enum stage stage)
{
    atomic_store_explicit(&file->stage, (int)stage, memory_order_release);
}

__attribute__((format(printf, 2, 3))) void
file_give_up(struct nccl_file *file, const char *format, ...);

void file_decide(struct nccl_file *file, struct nccl_copy *copy);

/*
 * Ours.
 */

/* Whether the process may write files of any size, and open a few more: NCCL
 * would be killed for the one, and log to stdout for want of the other. */
bool file_has_room(struct nccl_file *file);

bool file_make(struct nccl_file *file);
void file_drop(struct nccl_file *file);

/* Whether NCCL would find it by its name, with the rights of now. */
bool file_is_reachable(const struct nccl_file *file);

/* Whether NCCL has opened it by now. */
void file_look(struct nccl_file *file);

/* A program may limit files at any time, and then is killed for what NCCL
 * writes. What is there already will be read. */
void file_heed_limit(struct nccl_file *file);

/* More waits to be read than should lie there. Where it is far too much, as
 * the trace cannot be written, no more comes. */
bool file_is_long(struct nccl_file *file);

/* What NCCL goes on to write would be too much, or lie there for ever. */
void file_silence(const struct nccl_file *file);

/*
 * The user's.
 */

void file_find_theirs(struct nccl_file *file);

#endif
