/*
 * NCCL's debug output, as NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE ask
 * for it. Where nothing is asked for, asking costs one load.
 */
#ifndef FABRIC_NCCL_LOG_H
#define FABRIC_NCCL_LOG_H

enum log_subsystem {
    LOG_INIT = 1 << 0,
    LOG_COLL = 1 << 1,
    LOG_P2P = 1 << 2,
    LOG_SHM = 1 << 3,
    LOG_NET = 1 << 4,
    LOG_GRAPH = 1 << 5,
    LOG_TUNING = 1 << 6,
    LOG_ENV = 1 << 7,
    LOG_ALLOC = 1 << 8,
    LOG_CALL = 1 << 9,
    LOG_PROXY = 1 << 10,
    LOG_NVLS = 1 << 11,
    LOG_BOOTSTRAP = 1 << 12,
    LOG_REG = 1 << 13,
    LOG_PROFILE = 1 << 14,
    LOG_RAS = 1 << 15,
    LOG_DESTROY = 1 << 16,
    LOG_ALL = ~0
};

/* Whether lines of one of the subsystems are printed. Reads the environment
 * where that has not been done, or is to be done again. */
int log_wants(unsigned subsystems);

/* A line, without its end. */
void log_info(unsigned subsystems, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* file, line: where NCCL's source would say it. */
void log_warn(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The line that tells the version, once a process. */
void log_version(void);

/* ncclResetDebugInit */
void log_reset(void);

#endif
