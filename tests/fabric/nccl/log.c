#include "nccl/log.h"

#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>

#include "nccl/conf.h"
#include "nccl/release.h"

enum log_level {
    LEVEL_UNREAD = -1,
    LEVEL_NONE,
    LEVEL_VERSION,
    LEVEL_WARN,
    LEVEL_INFO,
    LEVEL_ABORT,
    LEVEL_TRACE
};

static _Atomic int level = LEVEL_UNREAD;
static _Atomic unsigned mask;
static FILE *file; /* NULL: stdout */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int read_level(void)
{
    static const char *const names[] = {
        [LEVEL_VERSION] = "VERSION", [LEVEL_WARN] = "WARN",
        [LEVEL_INFO] = "INFO",       [LEVEL_ABORT] = "ABORT",
        [LEVEL_TRACE] = "TRACE",
    };
    const char *text = getenv("NCCL_DEBUG");

    for (int i = LEVEL_VERSION; text && i <= LEVEL_TRACE; i++) {
        if (!strcasecmp(text, names[i]))
            return i;
    }
    return LEVEL_NONE;
}

/* What a release knows by name: the first releases only the first seven. */
static unsigned subsystem_of(const char *name)
{
    static const struct {
        const char *name;
        unsigned bit;
    } all[] = {
        {"INIT", LOG_INIT},
        {"COLL", LOG_COLL},
        {"P2P", LOG_P2P},
        {"SHM", LOG_SHM},
        {"NET", LOG_NET},
        {"GRAPH", LOG_GRAPH},
        {"TUNING", LOG_TUNING},
        {"ENV", LOG_ENV},
        {"ALLOC", LOG_ALLOC},
        {"CALL", LOG_CALL},
        {"PROXY", LOG_PROXY},
        {"NVLS", LOG_NVLS},
        {"BOOTSTRAP", LOG_BOOTSTRAP},
        {"REG", LOG_REG},
        {"PROFILE", LOG_PROFILE},
        {"RAS", LOG_RAS},
        {"DESTROY", LOG_DESTROY},
        {"ALL", (unsigned)LOG_ALL},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (!strcasecmp(name, all[i].name))
            return all[i].bit;
    }
    return 0;
}

static unsigned default_mask(void)
{
    int release = nccl_release();

    if (release >= 22304)
        return LOG_INIT | LOG_BOOTSTRAP | LOG_ENV;
    return release >= 21700 ? LOG_INIT | LOG_ENV : LOG_INIT;
}

/* "A,B": these; "^A,B": all but these. 2.4 adds to its default, and takes a ^
 * for the one name behind it. */
static unsigned read_mask(void)
{
    const char *text = getenv("NCCL_DEBUG_SUBSYS");
    int each = nccl_release() < 2500;
    int invert = 0;
    unsigned bits = default_mask();
    char names[512];
    char *save = NULL;

    if (!text)
        return bits;
    if (!each) {
        invert = *text == '^';
        bits = invert ? (unsigned)LOG_ALL : 0;
        text += invert;
    }
    snprintf(names, sizeof(names), "%s", text);
    for (char *name = strtok_r(names, ",", &save); name;
         name = strtok_r(NULL, ",", &save)) {
        int without = invert;

        if (each && *name == '^') {
            without = 1;
            name++;
        }
        bits = without ? bits & ~subsystem_of(name) : bits | subsystem_of(name);
    }
    return bits;
}

static void host_name(char *text, size_t size)
{
    text[0] = '\0';
    gethostname(text, size - 1);
    text[size - 1] = '\0';
    text[strcspn(text, ".")] = '\0';
}

/* %h is the host, %p the process, %% a percent sign; what else follows one
 * stays as it is. */
static void expand(const char *from, char *to, size_t size)
{
    size_t n = 0;
    char host[256];

    host_name(host, sizeof(host));
    to[0] = '\0';
    for (; *from && n + 1 < size; from++) {
        if (*from != '%' || !from[1]) {
            to[n++] = *from;
            to[n] = '\0';
            continue;
        }
        switch (*++from) {
        case 'h':
            snprintf(to + n, size - n, "%s", host);
            break;
        case 'p':
            snprintf(to + n, size - n, "%d", (int)getpid());
            break;
        case '%':
            snprintf(to + n, size - n, "%%");
            break;
        default:
            snprintf(to + n, size - n, "%%%c", *from);
        }
        n += strlen(to + n);
    }
}

