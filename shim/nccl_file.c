#include "nccl_file.h"

#include "descriptor.h"
#include "lock.h"
#include "nccl_settings.h"
#include "publish.h"
#include "start.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum stage {
    NEW,    /* nobody has asked yet */
    MADE,   /* it is there, and NCCL has not opened it */
    OURS,   /* NCCL writes into it */
    SOUGHT, /* the user's, which NCCL may not have opened yet */
    THEIRS, /* the user's */
    NONE    /* see why */
};

struct nccl_file {
    _Atomic int stage;
    struct publication variables;
    unsigned within;      /* calls in which NCCL may be about to open it */
    unsigned tries;       /* of them that are over, and it did not */
    _Atomic bool is_full; /* NCCL's words go nowhere now; see why */
    int fd;
    dev_t dev;
    ino_t ino;
    off_t at;      /* read so far */
    off_t end;     /* of what may be read */
    off_t punched; /* given back so far */
    char path[1024];
    char text[160]; /* NCCL_DEBUG_FILE=path */
    char why[1200];
};

static struct nccl_file files[NCCL_COPIES];

static struct {
    struct lock lock;
    const struct config *config;
    const struct process *process;
    struct nccl_setting debug, file, subsys;
} logs = {.lock = LOCK_INITIALIZER};

/* What a new file holds, so that NCCL's opening it, which empties it, is seen.
 * No line of NCCL's begins so. */
static const char untouched[] = "#\n";
enum { UNTOUCHED = sizeof(untouched) - 1 };

/* The first release that does not print its version on stdout whenever it logs
 * (showVersion() in src/init.cc), and in how many calls NCCL may leave its file
 * alone. */
enum { QUIET_SINCE = 22203, TRIES = 4 };

void nccl_file_begin(const struct config *config, const struct process *process)
{
    logs.config = config;
    logs.process = process;
}

static int stage_of(const struct nccl_file *file)
{
    return atomic_load_explicit(&file->stage, memory_order_acquire);
}

static bool is_full(const struct nccl_file *file)
{
    return atomic_load_explicit(&file->is_full, memory_order_acquire);
}

/* Release: who sees the stage sees what it goes with. */
static void set_stage(struct nccl_file *file, enum stage stage)
{
    atomic_store_explicit(&file->stage, (int)stage, memory_order_release);
}

__attribute__((format(printf, 2, 3))) static void
give_up(struct nccl_file *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(file->why, sizeof(file->why), format, args);
    va_end(args);
    set_stage(file, NONE);
}

static const char is_limited[] = "the size of files is limited (ulimit -f)";

/* Whether who writes too long a file is killed. */
static bool has_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
           limit.rlim_cur != RLIM_INFINITY;
}

/* Whether the process may write files of any size, and open a few more: NCCL
 * would be killed for the one, and log to stdout for want of the other. */
