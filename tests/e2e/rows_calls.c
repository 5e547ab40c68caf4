/*
 * Calls every row of nccl_ops.def with arguments of all bits and compares what
 * NCCL saw, what came back, and errno on both ways. For each call it prints the
 * row that a trace of it has to hold:
 *
 *   op FUNCTION COUNT TYPE REDOP PEER STREAM RESULT
 *   call FUNCTION RESULT
 *
 * Built three times: into a program that is linked with NCCL, into a module
 * that is and is opened RTLD_LOCAL, and, as ROWS_BY_DLSYM, into a program that
 * looks each function up in the library that it is given.
 */
#include "rows.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rows_run(const char *library);

#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, count_, \
           type_, redop_, peer_, send_, recv_, params_, args_)           \
    typedef ncclResult_t fn_##_t params_;                                \
    fn_##_t fn_;
#define COMM(fn_, since_, ret_, params_, args_) \
    typedef ret_ fn_##_t params_;               \
    fn_##_t fn_;
#include "commtrace/nccl_ops.def"

#ifdef ROWS_BY_DLSYM
static void *library;
#define TARGET(fn_) ((fn_##_t *)(uintptr_t)look_up(#fn_))
typedef struct rows_seen *rows_seen_t(void);
#define SEEN (((rows_seen_t *)(uintptr_t)look_up("rows_seen"))())

static void *look_up(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return found;
}
#else
#define TARGET(fn_) fn_
#define SEEN rows_seen()
#endif

enum { NRANKS = 8, RANK = 3 };

static struct {
    const char *function;
    size_t size;
    unsigned char bytes[512];
} wanted;
static ncclComm_t steady, passing;
static unsigned char room[4096]; /* what pointers of the program lead to */
static size_t taken;
static int failed;

static void complain(const char *what)
{
    fprintf(stderr, "%s: %s\n", wanted.function, what);
    failed = 1;
}

