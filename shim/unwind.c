#include "unwind.h"

#include "commtrace/unwind_abi.h"
#include "modules.h"
#include "room.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Our own frames before the caller's. */
enum { OURS_MAX = 16, MAPPED_MAX = 8, STACK_OF_TRIAL = 256 * 1024 };

static struct {
    void *space;
    int lead; /* where struct unw_table's last part begins */
#define X(name_, type_, symbol_, params_) type_(*name_) params_;
    UNW_FUNCTIONS(X)
#undef X
} unw;

struct walk {
    uintptr_t regs[UNW_REGISTERS];
    struct range stack;               /* what may be read of it */
    struct range code;                /* around it, where no module is */
    struct range latest;              /* segment that was read last */
    struct mapped mapped[MAPPED_MAX]; /* found so far, the latest ones */
    unsigned nmapped, oldest;
    bool failed; /* modules could not be looked at */
};

static const struct mapped *mapped_at(struct walk *walk, uintptr_t address)
{
    for (unsigned i = 0; i < walk->nmapped; i++)
        if (address - walk->mapped[i].start <
            walk->mapped[i].end - walk->mapped[i].start)
            return &walk->mapped[i];
    struct mapped found;
    if (walk->failed)
        return NULL;
    enum found what = modules_find(address, &found);
    walk->failed = what == FOUND_NO_LOCK;
    if (what != FOUND_MODULE)
        return NULL;
    struct mapped *kept = &walk->mapped[walk->oldest++ % MAPPED_MAX];
    if (walk->nmapped < MAPPED_MAX)
        walk->nmapped++;
    *kept = found;
    return kept;
}

static int find_proc_info(void *space, uintptr_t ip, void *info, int need,
                          void *context)
{
    const struct mapped *mapped = mapped_at(context, ip);
    if (!mapped || !mapped->entries)
        return -UNW_ENOINFO;
    struct unw_table table = {
        .start_ip = mapped->start,
        .end_ip = mapped->end,
        .format = UNW_REMOTE_TABLE,
    };
    uintptr_t *last = table.rest + unw.lead;
    last[UNW_REST_SEGBASE] = mapped->header;
    last[UNW_REST_DATA] = mapped->table;
    last[UNW_REST_LENGTH] =
        mapped->entries * 2 * sizeof(int32_t) / sizeof(uintptr_t);
    return unw.search(space, ip, &table, info, need, context);
}

static void put_unwind_info(void *space, void *info, void *context)
{
    (void)space, (void)info, (void)context;
}

static int get_dyn_info_list_addr(void *space, uintptr_t *address,
                                  void *context)
{
    (void)space, (void)address, (void)context;
    return -UNW_ENOINFO;
}

/* The thread's stack, and what its functions' files have loaded: unwind tables,
 * code, and pointers to what handles exceptions. */
static bool may_read(struct walk *walk, uintptr_t address)
{
    if (range_has(&walk->latest, address) || range_has(&walk->stack, address))
        return true;
    for (unsigned i = 0; i < walk->nmapped; i++)
        if (mapped_segment(&walk->mapped[i], address, &walk->latest))
            return true;
    return false;
}

/* No sanitizer's business: these words belong to other frames. */
__attribute__((no_sanitize("address", "thread"))) static int
access_mem(void *space, uintptr_t address, uintptr_t *value, int write,
           void *context)
{
    (void)space;
    if (write)
        return -UNW_EINVAL;
    if (!may_read(context, address)) {
        const struct walk *walk = context;
        *value = 0;
        return range_has(&walk->code, address) ? 0 : -UNW_EINVAL;
    }
    const volatile unsigned char *from = (const void *)address;
    unsigned char *to = (void *)value;
    if (address % sizeof(*value) == 0)
        *value = *(const volatile uintptr_t *)address;
    else
        for (size_t i = 0; i < sizeof(*value); i++)
            to[i] = from[i];
    return 0;
}

static int access_reg(void *space, int reg, uintptr_t *value, int write,
                      void *context)
{
    struct walk *walk = context;
    (void)space;
    if (reg < 0 || reg >= UNW_REGISTERS)
        return -UNW_EBADREG;
    if (write)
        walk->regs[reg] = *value;
    else
        *value = walk->regs[reg];
    return 0;
}

static int access_fpreg(void *space, int reg, void *value, int write,
                        void *context)
{
    (void)space, (void)reg, (void)value, (void)write, (void)context;
    return -UNW_EBADREG;
}

static int resume(void *space, struct unw_cursor *cursor, void *context)
{
    (void)space, (void)cursor, (void)context;
    return -UNW_EINVAL;
}

static int get_proc_name(void *space, uintptr_t ip, char *name, size_t size,
                         uintptr_t *offset, void *context)
{
    (void)space, (void)ip, (void)name, (void)size, (void)offset, (void)context;
    return -UNW_ENOINFO;
}

/* The bits of a return address on aarch64 that may hold its signature. */
static uintptr_t ptrauth_insn_mask(void *space, void *context)
{
    (void)space, (void)context;
    return (uintptr_t)0xffff << 48;
}

static const struct unw_accessors accessors = {
    .find_proc_info = find_proc_info,
    .put_unwind_info = put_unwind_info,
    .get_dyn_info_list_addr = get_dyn_info_list_addr,
    .access_mem = access_mem,
    .access_reg = access_reg,
    .access_fpreg = access_fpreg,
    .resume = resume,
    .get_proc_name = get_proc_name,
    .ptrauth_insn_mask = ptrauth_insn_mask,
};

