#include "doctor/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#error "which machine is this?"
#endif

/* The n bytes at offset, or NULL where they leave the file. */
static const void *at(const struct elf *elf, uint64_t offset, uint64_t n)
{
    if (offset > elf->size || n > elf->size - offset)
        return NULL;
    return elf->data + offset;
}

/* A text that ends within the n bytes at offset. */
static const char *text_at(const struct elf *elf, uint64_t offset, uint64_t n)
{
    const char *text = at(elf, offset, n);

    return text && memchr(text, 0, n) ? text : NULL;
}

static Elf64_Ehdr head_of(const struct elf *elf)
{
    Elf64_Ehdr head;

    memcpy(&head, elf->data, sizeof head);
    return head;
}

static void read_segments(struct elf *elf, const Elf64_Ehdr *head)
{
    for (int i = 0; i < head->e_phnum; i++) {
        const void *found =
            at(elf, head->e_phoff + (uint64_t)i * sizeof(Elf64_Phdr),
               sizeof(Elf64_Phdr));
        Elf64_Phdr segment;

        if (!found) {
            elf->kind = ELF_DAMAGED;
            return;
        }
        memcpy(&segment, found, sizeof segment);
        if (segment.p_type == PT_DYNAMIC)
            elf->is_dynamic = true;
        if (segment.p_type != PT_INTERP)
            continue;
        elf->interp = text_at(elf, segment.p_offset, segment.p_filesz);
        if (!elf->interp)
            elf->kind = ELF_DAMAGED;
    }
}

void elf_read(struct elf *elf, const void *data, size_t size)
{
    Elf64_Ehdr head;

    *elf = (struct elf){.kind = ELF_NOT, .data = data, .size = size};
    if (size < EI_NIDENT || memcmp(data, ELFMAG, SELFMAG) != 0)
        return;
    elf->kind = ELF_DAMAGED;
    elf->bits = elf->data[EI_CLASS] == ELFCLASS64   ? 64
                : elf->data[EI_CLASS] == ELFCLASS32 ? 32
                                                    : 0;
    if (size < sizeof(Elf32_Ehdr) || !elf->bits)
        return;
    /* These three have one place in both classes. */
    memcpy(&head, data, offsetof(Elf64_Ehdr, e_entry));
    elf->machine = head.e_machine;
    elf->is_program = head.e_type == ET_EXEC || head.e_type == ET_DYN;
    if (elf->bits != 64 || head.e_machine != MACHINE ||
        elf->data[EI_DATA] != ELFDATA2LSB) {
        elf->kind = ELF_FOREIGN;
        return;
    }
    if (size < sizeof head)
        return;
    head = head_of(elf);
    if (head.e_phnum && head.e_phentsize != sizeof(Elf64_Phdr))
        return;
    elf->kind = ELF_NATIVE;
    read_segments(elf, &head);
}

int elf_open(struct elf *elf, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat file;
    void *data;

    *elf = (struct elf){.kind = ELF_NOT};
    if (fd < 0)
        return -1;
    if (fstat(fd, &file) || !S_ISREG(file.st_mode)) {
        close(fd);
        errno = errno ? errno : EINVAL;
        return -1;
    }
    if (file.st_size == 0) {
        close(fd);
        return 0;
    }
    data = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (data == MAP_FAILED)
        return -1;
    elf_read(elf, data, (size_t)file.st_size);
    return 0;
}

void elf_close(struct elf *elf)
{
    if (elf->data)
        munmap((void *)(uintptr_t)elf->data, elf->size);
    *elf = (struct elf){.kind = ELF_NOT};
}

/* Section i; false where there is none. */
static bool section(const struct elf *elf, unsigned i, Elf64_Shdr *out)
{
    Elf64_Ehdr head = head_of(elf);
    const void *found;

    if (i >= head.e_shnum || head.e_shentsize != sizeof *out)
        return false;
    found = at(elf, head.e_shoff + (uint64_t)i * sizeof *out, sizeof *out);
    if (!found)
        return false;
    memcpy(out, found, sizeof *out);
    return true;
}

static bool is_table(const Elf64_Shdr *s)
{
    return s->sh_type == SHT_SYMTAB || s->sh_type == SHT_DYNSYM;
}

/* Looks name up in one table of symbols. */
static enum elf_symbol look_into(const struct elf *elf, const Elf64_Shdr *s,
                                 const char *name)
{
    size_t length = strlen(name) + 1;
    enum elf_symbol best = ELF_ABSENT;
    const unsigned char *symbols = at(elf, s->sh_offset, s->sh_size);
    Elf64_Shdr names;

    if (!symbols || !section(elf, s->sh_link, &names) ||
        !at(elf, names.sh_offset, names.sh_size))
        return ELF_ABSENT;
    for (uint64_t i = 0; i < s->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;

        memcpy(&symbol, symbols + i * sizeof symbol, sizeof symbol);
        if (symbol.st_name >= names.sh_size ||
            names.sh_size - symbol.st_name < length ||
            memcmp(elf->data + names.sh_offset + symbol.st_name, name,
                   length) != 0)
            continue;
        if (symbol.st_shndx != SHN_UNDEF)
            return ELF_DEFINED;
        best = ELF_IMPORTED;
    }
    return best;
}

enum elf_symbol elf_symbol(const struct elf *elf, const char *name)
{
    enum elf_symbol best = ELF_ABSENT;
    Elf64_Shdr s;

    if (elf->kind != ELF_NATIVE)
        return ELF_ABSENT;
    for (unsigned i = 0; section(elf, i, &s); i++) {
        enum elf_symbol found =
            is_table(&s) ? look_into(elf, &s, name) : ELF_ABSENT;

        best = found > best ? found : best;
    }
    return best;
}

bool elf_has_symbols(const struct elf *elf)
{
    Elf64_Shdr s;

    if (elf->kind != ELF_NATIVE)
        return false;
    for (unsigned i = 0; section(elf, i, &s); i++)
        if (s.sh_type == SHT_SYMTAB && s.sh_size > sizeof(Elf64_Sym))
            return true;
    return false;
}

/* Whether the name of section s starts so. */
static bool is_called(const struct elf *elf, const Elf64_Shdr *s,
                      const char *start)
{
    size_t n = strlen(start);
    Elf64_Shdr names;
    const char *name;

    if (!section(elf, head_of(elf).e_shstrndx, &names) ||
        s->sh_name >= names.sh_size || names.sh_size - s->sh_name < n)
        return false;
    name = at(elf, names.sh_offset + s->sh_name, n);
    return name && !memcmp(name, start, n);
}

bool elf_mentions(const struct elf *elf, const char *text)
{
    Elf64_Shdr s;

    if (elf->kind != ELF_NATIVE)
        return false;
    for (unsigned i = 0; section(elf, i, &s); i++) {
        const void *bytes = at(elf, s.sh_offset, s.sh_size);

        if (s.sh_type == SHT_PROGBITS && bytes &&
            (is_called(elf, &s, ".rodata") ||
             is_called(elf, &s, ".gopclntab")) &&
            memmem(bytes, s.sh_size, text, strlen(text)))
            return true;
    }
    return false;
}

const char *elf_machine_name(int machine)
{
    switch (machine) {
    case EM_X86_64:
        return "x86-64";
    case EM_AARCH64:
        return "aarch64";
    case EM_386:
        return "x86";
    case EM_ARM:
        return "arm";
    case EM_PPC64:
        return "ppc64";
    case EM_RISCV:
        return "riscv";
    case EM_S390:
        return "s390";
    default:
        return "another machine";
    }
}
