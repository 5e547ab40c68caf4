#include "process.h"

#include "clock.h"
#include "hash.h"
#include "rows.h"

#include "commtrace/ring.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_file(const char *path, char *text, int size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, (size_t)size - 1);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        n = 0;
    text[n] = 0;
    return (int)n;
}

uint64_t process_start_ticks(int64_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    read_file(path, text, sizeof(text));
    /* The name, field 2, may hold blanks and parentheses itself. */
    const char *p = strrchr(text, ')');
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p, NULL, 10) : 0;
}

void process_boot_id(char *text, int size)
{
    read_file("/proc/sys/kernel/random/boot_id", text, size);
    text[strcspn(text, "\n")] = 0;
}

static void make_uuid(struct process *process)
{
    uint64_t word[2];
    if (getrandom(word, sizeof(word), GRND_NONBLOCK) != sizeof(word)) {
        word[0] = hash_add((uint64_t)process->t0_real_ns, (uint64_t)getpid());
        word[1] = hash_add(word[0], (uint64_t)process->t0_ns);
    }
    process->random = hash_add(word[0], word[1]);
    snprintf(process->uuid, sizeof(process->uuid),
             "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(word[0] >> 32),
             (unsigned)(word[0] >> 16) & 0xffff, (unsigned)word[0] & 0xfff,
             ((unsigned)(word[1] >> 48) & 0x3fff) | 0x8000,
             (unsigned long long)(word[1] & 0xffffffffffff));
}

static bool parse(const char *text, int64_t *value)
{
    char *end;
    if (!text || !*text)
        return false;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || *end || number < 0 || number > INT32_MAX)
        return false;
    *value = number;
    return true;
}

/* The first of a list of variables that is a rank or a count; its name, or
 * NULL. */
static const char *first_number(const char *const *names, int64_t *value)
{
    *value = CT_NULL;
    for (; *names; names++)
        if (parse(getenv(*names), value))
            return *names;
    return NULL;
}

static void describe_rank(struct process *process)
{
    static const char *const rank[] = {"RANK",         "OMPI_COMM_WORLD_RANK",
                                       "PMIX_RANK",    "PMI_RANK",
                                       "SLURM_PROCID", NULL};
    static const char *const world[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE",
                                        "PMI_SIZE", "SLURM_NTASKS", NULL};
    static const char *const local[] = {
        "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
        "SLURM_LOCALID", NULL};
    static const char *const restart[] = {"TORCHELASTIC_RESTART_COUNT",
                                          "SLURM_RESTART_COUNT", NULL};
    process->rank_source = first_number(rank, &process->rank);
    first_number(world, &process->world_size);
    first_number(local, &process->local_rank);
    first_number(restart, &process->restart);
}

static const char *text_of(const char *variable)
{
    const char *text = getenv(variable);
    return text ? text : "";
}

static void describe_job(struct process *process)
{
    const char *slurm = text_of("SLURM_JOB_ID");
    const char *step = text_of("SLURM_STEP_ID");
    const char *run = text_of("TORCHELASTIC_RUN_ID");
    if (*slurm)
        snprintf(process->job_id, sizeof(process->job_id), "%s%s%s", slurm,
                 *step ? "." : "", step);
    else if (*text_of("PBS_JOBID"))
        snprintf(process->job_id, sizeof(process->job_id), "%s",
                 text_of("PBS_JOBID"));
    else
        snprintf(process->job_id, sizeof(process->job_id), "%s",
                 text_of("LSB_JOBID"));
    snprintf(process->run_id, sizeof(process->run_id), "%s",
             strcmp(run, "none") ? run : "");
}

static void describe_host(struct process *process)
{
    const char *id = text_of("NCCL_HOSTID");
    gethostname(process->host, sizeof(process->host) - 1);
    for (char *p = process->host; *p; p++)
        if (*p == '/' || isspace((unsigned char)*p))
            *p = '_';
    process_boot_id(process->boot_id, sizeof(process->boot_id));
    snprintf(process->host_id, sizeof(process->host_id), "%s",
             *id ? id : process->boot_id);
}

static void describe_program(struct process *process)
{
    struct stat ns;
    process->pid = getpid();
    process->pid_ns =
        stat("/proc/self/ns/pid", &ns) == 0 ? (int64_t)ns.st_ino : CT_NULL;
    process->start_ticks = process_start_ticks(process->pid);
    ssize_t n =
        readlink("/proc/self/exe", process->exe, sizeof(process->exe) - 1);
    process->exe[n > 0 ? n : 0] = 0;
    int length = read_file("/proc/self/cmdline", process->cmdline,
                           sizeof(process->cmdline));
    for (int i = 0; i + 1 < length; i++)
        if (!process->cmdline[i])
            process->cmdline[i] = ' ';
}

/* All ranks of one launcher agree on the name without talking. */
static int choose_folder(struct process *process, const char *dir)
{
    char id[256], cwd[1024] = "";
    int n;
    if (*process->job_id)
        snprintf(id, sizeof(id), "%s", process->job_id);
    else if (*process->run_id)
        snprintf(id, sizeof(id), "%s", process->run_id);
    else
        snprintf(id, sizeof(id), "%s-%d", process->host, (int)getppid());
    for (char *p = id; *p; p++)
        if (*p == '/')
            *p = '_';
    if (*dir != '/' && !getcwd(cwd, sizeof(cwd)))
        snprintf(cwd, sizeof(cwd), ".");
    if (*dir)
        n = snprintf(process->dir, sizeof(process->dir), "%s%s%s", cwd,
                     *cwd ? "/" : "", dir);
    else
        n = snprintf(process->dir, sizeof(process->dir), "%s/commtrace-%s", cwd,
                     id);
    return n < (int)sizeof(process->dir) ? 0 : -1;
}

/* A program that exec()s keeps its pid and start time, and its ring is still
 * there even if its database never came to be: then the time tells them apart.
 */
static void choose_names(struct process *process)
{
    struct stat there;
    char again[24] = "";
    unsigned long long ticks = process->start_ticks;
    snprintf(process->shm_ring, sizeof(process->shm_ring),
             PROCESS_SHM "/commtrace.%u.%lld.%llx", (unsigned)geteuid(),
             (long long)process->pid, ticks);
    bool known = lstat(process->shm_ring, &there) == 0;
    for (int i = 0; i < 2; i++) {
        if (known)
            snprintf(again, sizeof(again), ".%llx",
                     (unsigned long long)process->t0_ns);
        snprintf(process->db_path, sizeof(process->db_path),
                 "%s/%s.%lld.%llx%s.db", process->dir, process->host,
                 (long long)process->pid, ticks, again);
        known = stat(process->db_path, &there) == 0;
        if (!known)
            break;
    }
}

int process_describe(struct process *process, const char *dir)
{
    *process = (struct process){0};
    process->t0_ns = clock_ns();
    process->t0_real_ns = clock_real_ns();
    make_uuid(process);
    describe_program(process);
    describe_host(process);
    describe_rank(process);
    describe_job(process);
    int failed = choose_folder(process, dir);
    choose_names(process);
    return strlen(process->db_path) > CT_TRACE_PATH_MOST ? -1 : failed;
}
