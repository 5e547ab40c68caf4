/* The file of a digest: whether it may be written, and writing it. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commtrace/schema.def"
#include "trace/digest_parts.h"

#define APPLICATION_ID_AT 68 /* in the header of a database */

static bool is_digest(int fd)
{
    unsigned char h[APPLICATION_ID_AT + 4];
    const unsigned char *id = h + APPLICATION_ID_AT;

    return read(fd, h, sizeof(h)) == (ssize_t)sizeof(h) &&
           !memcmp(h, "SQLite format 3", 16) &&
           ((uint32_t)id[0] << 24 | (uint32_t)id[1] << 16 |
            (uint32_t)id[2] << 8 | id[3]) == CT_DIGEST_APPLICATION_ID;
}

static bool says(const struct ct_db *db, const char *sql, const char *text)
{
    sqlite3_stmt *stmt = NULL;
    bool same = false;

    if (text && !sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL) &&
        !sqlite3_bind_text(stmt, 1, text, -1, SQLITE_STATIC))
        same = sqlite3_step(stmt) == SQLITE_ROW;
    sqlite3_finalize(stmt);
    return same;
}

/* A damaged digest is nobody's. */
static bool is_of_another(const char *target, const char *path,
                          const char *uuid)
{
    char reason[256];
    struct ct_db db;
    bool other;

    if (ct_db_open(&db, target, reason, sizeof(reason)))
        return false;
    other = says(&db, "SELECT 1 FROM digest WHERE origin <> ?1", path) &&
            !says(&db, "SELECT 1 FROM process WHERE uuid = ?1", uuid);
    ct_db_close(&db);
    return other;
}

const char *ct_digest_refusal(const char *target, const char *path,
                              const char *uuid)
{
    const int fd = open(target, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool good;

    if (fd < 0)
        return errno == ENOENT ? NULL : strerror(errno);
    good = is_digest(fd);
    close(fd);
    if (!good)
        return "where its digest would be is another file; not overwritten";
    return is_of_another(target, path, uuid)
               ? "where its digest would be is that of another trace"
               : NULL;
}

static bool write_all(int fd, const unsigned char *bytes, size_t n)
{
    while (n) {
        const ssize_t written = write(fd, bytes, n);

        if (written < 0 && errno != EINTR)
            return false;
        bytes += written < 0 ? 0 : written;
        n -= written < 0 ? 0 : (size_t)written;
    }
    return true;
}

/* Of nobody else: processes of several hosts or containers, which may have the
 * same number, make digests in one folder. 0 or -1. */
static int name_temporary(char *name, size_t size, const char *target)
{
    struct timespec now;
    int n;

    clock_gettime(CLOCK_REALTIME, &now);
    n = snprintf(name, size, "%s.%ld.%llx.part", target, (long)getpid(),
                 now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec);
    return n > 0 && (size_t)n < size ? 0 : -1;
}

/* Whoever reads target sees the old digest or the new one, never a part. */
const char *ct_digest_store(const char *target, const unsigned char *bytes,
                            size_t n)
{
    const char *reason = NULL;
    char temporary[4096];
    int fd;

    if (name_temporary(temporary, sizeof(temporary), target))
        return strerror(ENAMETOOLONG);
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return strerror(errno);
    if (!write_all(fd, bytes, n))
        reason = strerror(errno);
    if (close(fd) && !reason)
        reason = strerror(errno);
    if (!reason && rename(temporary, target))
        reason = strerror(errno);
    if (reason)
        unlink(temporary);
    return reason;
}
