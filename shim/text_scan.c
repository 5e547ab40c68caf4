#include "text_scan.h"

#include <stdarg.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip_blanks(struct text *text)
{
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\t'))
        text->at++;
}

static bool take_sign(struct text *text)
{
    bool minus = text->at < text->end && *text->at == '-';
    text->at += minus;
    return minus;
}

/* Too large a number is none. */
static bool take_digits(struct text *text, int64_t *value)
{
    const char *first = text->at;
    int64_t n = 0;
    for (; text->at < text->end && is_digit(*text->at); text->at++) {
        if (n > (INT64_MAX - 9) / 10)
            return false;
        n = 10 * n + (*text->at - '0');
    }
    *value = n;
    return text->at > first;
}

static bool take_long(struct text *text, int64_t *value)
{
    bool minus = take_sign(text);
    if (!take_digits(text, value))
        return false;
    if (minus)
        *value = -*value;
    return true;
}

static bool take_int(struct text *text, int *value)
{
    int64_t n;
    if (!take_long(text, &n) || n > INT32_MAX || n < INT32_MIN)
        return false;
    *value = (int)n;
    return true;
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_hex(struct text *text, uint64_t *value)
{
    uint64_t n = 0;
    if (text_starts(*text, "0x"))
        text->at += 2;
    const char *first = text->at;
    for (; text->at < text->end && hex_digit(*text->at) >= 0; text->at++)
        n = n << 4 | (uint64_t)hex_digit(*text->at);
    *value = n;
    return text->at > first && text->at - first <= 16;
}

static bool take_double(struct text *text, double *value)
{
    bool minus = take_sign(text);
    int64_t whole;
    double scale = 1;
    if (!take_digits(text, &whole))
        return false;
    *value = (double)whole;
    if (text->at < text->end && *text->at == '.')
        for (text->at++; text->at < text->end && is_digit(*text->at);
             text->at++)
            *value += (*text->at - '0') * (scale /= 10);
    if (minus)
        *value = -*value;
    return true;
}

static bool take_word(struct text *text, struct text *word)
{
    word->at = text->at;
    while (text->at < text->end && *text->at != ' ')
        text->at++;
    word->end = text->at;
    return text_size(*word) > 0;
}

static bool take(struct text *text, char what, va_list *values)
{
    switch (what) {
    case 'd':
        return take_int(text, va_arg(*values, int *));
    case 'D':
        return take_long(text, va_arg(*values, int64_t *));
    case 'x':
        return take_hex(text, va_arg(*values, uint64_t *));
    case 'f':
        return take_double(text, va_arg(*values, double *));
    default:
        return take_word(text, va_arg(*values, struct text *));
    }
}

static bool scan(struct text *text, const char *pattern, va_list *values)
{
    for (; *pattern; pattern++) {
        if (*pattern == ' ') {
            skip_blanks(text);
        } else if (*pattern == '%') {
            if (!take(text, *++pattern, values))
                return false;
        } else if (text->at == text->end || *text->at++ != *pattern) {
            return false;
        }
    }
    return true;
}

bool text_scan(struct text *text, const char *pattern, ...)
{
    struct text rest = *text;
    va_list values;
    va_start(values, pattern);
    bool fits = scan(&rest, pattern, &values);
    va_end(values);
    if (fits)
        *text = rest;
    return fits;
}

void text_copy(char *to, size_t size, struct text text)
{
    size_t n = text_size(text) < size ? text_size(text) : size - 1;
    memcpy(to, text.at, n);
    to[n] = 0;
}
