/*
 * An ELF file that an address may lie in, and the file with its debug
 * information. Both are input: what does not read as it should is as if it
 * were not there.
 */
#ifndef COMMTRACE_SYMBOLS_ELF_FILE_H
#define COMMTRACE_SYMBOLS_ELF_FILE_H

#include <stdbool.h>

struct Elf;

struct ct_elf_file {
    int fd; /* -1: not open */
    struct Elf *elf;
    char build_id[130]; /* hexadecimal, "": none */
};

/* False, and nothing to close: there is no such file, or it is not ELF. */
bool ct_elf_open(struct ct_elf_file *file, const char *path);
void ct_elf_close(struct ct_elf_file *file);

/* Opens the debug file of the module that file, at path, was read from: by
 * build id below debug_dir, else by its debug link beside it, in .debug beside
 * it and below debug_dir. Only one with the same build id will do. */
bool ct_elf_open_debug(struct ct_elf_file *debug,
                       const struct ct_elf_file *file, const char *path,
                       const char *debug_dir);

#endif
