/*
 * A second, independent account of what a process asks of NCCL: preloaded, it
 * writes one line per call to $WITNESS/<rank>.<restart>.<pid>, before the call
 * is made, and forwards it. It has nothing in common with the recorder but the
 * table of calls.
 *
 *   op FUNCTION COUNT TYPE REDOP PEER COMM GROUP STREAM
 *   init COMM KEY NRANKS RANK       KEY: hash of the unique id
 *   split PARENT COLOR COMM NRANKS RANK    COMM 0: not in any part
 *   end FUNCTION COMM
 *
 * GROUP numbers the outermost group brackets of the process, 0: in none.
 * Calls that NCCL makes to itself are not written.
 */
#include "commtrace/nccl_abi.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Thread_local int inside; /* NCCL calls that have not returned */
static _Thread_local int depth;  /* of group brackets */
static _Thread_local int group;
static atomic_int last_group;

static void die(const char *what, const char *name)
{
    fprintf(stderr, "witness: %s %s\n", what, name);
    _exit(70);
}

static int open_log(void)
{
    char path[4096];
    const char *dir = getenv("WITNESS");
    const char *rank = getenv("RANK");
    const char *restart = getenv("TORCHELASTIC_RESTART_COUNT");
    int fd;

    snprintf(path, sizeof(path), "%s/%s.%s.%d", dir ? dir : ".",
             rank ? rank : "0", restart ? restart : "0", (int)getpid());
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        die("cannot write", path);
    return fd;
}

/* One write per line: what is written survives the process. */
__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
    static atomic_int log = -1;
    static atomic_int owner;
    char line[512];
    va_list ap;
    int n;

    if (inside)
        return;
    if (atomic_load(&owner) != getpid()) { /* first line, or after a fork */
        atomic_store(&log, open_log());
        atomic_store(&owner, getpid());
    }
    va_start(ap, format);
    n = vsnprintf(line, sizeof(line), format, ap);
    va_end(ap);
    if (write(atomic_load(&log), line, (size_t)n) != n)
        die("cannot write", line);
}

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    void *nccl;

    if (!found && (nccl = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD)))
        found = dlsym(nccl, name);
    if (!found)
        die("NCCL has no", name);
    return found;
}

/* Declares next_, the function that the call goes on to. */
#define NEXT(fn_, params_)               \
    static ncclResult_t(*next_) params_; \
    if (!next_)                          \
    *(void **)&next_ = real(#fn_)

#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, count_,  \
           type_, redop_, peer_, send_, recv_, params_, args_)            \
    ncclResult_t fn_ params_;                                             \
    ncclResult_t fn_ params_                                              \
    {                                                                     \
        ncclResult_t result_;                                             \
        NEXT(fn_, params_);                                               \
        tell("op %s %lld %d %d %d %p %d %p\n", #fn_, (long long)(count_), \
             type_, redop_, peer_, (void *)comm, depth ? group : 0,       \
             (void *)stream);                                             \
        inside++;                                                         \
        result_ = next_ args_;                                            \
        inside--;                                                         \
        return result_;                                                   \
    }
#include "commtrace/nccl_ops.def"

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupStart(void)
{
    ncclResult_t result;
    NEXT(ncclGroupStart, (void));

    if (!inside && depth++ == 0)
        group = atomic_fetch_add(&last_group, 1) + 1;
    inside++;
    result = next_();
    inside--;
    return result;
}

ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclGroupEnd(void)
{
    ncclResult_t result;
    NEXT(ncclGroupEnd, (void));

    inside++;
    result = next_();
    inside--;
    if (!inside && depth > 0)
        depth--;
    return result;
}

static unsigned long long key_of(const ncclUniqueId *id)
{
    unsigned long long key = 14695981039346656037u;

    for (size_t i = 0; i < sizeof(*id); i++)
        key = (key ^ (unsigned char)id->internal[i]) * 1099511628211u;
    return key;
}

static void tell_init(ncclComm_t comm, const ncclUniqueId *id, int nranks,
                      int rank)
{
    tell("init %p %016llx %d %d\n", (void *)comm, key_of(id), nranks, rank);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id,
                              int rank);
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id,
                              int rank)
{
    ncclResult_t result;
    NEXT(ncclCommInitRank, (ncclComm_t *, int, ncclUniqueId, int));

    inside++;
    result = next_(comm, nranks, id, rank);
    inside--;
    tell_init(*comm, &id, nranks, rank);
    return result;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    ncclResult_t result;
    NEXT(ncclCommInitRankConfig,
         (ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *));

    inside++;
    result = next_(comm, nranks, id, rank, config);
    inside--;
    tell_init(*comm, &id, nranks, rank);
    return result;
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank,
                                      int nids, ncclUniqueId *ids,
                                      ncclConfig_t *config);
ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank,
                                      int nids, ncclUniqueId *ids,
                                      ncclConfig_t *config)
{
    ncclResult_t result;
    NEXT(ncclCommInitRankScalable,
         (ncclComm_t *, int, int, int, ncclUniqueId *, ncclConfig_t *));

    inside++;
    result = next_(comm, nranks, rank, nids, ids, config);
    inside--;
    tell_init(*comm, ids, nranks, rank);
    return result;
}

static int ask(const char *name, ncclComm_t comm)
{
    ncclResult_t (*question)(ncclComm_t, int *);
    int answer = -1;

    *(void **)&question = real(name);
    if (comm && question(comm, &answer) != ncclSuccess)
        answer = -1;
    return answer;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                           ncclComm_t *newcomm, ncclConfig_t *config);
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                           ncclComm_t *newcomm, ncclConfig_t *config)
{
    ncclResult_t result;
    NEXT(ncclCommSplit, (ncclComm_t, int, int, ncclComm_t *, ncclConfig_t *));

    inside++;
    result = next_(comm, color, key, newcomm, config);
    inside--;
    if (color < 0)
        tell("split %p %d %p %d %d\n", (void *)comm, color, NULL, 0, 0);
    else
        tell("split %p %d %p %d %d\n", (void *)comm, color, (void *)*newcomm,
             ask("ncclCommCount", *newcomm), ask("ncclCommUserRank", *newcomm));
    return result;
}

#define END(fn_)                                 \
    ncclResult_t fn_(ncclComm_t comm);           \
    ncclResult_t fn_(ncclComm_t comm)            \
    {                                            \
        ncclResult_t result;                     \
        NEXT(fn_, (ncclComm_t));                 \
        tell("end %s %p\n", #fn_, (void *)comm); \
        inside++;                                \
        result = next_(comm);                    \
        inside--;                                \
        return result;                           \
    }
END(ncclCommFinalize)
END(ncclCommDestroy)
END(ncclCommAbort)
