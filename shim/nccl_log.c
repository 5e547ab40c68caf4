#include "nccl_log.h"

#include "nccl_log_state.h"

#include <stdlib.h>

struct nccl_log *nccl_log_open(int64_t pid, const char *host,
                               nccl_log_sink *sink, void *arg)
{
    struct nccl_log *log = calloc(1, sizeof(*log)); /* most stays untouched */
    if (!log)
        return NULL;
    log->pid = pid;
    log->sink = sink;
    log->arg = arg;
    if (host) /* which NCCL says up to its first dot */
        text_copy(log->host, sizeof(log->host),
                  (struct text){host, host + strcspn(host, ".")});
    return log;
}

void nccl_log_close(struct nccl_log *log)
{
    free(log);
}

const struct nccl_log_counts *nccl_log_counted(const struct nccl_log *log)
{
    return &log->counts;
}

/* "host:pid:tid [device] ", as it stands before "NCCL INFO". */
struct prefix {
    const char *at; /* start of its first word */
    struct text host;
    int64_t pid;
    int64_t tid;
    int device;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The last word of the text, which loses it. */
static struct text last_word(struct text *text)
{
    while (text->end > text->at && is_blank(text->end[-1]))
        text->end--;
    struct text word = {text->end, text->end};
    while (word.at > text->at && !is_blank(word.at[-1]))
        word.at--;
    text->end = word.at;
    return word;
}

/* Cuts ":NUMBER" off the end of a word. */
static bool cut_number(struct text *word, int64_t *number)
{
    enum { DIGITS = 18 };
    const char *at = word->end;
    int64_t n = 0, scale = 1;
    for (; at > word->at && at[-1] >= '0' && at[-1] <= '9'; scale *= 10) {
        if (word->end - at == DIGITS)
            return false;
        n += (*--at - '0') * scale;
    }
    if (at == word->end || at == word->at || at[-1] != ':')
        return false;
    word->end = at - 1;
    *number = n;
    return true;
}

/* Launchers put a word of theirs right before the host's: "[1,0]<stdout>:". */
static struct text host_of(struct text word)
{
    for (const char *c = word.end; c > word.at; c--)
        if (c[-1] == ':' || c[-1] == '>' || c[-1] == ']')
            return (struct text){c, word.end};
    return word;
}

/* Reads back from "NCCL INFO"; a warning has the place in the source between
 * the prefix and that. */
static bool take_prefix(struct text before, struct prefix *prefix)
{
    enum { WORDS = 6 };
    for (int i = 0; i < WORDS && text_size(before); i++) {
        struct text device = last_word(&before);
        struct text digits = device;
        if (!text_scan(&digits, "[%d]", &prefix->device) || text_size(digits))
            continue;
        struct text word = last_word(&before);
        prefix->at = word.at;
        if (!cut_number(&word, &prefix->tid) ||
            !cut_number(&word, &prefix->pid))
            return false;
        prefix->host = host_of(word);
        return true;
    }
    return false;
}

enum level { INFO, WARN, OTHER };

static const struct {
    const char *mark;
    enum level level;
} levels[] = {
    {"INFO ", INFO}, {"WARN ", WARN}, {"TRACE ", OTHER}, {"CALL ", OTHER}};

/* The next " NCCL INFO " or the like in the text: what stands behind it. */
static const char *find_mark(struct text text, const char **mark,
                             enum level *level)
{
    while ((*mark = text_find(text, " NCCL "))) {
        text.at = *mark + strlen(" NCCL ");
        for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
            if (text_starts(text, levels[i].mark)) {
                *level = levels[i].level;
                return text.at + strlen(levels[i].mark);
            }
        }
    }
    return NULL;
}

static bool is_wanted(const struct nccl_log *log, const struct prefix *prefix)
{
    if (log->pid == 0)
        return true;
    size_t n = strlen(log->host);
    return prefix->pid == log->pid &&
           (n == 0 || (text_size(prefix->host) >= n &&
                       memcmp(prefix->host.end - n, log->host, n) == 0));
}

