#include "trace/db.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commtrace/schema.def"
#include "trace/digest.h"

/* The byte of a -shm file that every connection keeps locked ("dead man
 * switch", SQLite's os_unix.c: UNIX_SHM_DMS). */
#define SHM_DEAD_MAN_SWITCH 128

#define MAX_PATH 4096
#define FIRST_READ "SELECT 1 FROM sqlite_schema"

/* An op takes less than one step per byte, a packed one some 5. */
#define STEPS_PER_BYTE 64
#define STEPS_BESIDE 10000000
#define STEPS_AT_ONCE 100000

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void setup(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

void ct_db_setup(void)
{
    pthread_once(&once, setup);
}

static off_t size_of(const char *path, const char *suffix)
{
    char name[MAX_PATH + 16];
    struct stat st;

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    return stat(name, &st) ? -1 : st.st_size;
}

uint64_t ct_db_bytes(const char *path)
{
    const off_t file = size_of(path, ""), log = size_of(path, "-wal");

    return (uint64_t)(file > 0 ? file : 0) + (uint64_t)(log > 0 ? log : 0);
}

/* Of a pipe or a device nobody knows when it ends, or begins. */
static int open_regular(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0)
        return -1;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode))
        return fd;
    errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    close(fd);
    return -1;
}

static bool writer_lives(const char *path)
{
    struct flock lock = {.l_type = F_WRLCK,
                         .l_whence = SEEK_SET,
                         .l_start = SHM_DEAD_MAN_SWITCH,
                         .l_len = 1};
    char name[MAX_PATH + 16];
    bool lives = false;
    int fd;

    snprintf(name, sizeof(name), "%s-shm", path);
    fd = open_regular(name);
    if (fd < 0)
        return false;
    if (!fcntl(fd, F_GETLK, &lock))
        lives = lock.l_type != F_UNLCK;
    close(fd);
    return lives;
}

/* file: URI of path with what SQLite would take as syntax escaped. */
static void uri_of(char *uri, size_t size, const char *path,
                   const char *options)
{
    static const char hex[] = "0123456789abcdef";
    size_t n = (size_t)snprintf(uri, size, "file:");
    const unsigned char *c;

    for (c = (const unsigned char *)path; *c && n + 4 < size; c++) {
        if (strchr("?#%", *c)) {
            uri[n++] = '%';
            uri[n++] = hex[*c >> 4];
            uri[n++] = hex[*c & 15];
        } else {
            uri[n++] = (char)*c;
        }
    }
    snprintf(uri + n, size - n, "?%s", options);
}

/* A trace holds tables only: whatever a foreign file wants to compute while it
 * is read (views, triggers, functions, virtual tables) stays off. */
static void harden(sqlite3 *handle)
{
    sqlite3_drop_modules(handle, NULL);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_busy_timeout(handle, 5000);
}

static int is_too_long(void *context)
{
    struct ct_db *db = context;

    db->steps_left -= STEPS_AT_ONCE;
    return db->steps_left < 0;
}

void ct_db_refill(struct ct_db *db)
{
    db->steps_left = STEPS_BESIDE + STEPS_PER_BYTE * (int64_t)db->bytes;
}

static int open_uri(struct ct_db *db, const char *path, const char *options,
                    int mode, const char *sql)
{
    char uri[3 * MAX_PATH];

    uri_of(uri, sizeof(uri), path, options);
    if (sqlite3_open_v2(uri, &db->handle,
                        mode | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL))
        return -1;
    harden(db->handle);
    sqlite3_progress_handler(db->handle, STEPS_AT_ONCE, is_too_long, db);
    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) ? -1 : 0;
}

static int open_simply(struct ct_db *db, const char *path, const char *options)
{
    return open_uri(db, path, options, SQLITE_OPEN_READONLY, FIRST_READ);
}

/* The log of a writer that is gone, with an index of our own in memory, which
 * SQLite makes for who has a database to himself. Not with the one that the
 * writer left: killed between the header of its log and the first page in it,
 * SQLite takes it for one that is just being written, and waits 10 s. */
static int open_left_log(struct ct_db *db, const char *path)
{
    return open_uri(db, path, "mode=ro&vfs=unix-none", SQLITE_OPEN_READONLY,
                    "PRAGMA locking_mode=EXCLUSIVE;" FIRST_READ);
}

static int copy_bytes(int from, int to)
{
    static const size_t size = 1 << 20;
    char *buffer = malloc(size);
    ssize_t n = buffer ? 1 : -1;

    while (n > 0) {
        n = read(from, buffer, size);
        if (n > 0 && write(to, buffer, (size_t)n) != n)
            n = -1;
    }
    free(buffer);
    return (int)n;
}

static int copy_file(const char *path, const char *folder, const char *suffix)
{
    char name[MAX_PATH + 16];
    int from, to, rc = -1;

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    from = open_regular(name);
    if (from < 0)
        return errno == ENOENT ? 0 : -1;
    snprintf(name, sizeof(name), "%s/db%s", folder, suffix);
    to = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to >= 0) {
        rc = copy_bytes(from, to);
        close(to);
    }
    close(from);
    return rc;
}