static bool has_room(struct nccl_file *file)
{
    enum { SPARE = 4 };
    int spare[SPARE], n = 0;
    if (has_limit()) {
        give_up(file, is_limited);
        return false;
    }
    while (n < SPARE &&
           (spare[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    bool has = n == SPARE;
    while (n > 0)
        close(spare[--n]);
    if (!has)
        give_up(file, "too few files may be opened");
    return has;
}

/* Whether NCCL would find it by its name, with the rights of now. */
static bool is_reachable(const struct nccl_file *file)
{
    struct stat named;
    return lstat(file->path, &named) == 0 && named.st_ino == file->ino &&
           named.st_dev == file->dev &&
           faccessat(AT_FDCWD, file->path, W_OK, AT_EACCESS) == 0;
}

static bool make_file(struct nccl_file *file)
{
    const struct process *process = logs.process;
    char path[sizeof(process->shm_ring) + 8];
    snprintf(path, sizeof(path), "%s.nccl%d", process->shm_ring,
             (int)(file - files));
    memcpy(file->path, path, sizeof(path));
    snprintf(file->text, sizeof(file->text), "NCCL_DEBUG_FILE=%s", path);
    unlink(file->path); /* of a program that exec()ed into this */
    file->fd = descriptor_open(file->path,
                               O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file->fd < 0) {
        give_up(file, "no file in " PROCESS_SHM ": %s", strerror(errno));
        return false;
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    fcntl(file->fd, F_SETLK, &lock);
    struct stat st = {0};
    fstat(file->fd, &st);
    file->dev = st.st_dev;
    file->ino = st.st_ino;
    bool has_room = write(file->fd, untouched, UNTOUCHED) == UNTOUCHED;
    if (has_room && is_reachable(file))
        return true;
    unlink(file->path);
    descriptor_close(file->fd);
    give_up(file, has_room ? "a file in " PROCESS_SHM " cannot be opened again"
                           : "no room in " PROCESS_SHM);
    return false;
}

/* Subsystems for which NCCL has a line at each call. */
static bool is_costly(const char *subsystems)
{
    static const char *const costly[] = {"COLL", "TUNING", "CALL", "ALL"};
    if (strchr(subsystems, '^'))
        return true;
    while (*subsystems) {
        size_t n = strcspn(subsystems, ",");
        for (size_t i = 0; i < sizeof(costly) / sizeof(*costly); i++)
            if (strlen(costly[i]) == n &&
                !strncasecmp(subsystems, costly[i], n))
                return true;
        subsystems += n + (subsystems[n] == ',');
    }
    return false;
}

static void drop(struct nccl_file *file)
{
    publish_end(&file->variables);
    unlink(file->path);
    descriptor_close(file->fd);
    set_stage(file, NEW);
}

static void ask_for_log(struct nccl_file *file)
{
    int n = 0;
    if (!has_room(file) || !make_file(file))
        return;
    file->variables.texts[n++] = "NCCL_DEBUG=INFO";
    file->variables.texts[n++] = file->text;
    if (logs.subsys.from == SETTING_NOWHERE)
        file->variables.texts[n++] =
            logs.config->nccl_log == LOGS_TUNING
                ? "NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,ENV,TUNING"
                : "NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,ENV";
    if (publish(&file->variables)) {
        set_stage(file, MADE);
        return;
    }
    drop(file);
    give_up(file, "NCCL_DEBUG could not be set");
}

static const char *origin(const struct nccl_setting *setting)
{
    return setting->from == SETTING_FILE ? setting->file : "the environment";
}

/* The user has a word of his own in it. */
static void look_for_theirs(struct nccl_file *file)
{
    static const char *const levels[] = {"WARN", "INFO", "ABORT", "TRACE"};
    const struct nccl_setting *debug = &logs.debug;
    bool logging = false;
    for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++)
        logging |= !strcasecmp(debug->value, levels[i]);
    if (debug->from == SETTING_NOWHERE)
        give_up(file, "NCCL_DEBUG_FILE is set (%s) without NCCL_DEBUG",
                origin(&logs.file));
    else if (!logging)
        give_up(file, "NCCL_DEBUG=%.20s is set (%s)", debug->value,
                origin(debug));
    else if (!*logs.file.value)
        give_up(file, "NCCL_DEBUG=%s is set (%s), and goes to stdout",
                debug->value, origin(debug));
    else {
        snprintf(file->path, sizeof(file->path), "%s", logs.file.value);
        set_stage(file, SOUGHT);
    }
}

static bool decides_otherwise(struct nccl_file *file, int version)
{
    const char *plugin = getenv("NCCL_ENV_PLUGIN");
    if (plugin && *plugin && strcasecmp(plugin, "none") != 0)
        give_up(file, "NCCL's environment comes from a plugin (%.100s)",
                plugin);
    else if (is_costly(logs.subsys.value))
        give_up(file,
                "NCCL_DEBUG_SUBSYS=%.100s is set (%s), which would have "
                "every call logged",
                logs.subsys.value, origin(&logs.subsys));
    else if (version < QUIET_SINCE && !start_option(OPTION_nccl_log))
        give_up(file,
                "NCCL %d.%d prints its version on stdout when it logs; "
                "COMMTRACE_NCCL_LOG=connections asks for it all the same",
                version < 10000 ? version / 1000 : version / 10000,
                version < 10000 ? version / 100 % 10 : version / 100 % 100);
    return stage_of(file) == NONE;
}

static void decide(struct nccl_file *file, struct nccl_copy *copy)
{
    char path[8];
    int version;
    if (logs.config->nccl_log == LOGS_OFF) {
        give_up(file, "COMMTRACE_NCCL_LOG=off");
        return;
    }
    real_library(copy, path, sizeof(path), &version);
    nccl_setting("NCCL_DEBUG", version, &logs.debug);
    nccl_setting("NCCL_DEBUG_FILE", version, &logs.file);
    nccl_setting("NCCL_DEBUG_SUBSYS", version, &logs.subsys);
    if (logs.debug.from == SETTING_SECRET || logs.file.from == SETTING_SECRET)
        give_up(file, "%.1000s can be read but once, by NCCL", logs.debug.file);
    else if (logs.debug.from || logs.file.from)
        look_for_theirs(file);
    else if (!decides_otherwise(file, version))
        ask_for_log(file);
}

static struct nccl_file *file_of(const struct nccl_copy *copy)
{
    return &files[copy_number(copy)];
}

static bool is_settled(const struct nccl_file *file)
{
    int stage = stage_of(file);
    return stage != NEW && stage != MADE;
}

/* For each descriptor that NCCL has of our file. */
static void each_descriptor(const struct nccl_file *file,
                            void (*act)(int fd, int with), int with)
{
    DIR *all = opendir("/proc/self/fd");
    struct dirent *entry;
    struct stat st;
    while (all && (entry = readdir(all))) {
        int fd = atoi(entry->d_name);
        if (isdigit((unsigned char)*entry->d_name) && fd != file->fd &&
            fstat(fd, &st) == 0 && st.st_ino == file->ino &&
            st.st_dev == file->dev)
            act(fd, with);
    }
    if (all)
        closedir(all);
}

/* Which fopen does not see to. */
static void close_in_children(int fd, int unused)
{
    (void)unused;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void lead(int fd, int to)
{
    dup3(to, fd, O_CLOEXEC);
}

/* What NCCL goes on to write would be too much, or lie there for ever. */
static void silence(const struct nccl_file *file)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0)
        return;
    each_descriptor(file, lead, null);
    close(null);
}

/* Written and not read yet. */
static off_t waiting(const struct nccl_file *file)
{
    struct stat st;
    return descriptor_is_ours(file->fd) && fstat(file->fd, &st) == 0
               ? st.st_size - file->at
               : 0;
}

static void cut(struct nccl_file *file, const char *why)
{
    lock_take(&logs.lock);
    if (stage_of(file) == OURS && !is_full(file)) {
        silence(file);
        snprintf(file->why, sizeof(file->why), "it ends early: %s", why);
        /* Release: with the reason. */
        atomic_store_explicit(&file->is_full, true, memory_order_release);
    }
    lock_give(&logs.lock);
}

/* A program may limit files at any time, and then is killed for what NCCL
 * writes. What is there already will be read. */
static void heed_limit(struct nccl_file *file)
{
    if (stage_of(file) == OURS && !is_full(file) && has_limit())
        cut(file, is_limited);
}

/* Where the trace cannot be written, it is not read either. */
static void heed_size(struct nccl_file *file)
{
    enum { MOST = 8 << 20 };
    if (stage_of(file) == OURS && !is_full(file) && waiting(file) > MOST)
        cut(file, "it could not be read in time");
}

static bool is_opened(const struct nccl_file *file)
{
    char first = *untouched;
    struct stat st;
    return descriptor_is_ours(file->fd) && fstat(file->fd, &st) == 0 &&
           (st.st_size != UNTOUCHED ||
            (pread(file->fd, &first, 1, 0) == 1 && first != *untouched));
}

static void look_whether_opened(struct nccl_file *file)
{
    if (stage_of(file) != MADE || !is_opened(file))
        return;
    publish_end(&file->variables);
    unlink(file->path);
    each_descriptor(file, close_in_children, 0);
    set_stage(file, OURS);
}

/* Another copy that has still to open its file would open this one's. */
static void make_way(const struct nccl_file *file)
{
    for (int i = 0; i < NCCL_COPIES; i++) {
        struct nccl_file *other = &files[i];
        enum { PATIENCE = 50 };
        for (int k = 0; k < PATIENCE && other != file &&
                        stage_of(other) == MADE && other->within;
             k++) {
            look_whether_opened(other);
            if (stage_of(other) == MADE)
                usleep(1000);
        }
        if (other != file)
            publish_end(&other->variables);
    }
}

static void enter(struct nccl_file *file, struct nccl_copy *copy)
{
    if (is_settled(file))
        return;
    make_way(file);
    /* The program may have closed it, have settings of its own now, or be
     * another user. */
    if (stage_of(file) == MADE &&
        (!descriptor_is_ours(file->fd) || !is_reachable(file) ||
         !publish(&file->variables)))
        drop(file);
    if (stage_of(file) == NEW)
        decide(file, copy);
    file->within++;
}

/* Still not opened: NCCL knew before whether to log, or the call has failed
 * before it got there. */
static void leave(struct nccl_file *file)
{
    look_whether_opened(file);
    if (stage_of(file) != MADE || (file->within && --file->within))
        return;
    publish_end(&file->variables);
    if (++file->tries < TRIES)
        return;
    drop(file);
    give_up(file, "NCCL had begun to log, or not to, before it was asked");
}

void nccl_file_before(struct nccl_copy *copy)
{
    struct nccl_file *file = file_of(copy);
    int saved = errno;
    if (!is_settled(file)) {
        lock_take(&logs.lock);
        enter(file, copy);
        lock_give(&logs.lock);
    }
    heed_limit(file);
    errno = saved;
}

void nccl_file_after(struct nccl_copy *copy)
{
    struct nccl_file *file = file_of(copy);
    int saved = errno;
    if (is_settled(file))
        return;
    lock_take(&logs.lock);
    leave(file);
    lock_give(&logs.lock);
    errno = saved;
}

void nccl_file_watch(void)
{
    for (int i = 0; i < NCCL_COPIES; i++) {
        struct nccl_file *file = &files[i];
        heed_limit(file);
        heed_size(file);
        if (stage_of(file) != MADE)
            continue;
        lock_take(&logs.lock);
        look_whether_opened(file);
        lock_give(&logs.lock);
    }
}

/* Whether a path is what NCCL makes of `pattern`, where %h is a host's name in
 * NCCL's eyes and so anything. */
static bool is_expanded(const char *pattern, const char *path, long pid)
{
    while (*pattern) {
        if (pattern[0] != '%' || !pattern[1]) {
            if (*pattern++ != *path++)
                return false;
            continue;
        }
        char number[24] = "%";
        char kind = pattern[1];
        pattern += 2;
        if (kind == 'h') {
            for (; *path && *path != '/'; path++)
                if (is_expanded(pattern, path, pid))
                    return true;
            return is_expanded(pattern, path, pid);
        }
        if (kind == 'p')
            snprintf(number, sizeof(number), "%ld", pid);
        else if (kind != '%')
            snprintf(number, sizeof(number), "%%%c", kind);
        if (strncmp(path, number, strlen(number)) != 0)
            return false;
        path += strlen(number);
    }
    return !*path;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* NCCL's descriptor leads to its file, whatever was meant by the name. */
static bool open_theirs(struct nccl_file *file, const char *fd)
{
    char link[64], target[1024];
    struct stat st;
    snprintf(link, sizeof(link), "/proc/self/fd/%.20s", fd);
    ssize_t n = readlink(link, target, sizeof(target) - 1);
    if (n <= 0)
        return false;
    target[n] = 0;
    int mode = fcntl(atoi(fd), F_GETFL);
    if (!is_expanded(last_part(file->path), last_part(target),
                     (long)logs.process->pid) ||
        mode < 0 || (mode & O_ACCMODE) != O_WRONLY || stat(link, &st) != 0 ||
        !S_ISREG(st.st_mode))
        return false;
    file->fd = descriptor_open(link, O_RDONLY | O_NONBLOCK, 0);
    if (file->fd < 0)
        return false;
    snprintf(file->path, sizeof(file->path), "%s", target);
    return true;
}

static void find_theirs(struct nccl_file *file)
{
    enum { MOST = 40 };
    DIR *all = opendir("/proc/self/fd");
    struct dirent *entry;
    bool found = false;
    while (all && !found && (entry = readdir(all)))
        found = isdigit((unsigned char)*entry->d_name) &&
                open_theirs(file, entry->d_name);
    if (all)
        closedir(all);
    if (found)
        set_stage(file, THEIRS);
    else if (++file->tries == MOST)
        give_up(file,
                "NCCL_DEBUG_FILE=%s is set, and NCCL has not opened "
                "such a file",
                file->path);
}

static bool is_open(struct nccl_file *file)
{
    if (stage_of(file) == SOUGHT)
        find_theirs(file);
    int stage = stage_of(file);
    if (stage != OURS && stage != THEIRS)
        return false;
    if (descriptor_is_ours(file->fd))
        return true;
    descriptor_close(file->fd);
    give_up(file, "the program has closed NCCL's log");
    return false;
}

bool nccl_file_is_long(void)
{
    enum { LONG = 1 << 18 };
    bool is_long = false;
    for (int i = 0; i < NCCL_COPIES; i++) {
        is_long |= stage_of(&files[i]) == OURS && waiting(&files[i]) > LONG;
    }
    return is_long;
}

/* Where NCCL will write no more. */
static void give_back(struct nccl_file *file)
{
    enum { PAGE = 4096 };
    off_t whole = file->at / PAGE * PAGE;
    if (whole > file->punched &&
        fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  file->punched, whole - file->punched) == 0)
        file->punched = whole;
}

/* Nobody waits for us to read all of that, at the end of the program say. */
static void leave_alone(struct nccl_file *file)
{
    file->end = file->at;
    descriptor_close(file->fd);
    give_up(file, "too much came into it at once (%s)", file->path);
}

void nccl_file_mark(void)
{
    enum { MOST = 256 << 20 };
    for (int i = 0; i < NCCL_COPIES; i++) {
        struct nccl_file *file = &files[i];
        struct stat st;
        if (!is_open(file) || fstat(file->fd, &st) != 0)
            continue;
        file->end = st.st_size;
        if (file->end < file->at) /* somebody has emptied it */
            file->at = 0;
        if (file->end - file->at > MOST)
            leave_alone(file);
    }
}

size_t nccl_file_read(int copy, char *bytes, size_t n)
{
    struct nccl_file *file = &files[copy];
    if (file->at >= file->end)
        return 0;
    if (n > (size_t)(file->end - file->at))
        n = (size_t)(file->end - file->at);
    ssize_t got =
        descriptor_is_ours(file->fd) ? pread(file->fd, bytes, n, file->at) : 0;
    if (got <= 0) {
        file->end = file->at;
        return 0;
    }
    file->at += got;
    if (stage_of(file) == OURS)
        give_back(file);
    return (size_t)got;
}

const char *nccl_file_absence(int copy)
{
    const struct nccl_file *file = &files[copy];
    return stage_of(file) == NONE || is_full(file) ? file->why : NULL;
}

bool nccl_file_has_choices(int copy)
{
    return stage_of(&files[copy]) == THEIRS ||
           logs.config->nccl_log == LOGS_TUNING;
}

int64_t nccl_file_pid(int copy)
{
    return stage_of(&files[copy]) == THEIRS ? logs.process->pid : 0;
}

const char *nccl_file_host(int copy)
{
    return stage_of(&files[copy]) == THEIRS ? logs.process->host : NULL;
}

void nccl_file_end(void)
{
    lock_take(&logs.lock);
    for (int i = 0; i < NCCL_COPIES; i++) {
        struct nccl_file *file = &files[i];
        int stage = stage_of(file);
        publish_end(&file->variables);
        if (stage == MADE)
            unlink(file->path);
        if (stage == OURS)
            silence(file);
        if (stage == MADE || stage == OURS || stage == THEIRS)
            descriptor_close(file->fd);
        set_stage(file, NONE);
    }
    lock_give(&logs.lock);
}

bool nccl_file_sweep(const char *name)
{
    unsigned uid, number;
    long long pid;
    unsigned long long ticks;
    char path[300];
    int end = 0;
    if (sscanf(name, "commtrace.%u.%lld.%llx.nccl%u%n", &uid, &pid, &ticks,
               &number, &end) != 4 ||
        name[end])
        return false;
    snprintf(path, sizeof(path), PROCESS_SHM "/%s", name);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = -1;
    unsigned long long now = process_start_ticks(pid);
    if ((now && now == ticks) ||
        (fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) < 0)
        return true;
    /* In another name space of pids it may live. */
    if (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK)
        unlink(path);
    close(fd);
    return true;
}