static uint64_t some_bits(void)
{
    static uint64_t state = 0x243f6a8885a308d3;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void compare_errno(int after)
{
    if (SEEN->error != ROWS_ERRNO_BEFORE)
        complain("errno was another before NCCL was called");
    if (after != ROWS_ERRNO_AFTER)
        complain("errno is not as NCCL left it");
}

static ncclComm_t make(void)
{
    ncclComm_t comm;
    ncclUniqueId id;
    for (size_t i = 0; i < sizeof(id.internal); i++)
        id.internal[i] = (char)some_bits();
    wanted.function = "ncclCommInitRank";
    SEEN->answer = ncclSuccess;
    errno = ROWS_ERRNO_BEFORE;
    if (TARGET(ncclCommInitRank)(&comm, NRANKS, id, RANK) != ncclSuccess)
        exit(2);
    compare_errno(errno);
    printf("call ncclCommInitRank 0\n");
    return comm;
}

static bool is(const char *name, const char *names)
{
    const char *at = strstr(names, name);
    size_t n = strlen(name);
    return at && at[-1] == ' ' && at[n] == ' ';
}

static int some_int(const char *name)
{
    if (is(name, " nranks nRanks "))
        return NRANKS;
    if (is(name, " rank myrank "))
        return RANK;
    if (is(name, " ndev excludeRanksCount nId "))
        return 2;
    if (is(name, " root peer datatype op "))
        return (int)(some_bits() % 5);
    return (int)(some_bits() & INT32_MAX);
}

static void *some_pointer(const char *name)
{
    void *pointer = NULL;
    if (!strcmp(name, "comm"))
        return passing;
    /* What NCCL, or who watches it, looks behind. */
    if (is(name, " newcomm comms devlist asyncError commIds uniqueId config "
                 "excludeRanksList simInfo handle win signalDescs ")) {
        pointer = room + taken;
        taken += 256;
    } else {
        uint64_t bits = some_bits();
        memcpy(&pointer, &bits, sizeof(pointer));
    }
    return pointer;
}

static void fill(const char *name, void *argument, size_t size)
{
    bool init = !strncmp(wanted.function, "ncclCommInit", 12);
    uint64_t bits = some_bits() >> 24; /* counts that could be */
    int number = some_int(name);
    void *pointer =
        some_pointer(init && !strcmp(name, "comm") ? "comms" : name);
    if (is(name, " count sendcount recvcount size peerWinOffset "))
        memcpy(argument, &bits, size);
    else if (size == sizeof(number))
        memcpy(argument, &number, size);
    else if (size == sizeof(pointer))
        memcpy(argument, &pointer, size);
    else
        for (size_t i = 0; i < size; i++)
            ((unsigned char *)argument)[i] = (unsigned char)some_bits();
    memcpy(wanted.bytes + wanted.size, argument, size);
    wanted.size += size;
}

static void begin(const char *function, ncclResult_t answer)
{
    wanted.function = function;
    wanted.size = 0;
    taken = 0;
    memset(room, 0, sizeof(room));
    SEEN->answer = answer;
    errno = ROWS_ERRNO_BEFORE;
}

static void compare(ncclResult_t result)
{
    compare_errno(errno);
    const struct rows_seen *seen = SEEN;
    if (!seen->function || strcmp(seen->function, wanted.function) != 0)
        complain("another function was called");
    else if (seen->size != wanted.size ||
             memcmp(seen->bytes, wanted.bytes, seen->size) != 0)
        complain("other arguments were passed");
    if (result != seen->answer)
        complain("another result came back");
}

#define FILL(a_) fill(#a_, &a_, sizeof(a_));
/* A first value for every parameter; fill() gives it the real one. */
#define SECOND(a_, b_, ...) b_
#define FIRST_OF(...) SECOND(__VA_ARGS__)
#define IS_STRUCT_commId \
    ~, (ncclUniqueId)    \
    {                    \
        {                \
            0            \
        }                \
    }
#define NOTHING(a_) , FIRST_OF(IS_STRUCT_##a_, 0, ~)

/* Parameters are filled in place, so none of them may be constant. */
#define const
#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, count_, \
           type_, redop_, peer_, send_, recv_, params_, args_)           \
    static void call_##fn_(ncclResult_t answer, ROWS_LIST params_)       \
    {                                                                    \
        begin(#fn_, answer);                                             \
        ROWS_EACH(FILL, ROWS_LIST args_)                                 \
        ncclResult_t result = TARGET(fn_) args_;                         \
        compare(result);                                                 \
        printf("op %s %llu %d %d %d %lld %d\n", #fn_,                    \
               (unsigned long long)(count_), (type_), (redop_), (peer_), \
               (long long)(intptr_t)stream, result);                     \
    }
#define COMM(fn_, since_, ret_, params_, args_)                    \
    static void call_##fn_(ncclResult_t answer, ROWS_LIST params_) \
    {                                                              \
        passing = make();                                          \
        begin(#fn_, answer);                                       \
        ROWS_EACH(FILL, ROWS_LIST args_)                           \
        ncclResult_t result = TARGET(fn_) args_;                   \
        compare(result);                                           \
        printf("call %s %d\n", #fn_, result);                      \
        passing = steady;                                          \
    }
#define BRACKET(fn_, since_)                    \
    static void call_##fn_(ncclResult_t answer) \
    {                                           \
        begin(#fn_, answer);                    \
        compare(TARGET(fn_)());                 \
        printf("call %s %d\n", #fn_, answer);   \
    }
#include "commtrace/nccl_ops.def"
#undef const

static void call_all(ncclResult_t answer)
{
#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, count_, \
           type_, redop_, peer_, send_, recv_, params_, args_)           \
    call_##fn_(answer ROWS_EACH(NOTHING, ROWS_LIST args_));
#define COMM(fn_, since_, ret_, params_, args_) \
    call_##fn_(answer ROWS_EACH(NOTHING, ROWS_LIST args_));
#define BRACKET(fn_, since_) call_##fn_(ncclSuccess);
#include "commtrace/nccl_ops.def"
}

int rows_run(const char *path)
{
#ifdef ROWS_BY_DLSYM
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
#else
    (void)path;
#endif
    passing = steady = make();
    call_all(ncclSuccess);
    call_all(ncclInternalError);
    return failed;
}
