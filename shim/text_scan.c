#include "text_scan.h"

#include <stdarg.h>

/* Each takes what it can from the start of at ... end, and gives where it ends;
 * NULL: there is none. */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Too large a number is none. */
static const char *take_digits(const char *at, const char *end, int64_t *value)
{
    const char *first = at;
    int64_t n = 0;
    for (; at < end && is_digit(*at); at++) {
        if (n > (INT64_MAX - 9) / 10)
            return NULL;
        n = 10 * n + (*at - '0');
    }
    *value = n;
    return at > first ? at : NULL;
}

static const char *take_long(const char *at, const char *end, int64_t *value)
{
    bool minus = at < end && *at == '-';
    at = take_digits(at + minus, end, value);
    if (at && minus)
        *value = -*value;
    return at;
}

static const char *take_int(const char *at, const char *end, int *value)
{
    int64_t n;
    at = take_long(at, end, &n);
    if (!at || n > INT32_MAX || n < INT32_MIN)
        return NULL;
    *value = (int)n;
    return at;
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static const char *take_hex(const char *at, const char *end, uint64_t *value)
{
    uint64_t n = 0;
    if (end - at > 2 && at[0] == '0' && at[1] == 'x')
        at += 2;
    const char *first = at;
    for (; at < end && hex_digit(*at) >= 0; at++)
        n = n << 4 | (uint64_t)hex_digit(*at);
    *value = n;
    return at > first && at - first <= 16 ? at : NULL;
}

static const char *take_double(const char *at, const char *end, double *value)
{
    bool minus = at < end && *at == '-';
    int64_t whole;
    double part = 0, scale = 1;
    at = take_digits(at + minus, end, &whole);
    if (!at)
        return NULL;
    if (at < end && *at == '.')
        for (at++; at < end && is_digit(*at); at++)
            part += (*at - '0') * (scale /= 10);
    *value = minus ? -((double)whole + part) : (double)whole + part;
    return at;
}

static const char *take_word(const char *at, const char *end, struct text *word)
{
    word->at = at;
    while (at < end && *at != ' ')
        at++;
    word->end = at;
    return at > word->at ? at : NULL;
}

static const char *take(const char *at, const char *end, char what,
                        va_list *values)
{
    switch (what) {
    case 'd':
        return take_int(at, end, va_arg(*values, int *));
    case 'D':
        return take_long(at, end, va_arg(*values, int64_t *));
    case 'x':
        return take_hex(at, end, va_arg(*values, uint64_t *));
    case 'f':
        return take_double(at, end, va_arg(*values, double *));
    default:
        return take_word(at, end, va_arg(*values, struct text *));
    }
}

static const char *scan(const char *at, const char *end, const char *pattern,
                        va_list *values)
{
    for (; at && *pattern; pattern++) {
        if (*pattern == ' ') {
            while (at < end && (*at == ' ' || *at == '\t'))
                at++;
        } else if (*pattern == '%') {
            at = take(at, end, *++pattern, values);
        } else {
            at = at < end && *at == *pattern ? at + 1 : NULL;
        }
    }
    return at;
}

bool text_scan(struct text *text, const char *pattern, ...)
{
    va_list values;
    va_start(values, pattern);
    const char *at = scan(text->at, text->end, pattern, &values);
    va_end(values);
    if (at)
        text->at = at;
    return at != NULL;
}

void text_copy(char *to, size_t size, struct text text)
{
    size_t n = text_size(text) < size ? text_size(text) : size - 1;
    memcpy(to, text.at, n);
    to[n] = 0;
}
