#include "init.h"

#include "config.h"
#include "descriptor.h"
#include "log.h"
#include "nccl_file.h"
#include "policy.h"
#include "process.h"
#include "profiler.h"
#include "record.h"
#include "rescue.h"
#include "scope.h"
#include "stack.h"
#include "thread.h"
#include "topo.h"
#include "writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

_Atomic(_Atomic uint32_t *) init_live;

/* What init_live points to in a process that never records. */
static _Atomic uint32_t never;

/* Static, since a hook may run on a stack of 16 KiB. */
static struct config config;
static struct process process;

/* Words of the page: whether we record, and whether there is a writer thread,
 * which is joined also where recording has ended before. */
enum { LIVE, WRITER };

static void forget_all(void)
{
    _Atomic uint32_t *live =
        atomic_load_explicit(&init_live, memory_order_acquire);
    init_stop();
    if (live && live != &never)
        atomic_store_explicit(&live[WRITER], 0, memory_order_relaxed);
}

/* Words that are what we make them here and 0 in every child, however it was
 * forked. */
static _Atomic uint32_t *make_live_word(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (madvise(memory, page, MADV_WIPEONFORK) != 0) {
        /* Before Linux 4.14 only what calls fork() is caught. */
        if (pthread_atfork(NULL, NULL, forget_all) != 0) {
            munmap(memory, page);
            return NULL;
        }
    }
    return memory;
}

static int open_ring(void)
{
    char beside[2048];
    snprintf(beside, sizeof(beside), "%.2042s.ring", process.db_path);
    uint64_t nslots = ring_fit(PROCESS_SHM, (uint64_t)config.ring_slots);
    if (access(PROCESS_SHM, W_OK) != 0)
        nslots = (uint64_t)config.ring_slots;
    rescue_set_aside(process.shm_ring);
    if (ring_open(&recorder.ring, process.shm_ring, "", nslots) != 0)
        return -1;
    if (!*recorder.ring.path && writer_make_folder(process.dir) == 0) {
        ring_close(&recorder.ring);
        if (ring_open(&recorder.ring, beside, "", nslots) != 0)
            return -1;
    }
    return 0;
}

static void fill_header(struct ct_ring_header *header)
{
    header->start_ticks = process.start_ticks;
    header->pid = (uint32_t)process.pid;
    header->rank = process.rank == CT_NULL ? -1 : (int32_t)process.rank;
    header->t0_ns = process.t0_ns;
    header->t0_real_ns = process.t0_real_ns;
    snprintf(header->boot_id, sizeof(header->boot_id), "%s", process.boot_id);
    snprintf(header->uuid, sizeof(header->uuid), "%s", process.uuid);
    snprintf(header->db_path, sizeof(header->db_path), "%s", process.db_path);
}

static bool begin(void)
{
    log_begin();
    config_read(&config);
    if (config.disable)
        return false;
    if (scope_is_second()) {
        log_line(LOG_RING, "another copy of this library is loaded before this "
                           "one, which does not record");
        return false;
    }
    if (!descriptor_has_room()) {
        log_line(LOG_RING, "not recording: the limit of open files is too low");
        return false;
    }
    if (process_describe(&process, config.dir) != 0) {
        log_line(
            LOG_TRACE,
            "not recording: a trace's path may have %d bytes, and %.100s... "
            "is too long",
            CT_TRACE_PATH_MOST, process.dir);
        return false;
    }
    recorder.t0_ns = process.t0_ns;
    recorder.process = process.random;
    if (open_ring() != 0) {
        log_line(LOG_RING, "not recording: no memory for the ring");
        return false;
    }
    fill_header(recorder.ring.header);
    config_describe(process.options, sizeof(process.options));
    policy_set(config.timing);
    profiler_begin(config.profiler);
    topo_begin(config.sysfs);
    nccl_file_begin(&config, &process);
    stack_init(config.stacks, process.stacks, sizeof(process.stacks));
    return true;
}

static void at_exit(void)
{
    if (!init_has_begun())
        return;
    int cancel = thread_hold_cancel();
    writer_drain();
    thread_allow_cancel(cancel);
}

static void begin_once(void)
{
    _Atomic uint32_t *live = &never;
    /* A program with more rights than its user takes no orders from the
     * environment. */
    if (!getauxval(AT_SECURE) && begin() && (live = make_live_word())) {
        atomic_store_explicit(live, 1, memory_order_relaxed);
        if (writer_start(&config, &process) != 0) {
            log_line(LOG_THREAD, "not recording: no thread for the writer");
            ring_close(&recorder.ring);
            live = &never;
        } else {
            atomic_store_explicit(&live[WRITER], 1, memory_order_relaxed);
            atexit(at_exit);
        }
    }
    /* Release: who sees the word sees the recorder. */
    atomic_store_explicit(&init_live, live ? live : &never,
                          memory_order_release);
}

_Atomic uint32_t *init_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct thread_hold before;
    int saved = errno;
    thread_hold(&before);
    pthread_once(&once, begin_once);
    thread_release(&before);
    errno = saved;
    return atomic_load_explicit(&init_live, memory_order_acquire);
}

void init_stop(void)
{
    _Atomic uint32_t *live =
        atomic_load_explicit(&init_live, memory_order_acquire);
    if (live)
        atomic_store_explicit(live, 0, memory_order_relaxed);
}

/* After the program's own exit handlers, which may still call NCCL. */
__attribute__((destructor)) static void end(void)
{
    _Atomic uint32_t *live =
        atomic_load_explicit(&init_live, memory_order_acquire);
    if (!live || live == &never ||
        !atomic_load_explicit(&live[WRITER], memory_order_relaxed))
        return;
    int cancel = thread_hold_cancel();
    init_stop();
    writer_stop();
    thread_allow_cancel(cancel);
}