static void take_message(struct nccl_log *log, const struct prefix *prefix,
                         enum level level, struct text text)
{
    log->counts.nccl++;
    if (!is_wanted(log, prefix)) {
        log->counts.others++;
        return;
    }
    if (level == OTHER)
        return;
    struct log_line line = {
        .log = log,
        .thread = log_who(log, prefix->host, prefix->pid, prefix->tid),
        .device = prefix->device,
        .text = text,
    };
    if (level == WARN)
        log_message(&line, "warning");
    else
        log->counts.unknown += !log_facts(&line);
}

/* A message whose prefix is not whole; of calls it never is. */
static void take_nobodys(struct nccl_log *log, enum level level)
{
    log->counts.nccl++;
    log->counts.unknown += level != OTHER;
}

/* Old releases print their version bare; a launcher's tag may precede it. */
static void take_version(struct nccl_log *log, struct text text)
{
    const char *at = text_find(text, "NCCL version ");
    if (!at || (at > text.at && !is_blank(at[-1]) && at[-1] != ':'))
        return;
    text.at = at;
    struct prefix nobody = {
        .host = {log->host, log->host + strlen(log->host)},
        .pid = log->pid,
    };
    take_message(log, &nobody, INFO, text);
}

/* Where the message in front of a prefix ends: there may be no blank between.
 */
static const char *start_of(struct nccl_log *log, const struct prefix *prefix)
{
    size_t host = log_known_host(log, prefix->host, prefix->pid);
    return host ? prefix->host.end - host : prefix->at;
}

/* A line may hold several messages, where two processes printed at once. */
static void take_line(struct nccl_log *log, struct text text)
{
    const char *mark, *message;
    enum level level;
    log->counts.lines++;
    log->clock++;
    if (text.end > text.at && text.end[-1] == '\r')
        text.end--;
    message = find_mark(text, &mark, &level);
    if (!message) {
        take_version(log, text);
        return;
    }
    while (message) {
        struct prefix prefix, next_prefix;
        enum level next_level = OTHER;
        const char *next_mark;
        struct text rest = {message, text.end};
        bool named = take_prefix((struct text){text.at, mark}, &prefix);
        const char *next = find_mark(rest, &next_mark, &next_level);
        if (next &&
            take_prefix((struct text){message, next_mark}, &next_prefix))
            rest.end = start_of(log, &next_prefix);
        if (named)
            take_message(log, &prefix, level, rest);
        else
            take_nobodys(log, level);
        text.at = message;
        message = next;
        mark = next_mark;
        level = next_level;
    }
}

/* What is too long for a line is taken in parts. */
static void carry(struct nccl_log *log, const char *bytes, size_t n)
{
    while (n) {
        size_t room = LOG_LINE - log->carried;
        size_t part = n < room ? n : room;
        memcpy(log->carry + log->carried, bytes, part);
        log->carried += part;
        bytes += part;
        n -= part;
        if (log->carried == LOG_LINE) {
            take_line(log, (struct text){log->carry, log->carry + LOG_LINE});
            log->carried = 0;
        }
    }
}

static void end_line(struct nccl_log *log)
{
    take_line(log, (struct text){log->carry, log->carry + log->carried});
    log->carried = 0;
}

void nccl_log_feed(struct nccl_log *log, const char *bytes, size_t n)
{
    const char *end = bytes + n;
    log->counts.bytes += n;
    while (bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        const char *stop = newline ? newline : end;
        if (newline && log->carried == 0 && stop - bytes <= LOG_LINE) {
            take_line(log, (struct text){bytes, stop});
        } else {
            carry(log, bytes, (size_t)(stop - bytes));
            if (newline)
                end_line(log);
        }
        bytes = stop + 1;
    }
}

void nccl_log_flush(struct nccl_log *log, bool all_calls, bool last)
{
    if (last && log->carried)
        end_line(log);
    log->all_told = all_calls;
    log_settle_all(log, last);
    log->all_told = false;
    if (last)
        log_tell_choices(log);
}
