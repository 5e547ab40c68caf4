#include "doctor/options.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/facts.h"

extern char **environ;

/* What each kind of option takes: words, of which "sample:N" is one, or a
 * number, or NULL for any text. */
#define KIND_TEXT NULL
#define KIND_NUMBER "N"
#define KIND_SWITCH "N"
#define WORD(mode_, name_) "|" name_
#define KIND_TIMING (CONFIG_TIMING(WORD) "|sample:N") + 1
#define KIND_STACKS (CONFIG_STACKS(WORD)) + 1
#define KIND_NCCL_LOG (CONFIG_NCCL_LOG(WORD)) + 1
#define KIND_PROFILER (CONFIG_PROFILER(WORD)) + 1

#include "commtrace/config.def"

static const struct option {
    const char *name;
    const char *words;
    long long low, high;
} options[] = {
#define CONFIG(id_, variable_, kind_, default_, low_, high_, ...) \
    {variable_, KIND_##kind_, low_, high_},
#include "commtrace/config.def"
};

#define OPTIONS (sizeof options / sizeof *options)

static bool is_number(const char *text, long long low, long long high)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    return !errno && end != text && !*end && value >= low && value <= high;
}

/* Whether text is the word of n bytes, in which N stands for a number. */
static bool fits(const struct option *o, const char *word, size_t n,
                 const char *text)
{
    if (word[n - 1] == 'N' && !strncmp(text, word, n - 1))
        return n == 1 ? is_number(text, o->low, o->high)
                      : is_number(text + n - 1, 1, 1 << 30);
    return strlen(text) == n && !strncmp(text, word, n);
}

static bool is_right(const struct option *o, const char *text)
{
    for (const char *word = o->words; word;) {
        size_t n = strcspn(word, "|");

        if (fits(o, word, n, text))
            return true;
        word = word[n] ? word + n + 1 : NULL;
    }
    return !o->words;
}

static void complain(struct facts *facts, const struct option *o,
                     const char *text, const char *fallback)
{
    if (!facts)
        return;
    if (!strcmp(o->words, "N"))
        facts_add(facts, "options", FACT_BAD,
                  "%s=%.80s is not a number from %lld to %lld; %s is used",
                  o->name, text, o->low, o->high, fallback);
    else
        facts_add(facts, "options", FACT_BAD,
                  "%s=%.80s is none of %s; %s is used", o->name, text, o->words,
                  fallback);
}

static const char *read_one(size_t i, const char *fallback, struct facts *facts)
{
    const char *text = getenv(options[i].name);

    if (!text || !*text)
        return fallback;
    if (is_right(&options[i], text)) {
        if (facts)
            facts_add(facts, "options", FACT_GOOD, "%s=%.200s", options[i].name,
                      text);
        return text;
    }
    complain(facts, &options[i], text, fallback);
    return fallback;
}

static bool is_known(const char *variable)
{
    size_t n = strcspn(variable, "=");

    for (size_t i = 0; i < OPTIONS; i++)
        if (strlen(options[i].name) == n &&
            !strncmp(options[i].name, variable, n))
            return true;
    return false;
}

/* Names that look like ours and are none: mostly slips. */
static void find_unknown(struct facts *facts)
{
    for (char **e = environ; *e; e++)
        if (!strncmp(*e, "COMMTRACE_", 10) && !is_known(*e))
            facts_add(facts, "options", FACT_NOTE,
                      "%.*s is no option of the recorder",
                      (int)strcspn(*e, "="), *e);
}

void options_read(struct options *out, struct facts *facts)
{
    size_t i = 0;

#define CONFIG(id_, variable_, kind_, default_, ...) \
    out->id_ = read_one(i++, default_, facts);
#include "commtrace/config.def"
    if (facts)
        find_unknown(facts);
}

int64_t options_number(const char *text)
{
    return strtoll(text, NULL, 10);
}
