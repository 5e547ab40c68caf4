#include "config.h"

#include "log.h"
#include "start.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_TEXT(const char *text, int64_t low, int64_t high,
                       const char **value)
{
    (void)low, (void)high;
    *value = text;
    return true;
}

static bool parse_NUMBER(const char *text, int64_t low, int64_t high,
                         int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || end == text || *end || number < low || number > high)
        return false;
    *value = number;
    return true;
}

static bool parse_SWITCH(const char *text, int64_t low, int64_t high,
                         int64_t *value)
{
    return parse_NUMBER(text, low, high, value);
}

static bool parse_sample(const char *text, struct timing *value)
{
    int64_t n;
    if (!parse_NUMBER(text, 1, 1 << 30, &n))
        return false;
    value->mode = TIMING_SAMPLE;
    value->shift = 0;
    while (INT64_C(1) << value->shift < n)
        value->shift++;
    return true;
}

struct word {
    const char *name;
    int mode;
};

#define WORD(mode_, name_) {name_, mode_},
#define WORDS(kind_)         \
    (const struct word[])    \
    {                        \
        CONFIG_##kind_(WORD) \
        {                    \
            NULL, 0          \
        }                    \
    }

static bool parse_word(const char *text, const struct word *words, int *mode)
{
    while (words->name && strcmp(text, words->name) != 0)
        words++;
    if (!words->name)
        return false;
    *mode = words->mode;
    return true;
}

static bool parse_TIMING(const char *text, int64_t low, int64_t high,
                         struct timing *value)
{
    int mode;
    (void)low, (void)high;
    if (!strncmp(text, "sample:", 7))
        return parse_sample(text + 7, value);
    if (!parse_word(text, WORDS(TIMING), &mode))
        return false;
    *value = (struct timing){.mode = (enum timing_mode)mode};
    return true;
}

#define PARSE_WORD(kind_, enum_)                                           \
    static bool parse_##kind_(const char *text, int64_t low, int64_t high, \
                              enum enum_ *value)                           \
    {                                                                      \
        int mode;                                                          \
        (void)low, (void)high;                                             \
        if (!parse_word(text, WORDS(kind_), &mode))                        \
            return false;                                                  \
        *value = (enum enum_)mode;                                         \
        return true;                                                       \
    }
PARSE_WORD(STACKS, stacks_mode)
PARSE_WORD(NCCL_LOG, logs_mode)
PARSE_WORD(PROFILER, profiler_mode)

const char *timing_name(enum timing_mode mode)
{
    const struct word *words = WORDS(TIMING);
    while (words->name && words->mode != (int)mode)
        words++;
    return words->name ? words->name : "sample";
}

struct complaints {
    char text[340]; /* of one line */
    size_t used;
};

static void complain(struct complaints *complaints, const char *variable,
                     const char *text, const char *fallback)
{
    size_t room = sizeof(complaints->text) - complaints->used;
    int n = snprintf(complaints->text + complaints->used, room,
                     "%s%s=%.60s is not understood; using \"%s\"",
                     complaints->used ? "; " : "", variable, text, fallback);
    if (n > 0)
        complaints->used += (size_t)n < room ? (size_t)n : room - 1;
}

void config_read(struct config *config)
{
    struct complaints complaints = {.used = 0};
    const char *text;
#define CONFIG(id_, variable_, kind_, default_, low_, high_, ...)         \
    parse_##kind_(default_, low_, high_, &config->id_);                   \
    text = start_option(OPTION_##id_);                                    \
    if (text && *text && !parse_##kind_(text, low_, high_, &config->id_)) \
        complain(&complaints, variable_, text, default_);
#include "commtrace/config.def"
    log_quiet(config->quiet);
    if (complaints.used)
        log_line(LOG_OPTION, "%s", complaints.text);
}

enum profiler_mode config_profiler(void)
{
    enum profiler_mode mode = PROFILER_OFF;
    int64_t disable = 0;
    const char *text = start_option(OPTION_profiler);
    const char *disabled = start_option(OPTION_disable);
    if (disabled)
        parse_SWITCH(disabled, 0, 1, &disable);
    if (text && !disable)
        parse_PROFILER(text, 0, 0, &mode);
    return mode;
}

void config_describe(char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < OPTIONS; i++) {
        const char *value = start_option((enum option)i);
        if (!value || used >= size)
            continue;
        int n = snprintf(text + used, size - used, "%s%s=%s", used ? " " : "",
                         start_option_name((enum option)i), value);
        used += n > 0 ? (size_t)n : 0;
    }
}
