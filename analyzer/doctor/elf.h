/*
 * What an ELF file says of itself. Files are input: every offset is checked,
 * and a file that points outside itself is damaged, not followed. Only files
 * of this machine's own kind are read beyond their head.
 */
#ifndef COMMTRACE_DOCTOR_ELF_H
#define COMMTRACE_DOCTOR_ELF_H

#include <stdbool.h>
#include <stddef.h>

enum elf_kind {
    ELF_NOT,     /* another kind of file */
    ELF_FOREIGN, /* of another machine, or of 32 bits here */
    ELF_DAMAGED,
    ELF_NATIVE
};

struct elf {
    enum elf_kind kind;
    int bits;           /* 32 or 64; 0: unknown */
    int machine;        /* EM_* */
    bool is_program;    /* not a relocatable or core file */
    bool is_dynamic;    /* has a dynamic section */
    const char *interp; /* the loader that it asks for; NULL: none */
    const unsigned char *data;
    size_t size;
};

/* 0, or -1 with errno where the file cannot be read. */
int elf_open(struct elf *elf, const char *path);
void elf_close(struct elf *elf);

/* The same of bytes in memory, which the caller keeps. */
void elf_read(struct elf *elf, const void *data, size_t size);

enum elf_symbol { ELF_ABSENT, ELF_IMPORTED, ELF_DEFINED };

/* What the symbol tables say of name; ELF_ABSENT, too, without any. */
enum elf_symbol elf_symbol(const struct elf *elf, const char *name);

/* Whether there is a table that names what the program defines: a stripped
 * one has none. */
bool elf_has_symbols(const struct elf *elf);

/* Whether text is among the constants of the file, or the names of Go's
 * functions, which stay when it is stripped. */
bool elf_mentions(const struct elf *elf, const char *text);

/* "x86-64" and so on, for people. */
const char *elf_machine_name(int machine);

#endif