/* What a call leaves alone, the stack pointer, and where we are. */
static inline __attribute__((always_inline)) void read_registers(uintptr_t *to)
{
#if defined(__x86_64__)
    __asm__ volatile("movq %%rbx, 24(%0)\n\t"
                     "movq %%rbp, 48(%0)\n\t"
                     "movq %%rsp, 56(%0)\n\t"
                     "movq %%r12, 96(%0)\n\t"
                     "movq %%r13, 104(%0)\n\t"
                     "movq %%r14, 112(%0)\n\t"
                     "movq %%r15, 120(%0)\n\t"
                     "leaq 0(%%rip), %%rax\n\t"
                     "movq %%rax, 128(%0)"
                     :
                     : "r"(to)
                     : "rax", "memory");
#else
    __asm__ volatile("stp x19, x20, [%0, #152]\n\t"
                     "stp x21, x22, [%0, #168]\n\t"
                     "stp x23, x24, [%0, #184]\n\t"
                     "stp x25, x26, [%0, #200]\n\t"
                     "stp x27, x28, [%0, #216]\n\t"
                     "stp x29, x30, [%0, #232]\n\t"
                     "mov x9, sp\n\t"
                     "str x9, [%0, #248]\n\t"
                     "adr x9, .\n\t"
                     "str x9, [%0, #256]"
                     :
                     : "r"(to)
                     : "x9", "memory");
#endif
}

static struct frame frame_of(struct walk *walk, uintptr_t address)
{
    /* A return address may lie behind the last instruction of its function. */
    const struct mapped *mapped = mapped_at(walk, address - 1);
    if (!mapped || !mapped->module)
        return (struct frame){.offset = address};
    return (struct frame){.offset = address - mapped->bias,
                          .module = mapped->module};
}

/* The cursor's address after one step; 0: there is no further frame. Of code
 * that is in no module libunwind wants to see that it is there, before it goes
 * by the frame pointer: we do not know, and look not; it reads as zero. */
static uintptr_t step(struct unw_cursor *cursor, struct walk *walk)
{
    uintptr_t address;
    if (unw.step(cursor) <= 0 || unw.get_reg(cursor, UNW_IP, &address) != 0)
        return 0;
    walk->code = (struct range){address, address + 16};
    return address;
}

__attribute__((noinline)) size_t unwind_walk(const void *site,
                                             uintptr_t stack_end,
                                             struct frame *frames, size_t max,
                                             bool *cut)
{
    struct walk walk;
    struct unw_cursor cursor;
    uintptr_t address = 0, wanted = (uintptr_t)site;
    memset(&walk, 0, sizeof(walk));
    read_registers(walk.regs);
    walk.stack = (struct range){walk.regs[UNW_SP], stack_end};
    *cut = false;
    if (unw.init(&cursor, unw.space, &walk) == 0)
        for (int i = 0; i < OURS_MAX && address != wanted; i++)
            if (!(address = step(&cursor, &walk)))
                break;
    frames[0] = frame_of(&walk, wanted);
    if (address != wanted)
        return !walk.failed;
    size_t n = 1;
    while ((address = step(&cursor, &walk)) && n < max)
        frames[n++] = frame_of(&walk, address);
    *cut = address != 0;
    return walk.failed ? 0 : n;
}

static bool load(void *library)
{
    bool complete = true;
    void *found;
#define X(name_, type_, symbol_, params_)        \
    found = dlsym(library, UNW_SYMBOL(symbol_)); \
    memcpy(&unw.name_, &found, sizeof(found));   \
    complete = complete && found;
    UNW_FUNCTIONS(X)
#undef X
    return complete;
}

/* Three known frames of our own; the first walk also makes libunwind ready. */
struct trial {
    const void *outer;
    bool good;
};

static __attribute__((noinline)) void try_inner(struct trial *trial)
{
    const void *site = __builtin_return_address(0);
    struct frame frames[8];
    struct walk walk = {.nmapped = 0};
    bool cut;
    uintptr_t end = room_end((uintptr_t)frames, UNWIND_STACK_BYTES);
    size_t n = end ? unwind_walk(site, end, frames, 8, &cut) : 0;
    struct frame outer = frame_of(&walk, (uintptr_t)trial->outer);
    trial->good = n >= 2 && frames[1].offset == outer.offset &&
                  frames[1].module == outer.module;
}

static __attribute__((noinline)) void try_outer(struct trial *trial)
{
    trial->outer = __builtin_return_address(0);
    try_inner(trial);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

/* On a thread with a table of files to itself: libunwind's first use opens a
 * pipe in some releases, which we do not need and which would take numbers from
 * the program's own files. It goes with the thread. */
static void *try_out(void *data)
{
    struct trial *trial = data;
    if (unshare(CLONE_FILES) != 0)
        return NULL;
    for (unw.lead = 0; unw.lead <= 1 && !trial->good; unw.lead++)
        try_outer(trial);
    unw.lead--;
    return NULL;
}

static bool works(void)
{
    struct trial trial = {.good = false};
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_OF_TRIAL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, &attr, try_out, &trial);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return !failed && pthread_join(thread, NULL) == 0 && trial.good;
}

static void *open_library(void)
{
    void *library = dlopen(UNW_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    return library ? library : dlopen(UNW_LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

bool unwind_open(char *what, size_t size)
{
    Dl_info info;
    void *address, *library = open_library();
    const char *why = NULL;
    if (!library)
        why = "cannot be opened";
    else if (!modules_init())
        why = "cannot be used: no memory";
    else if (!load(library))
        why = "lacks a function";
    else if (!(unw.space = unw.create(&accessors, 0)) || !works())
        why = "fails its trial";
    if (why) {
        snprintf(what, size, "none: " UNW_LIBRARY " %s", why);
        return false;
    }
    memcpy(&address, &unw.step, sizeof(address));
    snprintf(what, size, "%s",
             dladdr(address, &info) ? info.dli_fname : UNW_LIBRARY);
    return true;
}
