#include "modules.h"

#include "thread.h"

#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { TEXT_BYTES = 96 * 1024 };

struct module {
    uintptr_t bias;
    const char *path;
    size_t id_bytes;
    unsigned char id[BUILD_ID_MAX];
    char id_text[2 * BUILD_ID_MAX + 1];
};

static struct {
    pthread_mutex_t lock;      /* held around each look */
    _Atomic uintptr_t forking; /* the thread that holds it for its fork() */
    struct thread_hold hold;   /* of that thread */
    struct module known[MODULES];
    uint32_t n;
    char text[TEXT_BYTES]; /* their paths, one after the other */
    size_t used;
} modules = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The descriptor of the note that holds the build id: notes are name size,
 * descriptor size, type, name, descriptor, each padded to 4 bytes. */
static const unsigned char *find_build_id(const struct dl_phdr_info *info,
                                          size_t *size)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + segment->p_vaddr;
        uintptr_t end = at + segment->p_memsz;
        if (segment->p_type != PT_NOTE)
            continue;
        while (end - at >= sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const void *)at;
            uintptr_t name = at + sizeof(*note);
            uintptr_t id = name + ((note->n_namesz + 3u) & ~3u);
            uintptr_t next = id + ((note->n_descsz + 3u) & ~3u);
            if (next < at || next > end)
                break;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
                !memcmp((const void *)name, "GNU", 4)) {
                *size = note->n_descsz < BUILD_ID_MAX ? note->n_descsz
                                                      : BUILD_ID_MAX;
                return (const void *)id;
            }
            at = next;
        }
    }
    *size = 0;
    return NULL;
}

static void write_hex(char *text, const unsigned char *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = 0;
}

static uint32_t add(const struct dl_phdr_info *info, const unsigned char *id,
                    size_t id_bytes)
{
    size_t length = strlen(info->dlpi_name) + 1;
    if (modules.n == MODULES || length > TEXT_BYTES - modules.used)
        return 0;
    struct module *module = &modules.known[modules.n];
    char *path = modules.text + modules.used;
    memcpy(path, info->dlpi_name, length);
    modules.used += length;
    module->bias = info->dlpi_addr;
    module->path = path;
    module->id_bytes = id_bytes;
    if (id_bytes)
        memcpy(module->id, id, id_bytes);
    write_hex(module->id_text, module->id, id_bytes);
    return ++modules.n;
}

/* Another file may come to the same place under the same name: the build id
 * tells. */
static uint32_t number(const struct dl_phdr_info *info)
{
    size_t id_bytes;
    const unsigned char *id = find_build_id(info, &id_bytes);
    uint32_t found = 0;
    for (uint32_t i = 0; i < modules.n && !found; i++) {
        const struct module *module = &modules.known[i];
        if (module->bias == info->dlpi_addr && module->id_bytes == id_bytes &&
            (!id_bytes || !memcmp(module->id, id, id_bytes)) &&
            !strcmp(module->path, info->dlpi_name))
            found = i + 1;
    }
    if (!found)
        found = add(info, id, id_bytes);
    return found;
}

const char *module_path(uint32_t module)
{
    return modules.known[module - 1].path;
}

const char *module_build_id(uint32_t module)
{
    const struct module *known = &modules.known[module - 1];
    return known->id_bytes ? known->id_text : NULL;
}

static const ElfW(Phdr) *
    segment_at(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD &&
            address - (info->dlpi_addr + segment->p_vaddr) < segment->p_memsz)
            return segment;
    }
    return NULL;
}

/* .eh_frame_hdr as linkers write it: version 1, a pc-relative pointer to
 * .eh_frame, a count, and a table of pairs of offsets from its own start. */
struct eh_frame_header {
    unsigned char version, pointer_is, count_is, table_is;
    int32_t pointer;
    uint32_t count;
};
enum { PCREL_SDATA4 = 0x1b, UDATA4 = 0x03, DATAREL_SDATA4 = 0x3b };

static void find_table(const struct dl_phdr_info *info, struct mapped *found)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_GNU_EH_FRAME)
            continue;
        uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        const ElfW(Phdr) *segment = segment_at(info, at);
        const struct eh_frame_header *header = (const void *)at;
        if (!segment || !(segment->p_flags & PF_R) || header->version != 1 ||
            header->pointer_is != PCREL_SDATA4 || header->count_is != UDATA4 ||
            header->table_is != DATAREL_SDATA4)
            return;
        found->header = at;
        found->table = at + sizeof(*header);
        found->entries = header->count;
    }
}

bool mapped_segment(const struct mapped *mapped, uintptr_t address,
                    struct range *segment)
{
    const ElfW(Phdr) *segments = mapped->segments;
    for (int i = 0; i < mapped->nsegments; i++) {
        uintptr_t start = mapped->bias + segments[i].p_vaddr;
        struct range range = {start, start + segments[i].p_memsz};
        if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_R &&
            range_has(&range, address)) {
            *segment = range;
            return true;
        }
    }
    return false;
}

struct search {
    uintptr_t address;
    struct mapped *found;
};

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct search *search = data;
    const ElfW(Phdr) *segment = segment_at(info, search->address);
    if (!segment || !(segment->p_flags & PF_X))
        return segment != NULL;
    struct mapped *found = search->found;
    *found = (struct mapped){
        .bias = info->dlpi_addr,
        .start = info->dlpi_addr + segment->p_vaddr,
        .segments = info->dlpi_phdr,
        .nsegments = info->dlpi_phnum,
    };
    found->end = found->start + segment->p_memsz;
    find_table(info, found);
    found->module = number(info);
    return 2;
}

/* Not for ever: its holder may wait for the loader's lock, which we may have,
 * where a handler of ours came in the middle of the loader. */
static bool take_lock(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
#ifdef __SANITIZE_THREAD__ /* which does not know that function */
    return pthread_mutex_lock(&modules.lock) == 0;
#else
    return pthread_mutex_clocklock(&modules.lock, CLOCK_MONOTONIC, &until) == 0;
#endif
}

/* No handler comes in between and looks. */
static void before_fork(void)
{
    struct thread_hold hold;
    thread_hold(&hold);
    if (!take_lock()) {
        thread_release(&hold);
        return;
    }
    modules.hold = hold;
    atomic_store(&modules.forking, (uintptr_t)pthread_self());
}

static void after_fork(void)
{
    if (atomic_load(&modules.forking) != (uintptr_t)pthread_self())
        return;
    struct thread_hold hold = modules.hold;
    atomic_store(&modules.forking, 0);
    pthread_mutex_unlock(&modules.lock);
    thread_release(&hold);
}

bool modules_init(void)
{
    return pthread_atfork(before_fork, after_fork, after_fork) == 0;
}

enum found modules_find(uintptr_t address, struct mapped *found)
{
    struct search search = {.address = address, .found = found};
    if (!take_lock())
        return FOUND_NO_LOCK;
    int result = dl_iterate_phdr(look, &search);
    pthread_mutex_unlock(&modules.lock);
    return result == 2 ? FOUND_MODULE : FOUND_NONE;
}
