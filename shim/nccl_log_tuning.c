/*
 * What a line of NCCL's log says of speed: the table of predictions, and what a
 * collective runs as. Formats: INFO() in NCCL's src/enqueue.cc,
 * graph/tuning.cc, tuning/tuning.cc, scheduler/symmetric_sched.cc and
 * ce_coll.cc, releases 2.5 to 2.31.
 */
#include "commtrace/ops.h"
#include "nccl_log_state.h"

/* In NCCL's own numbering, which old releases print. */
static const char *const algorithms[] = {
    "TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
    "NVLS_TREE", "PAT"};
static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};

static const struct {
    const char *name; /* as NCCL prints it */
    int algorithm;
} columns[] = {
    {"Tree", 0},         {"Ring", 1}, {"CollNet", 2},  {"CollNetDirect", 2},
    {"CollNetChain", 3}, {"NVLS", 4}, {"NVLSTree", 5}, {"PAT", 6},
};

static const struct {
    const char *name;
    size_t size;
} functions[CT_OP_COUNT] = {
#define OP(id_, name_, fn_, ...) [CT_OP_##id_] = {&#fn_[4], sizeof(#fn_) - 5},
#include "commtrace/nccl_ops.def"
};

static int op_of(struct text name)
{
    for (int op = 0; op < CT_OP_COUNT; op++)
        if (text_size(name) == functions[op].size &&
            memcmp(name.at, functions[op].name, functions[op].size) == 0)
            return op;
    return NCCL_LOG_UNKNOWN;
}

static int algorithm_of(struct text name)
{
    for (size_t i = 0; i < LOG_SIZE(columns); i++)
        if (text_equals(name, columns[i].name))
            return columns[i].algorithm;
    return NCCL_LOG_UNKNOWN;
}

static int protocol_of(struct text name)
{
    for (size_t i = 0; i < LOG_SIZE(protocols); i++)
        if (text_equals(name, protocols[i]))
            return (int)i;
    return text_equals(name, "Simple") ? 2 : NCCL_LOG_UNKNOWN;
}
static void add_column(struct log_thread *thread, int algorithm, int protocol)
{
    if (thread->cells == LOG_CELLS || algorithm < 0 || protocol < 0)
        return;
    thread->algorithm[thread->cells] = (uint8_t)algorithm;
    thread->protocol[thread->cells++] = (uint8_t)protocol;
}

/* "  Algorithm   |    Tree    |    Ring    | ...", three protocols to each. */
bool log_take_algorithms(struct log_line *line, struct text text)
{
    struct text name;
    if (!text_scan(&text, "Algorithm |"))
        return false;
    line->thread->cells = 0;
    while (text_scan(&text, " %w |", &name))
        for (int protocol = 0; protocol < (int)LOG_SIZE(protocols); protocol++)
            add_column(line->thread, algorithm_of(name), protocol);
    return true;
}

static struct text trim(struct text text)
{
    while (text_size(text) && *text.at == ' ')
        text.at++;
    while (text_size(text) && text.end[-1] == ' ')
        text.end--;
    return text;
}

/* "Latency/AlgBw |    Tree/    LL |    Tree/ LL128 | Tree/Simple |", before
 * 2.18 */
bool log_take_columns(struct log_line *line, struct text text)
{
    const char *slash, *bar;
    if (!text_scan(&text, "Latency/AlgBw |"))
        return false;
    line->thread->cells = 0;
    while ((slash = text_find(text, "/")) && (bar = text_find(text, "|"))) {
        if (slash > bar)
            break;
        add_column(line->thread,
                   algorithm_of(trim((struct text){text.at, slash})),
                   protocol_of(trim((struct text){slash + 1, bar})));
        text.at = bar + 1;
    }
    return true;
}

