#include "doctor/places.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "commtrace/ring.h"
#include "doctor/facts.h"
#include "doctor/options.h"
#include "doctor/trace_dir.h"
#include "report/units.h"

#define SHM "/dev/shm"
#define MIB (UINT64_C(1) << 20)
#define FEW_FILES 64 /* as in the recorder, which takes none of fewer */
#define FILE_NAME 50 /* <host>.<pid>.<start>.db, about */

/* The part of a path that is there already. */
static void existing_part(char *path)
{
    struct stat file;

    while (stat(path, &file) && errno == ENOENT) {
        char *slash = strrchr(path, '/');

        if (!slash || slash == path) {
            strcpy(path, "/");
            return;
        }
        *slash = 0;
    }
}

static uint64_t free_bytes(const char *path)
{
    struct statvfs fs;

    return statvfs(path, &fs) ? 0 : (uint64_t)fs.f_bavail * fs.f_frsize;
}

static const char *network_name(const char *path)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } known[] = {
#define NETWORK_FS(magic_, name_) {magic_, name_},
#include "commtrace/network_fs.def"
    };
    struct statfs fs;

    if (statfs(path, &fs))
        return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if ((unsigned long)fs.f_type == known[i].magic)
            return known[i].name;
    return NULL;
}

static void judge_room(const struct places *p, uint64_t most,
                       struct facts *facts)
{
    char free_text[UNITS_SIZE], most_text[UNITS_SIZE];

    units_size(free_text, p->dir_free);
    units_size(most_text, most);
    if (p->dir_free < 2 * MIB)
        facts_add(facts, "traces", FACT_BAD, "only %s are free there",
                  free_text);
    else if (p->dir_free < most)
        facts_add(facts, "traces", FACT_NOTE,
                  "%s are free, and each process may write %s "
                  "(COMMTRACE_MAX_MB)",
                  free_text, most_text);
    else
        facts_add(facts, "traces", FACT_GOOD, "%s free, at most %s per process",
                  free_text, most_text);
}

static void check_traces(struct places *p, const struct options *options,
                         struct facts *facts)
{
    char there[sizeof p->dir];
    const char *network;
    struct stat file;

    if (trace_dir_name(p->dir, sizeof p->dir, options->dir, "PID") < 0) {
        facts_add(facts, "traces", FACT_BAD, "%.200s: %s", options->dir,
                  strerror(errno));
        p->nowhere = true;
        return;
    }
    if (strlen(p->dir) + FILE_NAME > CT_TRACE_PATH_MOST) {
        facts_add(
            facts, "traces", FACT_BAD,
            "%.100s...: too long a path: the recorder takes %d bytes with "
            "the file's name",
            p->dir, CT_TRACE_PATH_MOST);
        p->nowhere = true;
        return;
    }
    snprintf(there, sizeof there, "%s", p->dir);
    existing_part(there);
    network = network_name(there);
    facts_add(facts, "traces", FACT_GOOD, "%.500s%s%s", p->dir,
              network ? ", on " : "", network ? network : "");
    if (stat(there, &file) || !S_ISDIR(file.st_mode)) {
        facts_add(facts, "traces", FACT_BAD, "%.500s is not a folder", there);
        p->nowhere = true;
        return;
    }
    if (access(there, W_OK | X_OK)) {
        facts_add(facts, "traces", FACT_BAD, "%.500s: %s", there,
                  strerror(errno));
        p->nowhere = true;
        return;
    }
    p->dir_free = free_bytes(there);
    judge_room(p, (uint64_t)options_number(options->max_mb) * MIB, facts);
    if (network)
        facts_add(facts, "traces", FACT_NOTE,
                  "on a network file system traces are stored every 10 s; "
                  "read them after the job");
}

/* As the recorder sizes it: a power of two, at most 1/64 of /dev/shm. */
static uint64_t ring_size(int64_t slots)
{
    struct statvfs fs;
    uint64_t n = 1, room = UINT64_MAX;

    while (n < (uint64_t)slots)
        n *= 2;
    if (statvfs(SHM, &fs) == 0)
        room = (uint64_t)fs.f_blocks * fs.f_frsize / 64;
    while (n > 64 && CT_RING_HEADER_BYTES + n * CT_RING_SLOT_BYTES > room)
        n /= 2;
    return CT_RING_HEADER_BYTES + n * CT_RING_SLOT_BYTES;
}

static void check_ring(struct places *p, const struct options *options,
                       struct facts *facts)
{
    int64_t slots = options_number(options->ring_slots);
    char size[UNITS_SIZE], room[UNITS_SIZE];

    if (access(SHM, W_OK | X_OK)) {
        facts_add(facts, "ring", FACT_NOTE,
                  SHM ": %s; rings go beside the traces, where a call may wait "
                      "for the disk",
                  strerror(errno));
        return;
    }
    p->ring_bytes = ring_size(slots);
    p->ring_free = free_bytes(SHM);
    units_size(size, p->ring_bytes);
    units_size(room, p->ring_free);
    if (p->ring_free < p->ring_bytes)
        facts_add(facts, "ring", FACT_NOTE,
                  SHM " has only %s free of the %s that a process needs; rings "
                      "go beside the traces",
                  room, size);
    else
        facts_add(facts, "ring", FACT_GOOD,
                  SHM ", %s per process (%lld calls), %s free", size,
                  (long long)((p->ring_bytes - CT_RING_HEADER_BYTES) /
                              CT_RING_SLOT_BYTES),
                  room);
}

static bool limit_below(int which, uint64_t need, uint64_t *limit)
{
    struct rlimit r;

    if (getrlimit(which, &r) || r.rlim_cur == RLIM_INFINITY)
        return false;
    *limit = r.rlim_cur;
    return *limit < need;
}

static void check_limits(struct places *p, const struct options *options,
                         struct facts *facts)
{
    uint64_t most = (uint64_t)options_number(options->max_mb) * MIB;
    uint64_t ring = p->ring_bytes ? p->ring_bytes : MIB, limit;
    char text[UNITS_SIZE];

    if (limit_below(RLIMIT_FSIZE, most, &limit)) {
        units_size(text, limit);
        facts_add(facts, "limits", limit < ring + MIB ? FACT_BAD : FACT_NOTE,
                  "files may have %s (ulimit -f): traces end there", text);
    }
    if (limit_below(RLIMIT_NOFILE, FEW_FILES, &limit)) {
        facts_add(facts, "limits", FACT_BAD,
                  "only %d files may be open (ulimit -n): below %d nothing is "
                  "recorded",
                  (int)limit, FEW_FILES);
        p->nowhere = true;
    }
    if (limit_below(RLIMIT_AS, 64 * MIB + ring, &limit)) {
        units_size(text, limit);
        facts_add(facts, "limits", FACT_NOTE,
                  "the address space has only %s (ulimit -v)", text);
    }
    if (access("/proc/self/stat", R_OK))
        facts_add(facts, "limits", FACT_NOTE,
                  "no /proc: traces lack the program's name and start");
}

void places_check(struct places *p, const struct options *options,
                  struct facts *facts)
{
    *p = (struct places){.nowhere = false};
    check_traces(p, options, facts);
    check_ring(p, options, facts);
    check_limits(p, options, facts);
}
