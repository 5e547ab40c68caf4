/* NCCL's table of predictions, as its log prints it on the first rank. */
#include <stdio.h>
#include <string.h>

#include "nccl/comm.h"
#include "nccl/log.h"
#include "nccl/release.h"
#include "nccl/tuning_table.h"

struct line {
    char text[1024];
    size_t used;
};

static void add(struct line *line, const char *text)
{
    size_t n = strlen(text);

    if (line->used + n >= sizeof(line->text))
        return;
    memcpy(line->text + line->used, text, n + 1);
    line->used += n;
}

static struct line line_begin(const char *text)
{
    struct line line = {.used = 0};

    add(&line, text);
    return line;
}

static void print_names(enum algorithm first, int n)
{
    struct line names = line_begin("  Algorithm   |");
    struct line protocols = line_begin("  Protocol    |");
    char text[128];

    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof(text), " %14s   %14s   %14s |", "",
                 tuning_algorithm_name((enum algorithm)((int)first + i)), "");
        add(&names, text);
    }
    for (int i = 0; i < 3 * PROTOCOLS; i++) {
        snprintf(text, sizeof(text), " %14s |",
                 tuning_protocol_name((enum protocol)(i % PROTOCOLS)));
        add(&protocols, text);
    }
    log_info(LOG_TUNING, "%s", names.text);
    log_info(LOG_TUNING, "%s", protocols.text);
}

/* Before 2.13 all in one row of names. */
static void print_names_together(int n)
{
    struct line line = line_begin("Latency/AlgBw |");
    char text[64];

    for (int i = 0; i < n * PROTOCOLS; i++) {
        const char *name =
            tuning_algorithm_name((enum algorithm)(i / PROTOCOLS));

        snprintf(text, sizeof(text), " %7.7s/%6s |", name,
                 tuning_protocol_name((enum protocol)(i % PROTOCOLS)));
        add(&line, text);
    }
    log_info(LOG_TUNING, "%s", line.text);
}

static void print_values(struct ncclComm *comm, enum algorithm first, int n)
{
    struct line threads = line_begin(" Max NThreads |");
    char text[64];

    for (int i = 0; i < n * PROTOCOLS; i++) {
        snprintf(text, sizeof(text), " %14d |",
                 tuning_threads(comm,
                                (enum algorithm)((int)first + i / PROTOCOLS),
                                (enum protocol)(i % PROTOCOLS)));
        add(&threads, text);
    }
    log_info(LOG_TUNING, "%s", threads.text);
    for (int f = 0; f < FUNCTIONS; f++) {
        struct line line;

        snprintf(text, sizeof(text), "%13s |",
                 tuning_function_name((enum function)f));
        line = line_begin(text);
        for (int i = 0; i < n * PROTOCOLS; i++) {
            struct entry e =
                tuning_entry(comm, (enum function)f,
                             (enum algorithm)((int)first + i / PROTOCOLS),
                             (enum protocol)(i % PROTOCOLS));

            snprintf(text, sizeof(text), "%8.1f/%6.1f |", e.latency_us, e.GBps);
            add(&line, text);
        }
        log_info(LOG_TUNING, "%s", line.text);
    }
}

void tuning_announce(struct ncclComm *comm)
{
    int n = tuning_algorithms();

    if (comm->rank || nccl_release() < 2500 || !log_wants(LOG_TUNING))
        return;
    if (n <= 3) {
        print_names_together(n);
        print_values(comm, ALGORITHM_TREE, n);
        return;
    }
    for (int first = 0; first < n; first += 3) {
        int block = n - first < 3 ? n - first : 3;

        print_names((enum algorithm)first, block);
        print_values(comm, (enum algorithm)first, block);
    }
}