/* "AllReduce |    18.8/   0.3 |    34.8/   0.0 | ..." */
static bool take_cells(struct log_line *line, int op, struct text text)
{
    const struct log_thread *thread = line->thread;
    struct nccl_log_fact fact = {.kind = NCCL_LOG_TUNING, .tuning.op = op};
    int i = 0;
    for (; i < thread->cells &&
           text_scan(&text, " %f/ %f |", &fact.tuning.latency_us,
                     &fact.tuning.algbw_GBps);
         i++) {
        fact.tuning.algorithm = algorithms[thread->algorithm[i]];
        fact.tuning.protocol = protocols[thread->protocol[i]];
        log_tell(line, &fact, NCCL_LOG_UNKNOWN);
    }
    return i > 0;
}

/* Choices. */

static void copy_name(char *to, size_t size, const char *const *names, size_t n,
                      struct text word)
{
    int number;
    struct text digits = word;
    if (text_scan(&digits, "%d", &number) && text_size(digits) == 0 &&
        number >= 0 && (size_t)number < n)
        word =
            (struct text){names[number], names[number] + strlen(names[number])};
    text_copy(to, size, word);
}

/* "Algo RING proto LL channel{Lo..Hi}={0..1}", before 2.24 "Algo 1 proto 0 time
 * 16.6"; of symmetric kernels "Kernel NAME nchannels 8 ..." */
static bool take_chosen(struct text text, struct nccl_log_choice *choice)
{
    struct text algorithm, protocol;
    int low, high;
    if (text_scan(&text, "Kernel %w nchannels %d", &algorithm,
                  &choice->channels)) {
        text_copy(choice->algorithm, sizeof(choice->algorithm), algorithm);
        return true;
    }
    if (!text_scan(&text, "Algo %w proto %w ", &algorithm, &protocol)) {
        text_copy(choice->algorithm, sizeof(choice->algorithm), text);
        return text_starts(text, "cudaMemcpy") || text_starts(text, "RMA ");
    }
    copy_name(choice->algorithm, sizeof(choice->algorithm), algorithms,
              LOG_SIZE(algorithms), algorithm);
    copy_name(choice->protocol, sizeof(choice->protocol), protocols,
              LOG_SIZE(protocols), protocol);
    if (text_scan(&text, "channel{Lo..Hi}={%d..%d}", &low, &high))
        choice->channels = high - low + 1;
    text_scan(&text, "time %f", &choice->time_us);
    return true;
}

bool log_take_choice(struct log_line *line, int op, struct text text)
{
    struct nccl_log_fact fact = {
        .kind = NCCL_LOG_CHOICE,
        .choice = {.op = op, .channels = NCCL_LOG_UNKNOWN, .time_us = -1},
    };
    if (!text_scan(&text, "%D Bytes -> ", &fact.choice.bytes) ||
        !take_chosen(text, &fact.choice))
        return false;
    log_tell(line, &fact, 0);
    return true;
}

/* "opCount 0 sendbuff 0x1 ... comm 0x2 [nranks=4] stream 0x3", and since 2.31
 * "Input: { .comm = 0x2, ...": whose collectives the thread calls. */
bool log_take_called(struct log_line *line, struct text text)
{
    static const char *const before[] = {" comm 0x", ".comm = 0x"};
    for (size_t i = 0; i < LOG_SIZE(before); i++) {
        const char *at = text_find(text, before[i]);
        if (!at)
            continue;
        text.at = at + strlen(before[i]) - 2;
        return text_scan(&text, "%x", &line->thread->called);
    }
    return false;
}

bool log_take_function(struct log_line *line, struct text text)
{
    struct text name = text;
    const char *colon = text_find(text, ":");
    if (!text_scan(&text, "%w ", &name))
        return false;
    if (name.end[-1] == ':')
        name.end--;
    int op = op_of(name);
    if (op == NCCL_LOG_UNKNOWN)
        return false;
    if (text_scan(&text, "|"))
        return take_cells(line, op, text);
    if (text_starts(text, "opCount "))
        return log_take_called(line, text);
    if (colon && text_starts(text, "["))
        text.at = colon + 1;
    text_scan(&text, " ");
    return log_take_choice(line, op, text);
}
