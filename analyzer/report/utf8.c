#include "report/utf8.h"

#define REPLACEMENT 0xfffdu

/* Length of the sequence that starts with byte c; 0: none does. */
static int sequence_length(unsigned c)
{
    if (c < 0x80)
        return 1;
    if (c >= 0xc2 && c < 0xe0)
        return 2;
    if (c >= 0xe0 && c < 0xf0)
        return 3;
    return c >= 0xf0 && c < 0xf5 ? 4 : 0;
}

unsigned utf8_next(const char **s_p)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)*s_p;
    int length = sequence_length(*s);
    unsigned code = *s;

    if (!code)
        return 0;
    *s_p += 1;
    if (length == 1)
        return code;
    if (!length)
        return REPLACEMENT;
    code &= 0x7fu >> length;
    for (int i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return REPLACEMENT;
        code = code << 6 | (s[i] & 0x3f);
    }
    if (code < least[length] || code > 0x10ffff || (code >> 11) == 0x1b)
        return REPLACEMENT;
    *s_p += length - 1;
    return code;
}

void utf8_put(FILE *file, unsigned code)
{
    if (code < 0x80) {
        fputc((int)code, file);
        return;
    }
    if (code < 0x800) {
        fputc((int)(0xc0 | code >> 6), file);
    } else {
        if (code < 0x10000) {
            fputc((int)(0xe0 | code >> 12), file);
        } else {
            fputc((int)(0xf0 | code >> 18), file);
            fputc((int)(0x80 | (code >> 12 & 0x3f)), file);
        }
        fputc((int)(0x80 | (code >> 6 & 0x3f)), file);
    }
    fputc((int)(0x80 | (code & 0x3f)), file);
}
