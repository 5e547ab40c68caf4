/*
 * Text that is not ours: a stretch of bytes, and patterns to take it apart.
 */
#ifndef SHIM_TEXT_SCAN_H
#define SHIM_TEXT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
    const char *at;
    const char *end;
};

static inline size_t text_size(struct text text)
{
    return (size_t)(text.end - text.at);
}

static inline bool text_starts(struct text text, const char *with)
{
    size_t n = strlen(with);
    return text_size(text) >= n && memcmp(text.at, with, n) == 0;
}

static inline bool text_equals(struct text text, const char *with)
{
    return text_size(text) == strlen(with) && text_starts(text, with);
}

/* The first place of that word in it, or NULL. */
static inline const char *text_find(struct text text, const char *what)
{
    return memmem(text.at, text_size(text), what, strlen(what));
}

/*
 * Matches a pattern against the start of the text and moves behind it; a text
 * that does not match stays. A blank is any number of blanks, %d an int, %D an
 * int64_t, %x a uint64_t in hexadecimal with or without 0x, %f a double in
 * decimal, %w a struct text up to a blank, any other byte itself.
 */
bool text_scan(struct text *text, const char *pattern, ...);

/* Cut off what does not fit; always ends. */
void text_copy(char *to, size_t size, struct text text);

#endif
