#include "symbols/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void read_build_id(struct ct_elf_file *file)
{
    const void *id = NULL;
    ssize_t n = dwelf_elf_gnu_build_id(file->elf, &id);

    file->build_id[0] = '\0';
    if (n <= 0 || 2 * (size_t)n >= sizeof file->build_id)
        return;
    for (ssize_t i = 0; i < n; i++)
        snprintf(file->build_id + 2 * i, 3, "%02x",
                 ((const unsigned char *)id)[i]);
}

/* Read, not mapped: a file that shrinks under a mapping would kill us. */
bool ct_elf_open(struct ct_elf_file *file, const char *path)
{
    struct stat st;

    *file = (struct ct_elf_file){.fd = -1};
    if (elf_version(EV_CURRENT) == EV_NONE)
        return false;
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd >= 0 && !fstat(file->fd, &st) && S_ISREG(st.st_mode))
        file->elf = elf_begin(file->fd, ELF_C_READ, NULL);
    if (file->elf && elf_kind(file->elf) == ELF_K_ELF) {
        read_build_id(file);
        return true;
    }
    ct_elf_close(file);
    return false;
}

void ct_elf_close(struct ct_elf_file *file)
{
    elf_end(file->elf);
    if (file->fd >= 0)
        close(file->fd);
    *file = (struct ct_elf_file){.fd = -1};
}

static bool open_like(struct ct_elf_file *debug, const struct ct_elf_file *file,
                      const char *path)
{
    if (!ct_elf_open(debug, path))
        return false;
    if (!strcmp(debug->build_id, file->build_id))
        return true;
    ct_elf_close(debug);
    return false;
}

bool ct_elf_open_debug(struct ct_elf_file *debug,
                       const struct ct_elf_file *file, const char *path,
                       const char *debug_dir)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) : 0;
    char name[2 * PATH_MAX];
    GElf_Word crc;
    const char *link;

    *debug = (struct ct_elf_file){.fd = -1};
    if (strlen(file->build_id) < 4)
        return false;
    snprintf(name, sizeof name, "%s/.build-id/%.2s/%s.debug", debug_dir,
             file->build_id, file->build_id + 2);
    if (open_like(debug, file, name))
        return true;
    link = dwelf_elf_gnu_debuglink(file->elf, &crc);
    if (!link || !*link || strchr(link, '/') || strlen(link) > NAME_MAX)
        return false;
    snprintf(name, sizeof name, "%.*s/%s", folder, path, link);
    if (open_like(debug, file, name))
        return true;
    snprintf(name, sizeof name, "%.*s/.debug/%s", folder, path, link);
    if (open_like(debug, file, name))
        return true;
    snprintf(name, sizeof name, "%s/%.*s/%s", debug_dir, folder, path, link);
    return open_like(debug, file, name);
}