static void open_file(void)
{
    const char *pattern = getenv("NCCL_DEBUG_FILE");
    char path[PATH_MAX];

    if (!pattern)
        return;
    expand(pattern, path, sizeof(path));
    if (!path[0])
        return;
    file = fopen(path, "w"); /* programs started inherit it, as of NCCL */
    if (file)
        setvbuf(file, NULL, _IOLBF, 0);
}

/* Under the lock. */
static void read_environment(void)
{
    int wanted = read_level();

    if (file)
        fclose(file);
    file = NULL;
    atomic_store_explicit(&mask, read_mask(), memory_order_relaxed);
    if (wanted > LEVEL_VERSION)
        open_file();
    atomic_store_explicit(&level, wanted, memory_order_release);
}

static int level_now(void)
{
    int now = atomic_load_explicit(&level, memory_order_acquire);

    if (now != LEVEL_UNREAD)
        return now;
    conf_load();
    pthread_mutex_lock(&lock);
    if (atomic_load(&level) == LEVEL_UNREAD)
        read_environment();
    now = atomic_load(&level);
    pthread_mutex_unlock(&lock);
    return now;
}

int log_wants(unsigned subsystems)
{
    return level_now() >= LEVEL_INFO &&
           atomic_load_explicit(&mask, memory_order_relaxed) & subsystems;
}

static int device_now(void)
{
    CUdevice device = 0;

    return cuCtxGetDevice(&device) ? 0 : device;
}

static void print_line(const char *prefix, const char *format, va_list args)
{
    char text[4096];
    FILE *to;

    vsnprintf(text, sizeof(text), format, args);
    pthread_mutex_lock(&lock);
    to = file ? file : stdout;
    fprintf(to, "%s%s\n", prefix, text);
    fflush(to);
    pthread_mutex_unlock(&lock);
}

void log_info(unsigned subsystems, const char *format, ...)
{
    char prefix[320];
    char host[256];
    va_list args;

    if (!log_wants(subsystems))
        return;
    host_name(host, sizeof(host));
    snprintf(prefix, sizeof(prefix), "%s:%d:%d [%d] NCCL INFO ", host,
             (int)getpid(), (int)syscall(SYS_gettid), device_now());
    va_start(args, format);
    print_line(prefix, format, args);
    va_end(args);
}

/* Since 2.26 a warning tells its time. */
static void time_text(char *text, size_t size)
{
    struct timespec now;
    struct tm tm;

    text[0] = '\0';
    if (nccl_release() < 22602)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &tm);
    strftime(text, size, "[%F %T] ", &tm);
}

void log_warn(const char *source, int line, const char *format, ...)
{
    char prefix[512];
    char host[256];
    char when[64];
    va_list args;

    if (level_now() < LEVEL_WARN)
        return;
    host_name(host, sizeof(host));
    time_text(when, sizeof(when));
    snprintf(prefix, sizeof(prefix), "\n%s%s:%d:%d [%d] %s:%d NCCL WARN ", when,
             host, (int)getpid(), (int)syscall(SYS_gettid), device_now(),
             source, line);
    va_start(args, format);
    print_line(prefix, format, args);
    va_end(args);
}

static void version_text(char *text, size_t size)
{
    int code = nccl_release();
    int old = code < 10000; /* 2.4 to 2.8 count otherwise */
    int cuda = 0;

    cuDriverGetVersion(&cuda);
    snprintf(text, size, "NCCL version %d.%d.%d+cuda%d.%d",
             old ? code / 1000 : code / 10000,
             old ? code / 100 % 10 : code / 100 % 100, code % 100, cuda / 1000,
             cuda / 10 % 100);
}

/* Before 2.22 it goes to stdout whenever there is any output at all, wherever
 * the rest goes. */
void log_version(void)
{
    static _Atomic int said;
    char text[96];
    int now = level_now();

    if (now < LEVEL_VERSION || atomic_exchange(&said, 1))
        return;
    version_text(text, sizeof(text));
    if (nccl_release() < 22203 || now < LEVEL_INFO) {
        pthread_mutex_lock(&lock);
        fprintf(nccl_release() < 22203 || !file ? stdout : file, "%s\n", text);
        fflush(NULL);
        pthread_mutex_unlock(&lock);
    }
    if (nccl_release() >= 22203 || file)
        log_info((unsigned)LOG_ALL, "%s", text);
}

void log_reset(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&level, LEVEL_UNREAD);
    pthread_mutex_unlock(&lock);
}