static void remove_copy(const char *folder)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    char name[MAX_PATH + 16];
    size_t i;

    for (i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
        snprintf(name, sizeof(name), "%s/db%s", folder, suffixes[i]);
        unlink(name);
    }
    rmdir(folder);
}

/* The names of the copy go as soon as SQLite has opened all of it. */
static int open_copy(struct ct_db *db, const char *path)
{
    const char *tmp = getenv("TMPDIR");
    char folder[MAX_PATH], name[MAX_PATH + 8];
    int rc = -1;

    snprintf(folder, sizeof(folder), "%s/commtrace-XXXXXX",
             tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    snprintf(name, sizeof(name), "%s/db", folder);
    if (!copy_file(path, folder, "") && !copy_file(path, folder, "-wal") &&
        !copy_file(path, folder, "-journal"))
        rc = open_uri(db, name, "mode=rw", SQLITE_OPEN_READWRITE, FIRST_READ);
    remove_copy(folder);
    return rc;
}

static int open_as_left(struct ct_db *db, const char *path)
{
    /* SQLite deletes the log of a database that is empty. */
    if (size_of(path, "-journal") > 0 || !size_of(path, ""))
        return open_copy(db, path);
    if (size_of(path, "-wal") <= 0 && !db->live)
        return open_simply(db, path, "immutable=1");
    if (!db->live)
        return open_left_log(db, path);
    if (!open_simply(db, path, "mode=ro"))
        return 0;
    ct_db_close(db);
    return open_copy(db, path);
}

/* Header of a database file: "SQLite format 3", page size, page count. */
static const char *bad_header(const char *path)
{
    unsigned char h[100];
    uint64_t pages, page_size;
    int fd = open_regular(path);
    ssize_t n;

    if (fd < 0)
        return errno == EINVAL ? "not a regular file" : strerror(errno);
    n = read(fd, h, sizeof(h));
    close(fd);
    if (n < 0)
        return strerror(errno);
    if (n == 0)
        return size_of(path, "-wal") > 0 ? NULL : "empty file";
    if (n < (ssize_t)sizeof(h))
        return "not a database";
    if (memcmp(h, "SQLite format 3", 16) != 0)
        return "not a database";
    pages = (uint64_t)h[28] << 24 | (uint64_t)h[29] << 16 |
            (uint64_t)h[30] << 8 | h[31];
    page_size = (uint64_t)h[16] << 8 | h[17];
    if (page_size == 1)
        page_size = 65536;
    if (!memcmp(h + 24, h + 92, 4) && size_of(path, "-wal") <= 0 &&
        size_of(path, "-journal") <= 0 &&
        (uint64_t)size_of(path, "") < pages * page_size)
        return "truncated";
    return NULL;
}

static int mount(struct ct_db *db)
{
    db->digest =
        ct_db_int(db, "PRAGMA application_id", 0) == CT_DIGEST_APPLICATION_ID;
    return db->digest ? ct_digest_mount(db->handle) : 0;
}

int ct_db_open(struct ct_db *db, const char *path, char *reason,
               size_t reason_size)
{
    const char *bad =
        strlen(path) + 16 > MAX_PATH ? "name too long" : bad_header(path);

    memset(db, 0, sizeof(*db));
    if (bad) {
        snprintf(reason, reason_size, "%s", bad);
        return -1;
    }
    db->live = writer_lives(path);
    db->bytes = ct_db_bytes(path);
    ct_db_refill(db);
    if (!open_as_left(db, path) && !mount(db))
        return 0;
    ct_db_reason(db, reason, reason_size);
    ct_db_close(db);
    return -1;
}

void ct_db_close(struct ct_db *db)
{
    sqlite3_close(db->handle);
    db->handle = NULL;
}

void ct_db_reason(const struct ct_db *db, char *reason, size_t reason_size)
{
    int code = db->handle ? sqlite3_errcode(db->handle) : SQLITE_CANTOPEN;

    if (code == SQLITE_NOTADB)
        snprintf(reason, reason_size, "not a database");
    else if (code == SQLITE_INTERRUPT)
        snprintf(reason, reason_size,
                 "truncated or damaged (it goes on without end)");
    else if (code == SQLITE_CORRUPT)
        snprintf(reason, reason_size, "truncated or damaged (%s)",
                 sqlite3_errmsg(db->handle));
    else
        snprintf(reason, reason_size, "%s",
                 db->handle ? sqlite3_errmsg(db->handle)
                            : "cannot make a temporary copy to read its log");
}

long long ct_db_int(const struct ct_db *db, const char *sql, long long fallback)
{
    sqlite3_stmt *stmt = NULL;
    long long value = fallback;

    if (!sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL) &&
        sqlite3_step(stmt) == SQLITE_ROW)
        value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return value;
}
