/*
 * The part of libunwind's interface (nongnu.org/libunwind, 1.3 to 1.8) that
 * shim/unwind.c uses, in our own words. All of it is the interface for
 * unwinding with accessors of one's own, as a debugger does, in the library of
 * that name: libunwind-x86_64.so.8, libunwind-aarch64.so.8.
 */
#ifndef COMMTRACE_UNWIND_ABI_H
#define COMMTRACE_UNWIND_ABI_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define UNW_LIBRARY "libunwind-x86_64.so.8"
#define UNW_SYMBOL(name_) "_Ux86_64_" name_
enum { UNW_REGISTERS = 17, UNW_SP = 7, UNW_PC = 16, UNW_IP = UNW_PC };
#elif defined(__aarch64__)
#define UNW_LIBRARY "libunwind-aarch64.so.8"
#define UNW_SYMBOL(name_) "_Uaarch64_" name_
/* Its unw_get_reg() calls the program counter by the link register's number. */
enum { UNW_REGISTERS = 33, UNW_SP = 31, UNW_PC = 32, UNW_IP = 30 };
#else
#error "no call sites on this architecture"
#endif

enum { UNW_EBADREG = 3, UNW_EINVAL = 8, UNW_ENOINFO = 10 };

/* 127 words on x86-64, 250 on aarch64, of up to 1.8; there is some to spare. */
struct unw_cursor {
    uint64_t opaque[UNW_REGISTERS > 17 ? 320 : 160];
};

/* unw_accessors_t: has grown at its end, and may again. */
struct unw_accessors {
    int (*find_proc_info)(void *space, uintptr_t ip, void *info, int need,
                          void *context);
    void (*put_unwind_info)(void *space, void *info, void *context);
    int (*get_dyn_info_list_addr)(void *space, uintptr_t *address,
                                  void *context);
    int (*access_mem)(void *space, uintptr_t address, uintptr_t *value,
                      int write, void *context);
    int (*access_reg)(void *space, int reg, uintptr_t *value, int write,
                      void *context);
    int (*access_fpreg)(void *space, int reg, void *value, int write,
                        void *context);
    int (*resume)(void *space, struct unw_cursor *cursor, void *context);
    /* Called on aarch64, whether it is there or not. */
    int (*get_proc_name)(void *space, uintptr_t ip, char *name, size_t size,
                         uintptr_t *offset, void *context);
    void *get_elf_filename, *get_proc_ip_range;
    uintptr_t (*ptrauth_insn_mask)(void *space, void *context);
    void *later[16];
};

/* unw_dyn_info_t of a table that is read through the accessors. Releases 1.4
 * to 1.7 have one word more before its last part than those before and after
 * (load_offset), under the same library name: `lead` is where that begins. */
struct unw_table {
    void *next, *previous;
    uintptr_t start_ip, end_ip, gp;
    int32_t format, pad;
    uintptr_t rest[8];
};
enum { UNW_REMOTE_TABLE = 2 };
enum { UNW_REST_SEGBASE = 1, UNW_REST_LENGTH, UNW_REST_DATA };

/* Functions: name here, name there, parameters. */
#define UNW_FUNCTIONS(X)                                               \
    X(create, void *, "create_addr_space",                             \
      (const struct unw_accessors *accessors, int byte_order))         \
    X(init, int, "init_remote",                                        \
      (struct unw_cursor * cursor, void *space, void *context))        \
    X(step, int, "step", (struct unw_cursor * cursor))                 \
    X(get_reg, int, "get_reg",                                         \
      (struct unw_cursor * cursor, int reg, uintptr_t *value))         \
    X(search, int, "dwarf_search_unwind_table",                        \
      (void *space, uintptr_t ip, struct unw_table *table, void *info, \
       int need, void *context))

#endif
