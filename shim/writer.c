#include "writer.h"

#include "clock.h"
#include "gputime.h"
#include "init.h"
#include "log.h"
#include "nccl_file.h"
#include "profiler.h"
#include "record.h"
#include "rescue.h"
#include "trace.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 512 * 1024 };
enum { SLEEP_MIN_MS = 1, SLEEP_MAX_MS = 20, RETRY_MS = 1000 };
enum { NETWORK_FLUSH_MS = 10000 };
enum { ALONE_MS = 100 };
#define NS_PER_MS INT64_C(1000000)

enum request { RUN, DRAIN, STOP };

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum request wanted, done;
    bool alone; /* the thread has left the trace to who ends the process */
    const struct config *config;
    const struct process *process;
} writer = {.lock = PTHREAD_MUTEX_INITIALIZER};

int writer_make_folder(const char *path)
{
    char part[2048];
    struct stat st;
    snprintf(part, sizeof(part), "%s", path);
    for (char *p = part + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = 0;
        mkdir(part, 0777);
        *p = '/';
    }
    if (mkdir(part, 0777) == 0)
        return 0;
    int why = errno;
    if (stat(part, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    errno = why;
    return -1;
}

static bool is_network(const char *folder)
{
    static const unsigned long magics[] = {
#define NETWORK_FS(magic_, name_) magic_,
#include "commtrace/network_fs.def"
    };
    struct statfs fs;
    if (statfs(folder, &fs) != 0)
        return false;
    for (size_t i = 0; i < sizeof(magics) / sizeof(*magics); i++)
        if ((unsigned long)fs.f_type == magics[i])
            return true;
    return false;
}

static struct timespec after_ms(int64_t ms)
{
    int64_t at = clock_ns() + ms * NS_PER_MS;
    return (struct timespec){.tv_sec = at / 1000000000,
                             .tv_nsec = at % 1000000000};
}

/* Until somebody asks for something, or the time is up. */
static enum request wait_ms(enum request known, int64_t ms)
{
    struct timespec until = after_ms(ms);
    pthread_mutex_lock(&writer.lock);
    while (writer.wanted == known &&
           pthread_cond_timedwait(&writer.changed, &writer.lock, &until) == 0)
        ;
    enum request wanted = writer.wanted;
    pthread_mutex_unlock(&writer.lock);
    return wanted;
}

static void report_done(enum request request)
{
    pthread_mutex_lock(&writer.lock);
    writer.done = request;
    pthread_cond_broadcast(&writer.changed);
    pthread_mutex_unlock(&writer.lock);
}

static uint64_t slots_so_far(const struct trace *trace)
{
    return atomic_load_explicit(&trace->ring->header->head,
                                memory_order_relaxed);
}

/* Before the driver is torn down: the GPU gets a moment to finish. */
static void drain(struct trace *trace)
{
    int64_t until = clock_ns() + 1000 * NS_PER_MS;
    trace_flush(trace, true);
    while (trace_waits(trace) && clock_ns() < until) {
        wait_ms(DRAIN, SLEEP_MIN_MS);
        trace_flush(trace, true);
    }
    gpu_end();
}

struct pace {
    int64_t flush_ns; /* between flushes of everything */
    uint64_t early;   /* slots that are worth a transaction before */
    int64_t flushed_ns;
    uint64_t seen;  /* slots so far, at the last look */
    uint64_t heard; /* of NCCL's profiler, at the last flush */
    int64_t sleep_ms;
    int64_t retry_ns;
};

/* Soon again where much comes in, rarely where nothing does: each time costs
 * the program's machine a wake-up. */
static void set_pace(struct pace *pace, uint64_t head, uint64_t nslots)
{
    uint64_t came = head - pace->seen;
    pace->seen = head;
    if (came > nslots / 16)
        pace->sleep_ms = SLEEP_MIN_MS;
    else if (pace->sleep_ms < SLEEP_MAX_MS)
        pace->sleep_ms += SLEEP_MIN_MS;
}

/* One look at the ring. Finished calls are stored in portions, calls in
 * progress only when it is time, or when room for more gets scarce. */
static void look(struct trace *trace, struct pace *pace)
{
    uint64_t head = slots_so_far(trace), nslots = trace->ring->mask + 1;
    uint64_t n = head - trace->gather.next;
    int64_t at = clock_ns();
    set_pace(pace, head, nslots);
    bool log_is_long = nccl_file_watch();
    if (trace->failing && at < pace->retry_ns)
        return;
    bool due = at - pace->flushed_ns >= pace->flush_ns;
    bool scarce = n >= nslots / 2 || gpu_scarce() || log_is_long;
    uint64_t heard = profiler_head();
    bool many = heard - pace->heard >= PROFILER_EVENTS / 8;
    if (!due && !scarce && n < pace->early && !many)
        return;
    pace->heard = heard;
    if (due)
        pace->flushed_ns = at;
    if (trace_flush(trace, due || scarce) != 0)
        pace->retry_ns = clock_ns() + RETRY_MS * NS_PER_MS;
}

/* A process whose first thread has left ends with its last thread, which must
 * not be ours. */
static bool is_alone(void)
{
    struct stat tasks;
    char exe[1];
    enum { FIRST_AND_OURS = 2, LINKS_OF_EMPTY = 2 };
    return readlink("/proc/self/exe", exe, sizeof(exe)) < 0 &&
           errno == ENOENT && stat("/proc/self/task", &tasks) == 0 &&
           tasks.st_nlink == LINKS_OF_EMPTY + FIRST_AND_OURS;
}

/* What the C library does when the last thread returns is exit(): the trace
 * stays open for it. */
static void leave_last(void)
{
    sigset_t none;
    sigemptyset(&none);
    pthread_mutex_lock(&writer.lock);
    writer.alone = true;
    pthread_mutex_unlock(&writer.lock);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void run(struct trace *trace, bool network)
{
    int64_t flush_ms = writer.config->flush_ms;
    if (network && flush_ms < NETWORK_FLUSH_MS)
        flush_ms = NETWORK_FLUSH_MS;
    struct pace pace = {
        .flush_ns = flush_ms * NS_PER_MS,
        .early = network ? UINT64_MAX : (trace->ring->mask + 1) / 8,
        .sleep_ms = SLEEP_MIN_MS,
    };
    enum request request = RUN;
    int64_t asked_ns = 0;
    while (request != STOP && !trace->removed) {
        look(trace, &pace);
        if (clock_ns() - asked_ns >= ALONE_MS * NS_PER_MS) {
            asked_ns = clock_ns();
            if (is_alone()) {
                leave_last();
                return;
            }
        }
        enum request wanted = wait_ms(request, pace.sleep_ms);
        if (wanted != request && wanted == DRAIN) {
            drain(trace);
            report_done(DRAIN);
        }
        request = wanted;
    }
    trace_close(trace);
}

static struct trace trace;

static void give_up(void)
{
    init_stop();
    nccl_file_end();
    ring_remove(&recorder.ring);
}

static void *work(void *unused)
{
    (void)unused;
    bool network = false;
    if (writer_make_folder(writer.process->dir) != 0) {
        log_line(LOG_TRACE, "cannot make %s: %s; not recording",
                 writer.process->dir, strerror(errno));
        give_up();
    } else if (network = is_network(writer.process->dir),
               trace_open(&trace, &recorder.ring, writer.config, writer.process,
                          network) != 0) {
        give_up();
    } else {
        rescue_rings(recorder.ring.path);
        run(&trace, network);
        if (writer.alone)
            return NULL;
    }
    report_done(STOP);
    return NULL;
}

static int start_thread(void)
{
    pthread_attr_t attr;
    pthread_condattr_t monotonic;
    sigset_t all, before;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&writer.changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    /* The program's signals are not ours to handle. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&writer.thread, &attr, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return failed ? -1 : 0;
}

int writer_start(const struct config *config, const struct process *process)
{
    writer.config = config;
    writer.process = process;
    store_begin();
    if (start_thread() != 0)
        return -1;
    pthread_setname_np(writer.thread, "commtrace");
    return 0;
}

/* True when it was done within the time. */
static bool ask(enum request request, int64_t ms)
{
    struct timespec until = after_ms(ms);
    pthread_mutex_lock(&writer.lock);
    writer.wanted = request;
    pthread_cond_broadcast(&writer.changed);
    while (writer.done < request &&
           pthread_cond_timedwait(&writer.changed, &writer.lock, &until) == 0)
        ;
    bool done = writer.done >= request;
    pthread_mutex_unlock(&writer.lock);
    return done;
}

static bool is_left_to_us(void)
{
    pthread_mutex_lock(&writer.lock);
    bool alone = writer.alone;
    pthread_mutex_unlock(&writer.lock);
    return alone;
}

void writer_drain(void)
{
    if (is_left_to_us()) {
        drain(&trace);
        return;
    }
    ask(DRAIN, 3000);
}

void writer_stop(void)
{
    if (is_left_to_us()) {
        trace_close(&trace);
        return;
    }
    if (ask(STOP, 10000))
        pthread_join(writer.thread, NULL);
}
