/*
 * What a process knows of itself: where it runs, which rank it is, where its
 * trace belongs.
 */
#ifndef SHIM_PROCESS_H
#define SHIM_PROCESS_H

#include <stdint.h>

struct process {
    char uuid[40];
    char host[80];
    char host_id[256];
    char boot_id[40];
    char exe[1024];
    char cmdline[2048];
    char run_id[128];
    char job_id[128];
    char dir[1536];     /* absolute folder of the trace */
    char db_path[2048]; /* absolute */
    char shm_ring[96];  /* the ring's name on tmpfs */
    char options[1024]; /* as set */
    char stacks[1100];  /* what takes them, or why nothing does */
    int64_t pid;
    int64_t pid_ns;
    uint64_t start_ticks;
    int64_t rank; /* CT_NULL: not set, as in the following */
    const char *rank_source;
    int64_t world_size;
    int64_t local_rank;
    int64_t restart;
    int64_t t0_ns;
    int64_t t0_real_ns;
    uint64_t random;
};

#define PROCESS_SHM "/dev/shm"

/* dir: what COMMTRACE_DIR says, "" for nothing. -1: the trace would have a
 * longer path than CT_TRACE_PATH_MOST. */
int process_describe(struct process *process, const char *dir);

/* Field 22 of /proc/PID/stat; 0: no such process. */
uint64_t process_start_ticks(int64_t pid);

void process_boot_id(char *text, int size);

#endif
