/*
 * The output layer: escapes and none in JSON, alignment and wrapping in text.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/out.h"
#include "report/units.h"
#include "trace/trace.h"

struct row {
    int n;
    int64_t count;
    uint64_t size, id;
    double value;
    const char *text;
    char buffer[40];
    bool flag;
};

static const struct out_column columns[] = {
    OUT_COL(struct row, n, "n", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct row, count, "count", OUT_COUNT, 0, OUT_OPTIONAL),
    OUT_COL(struct row, size, "size", OUT_SIZE, 0, OUT_BOTH),
    OUT_COL(struct row, id, "", OUT_ID, 0, OUT_DATA),
    OUT_COL(struct row, value, "value", OUT_REAL, 3, OUT_BOTH),
    OUT_COL(struct row, text, "text", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct row, buffer, "", OUT_BUFFER, 0, OUT_DATA),
    OUT_COL(struct row, flag, "flag", OUT_BOOL, 0, OUT_BOTH),
};

static const struct out_table table = OUT_TABLE(struct row, columns);

static const struct row plain = {7, -1, 1 << 20, 0xfeedu, 1.25, "a", "b", true};

typedef void writer(struct out *out);

/* What write makes in a format; free it. */
static char *written(enum out_format format, writer *write)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    struct out *out = out_open(file, format);

    write(out);
    assert_int_equal(out_close(out), 0);
    fclose(file);
    return text;
}

static void check(enum out_format format, writer *write, const char *expected)
{
    char *text = written(format, write);

    assert_string_equal(text, expected);
    free(text);
}

static void write_rows(struct out *out)
{
    struct row rows[2] = {plain, plain};

    rows[1].n = -1;
    rows[1].size = OUT_NO_SIZE;
    rows[1].value = NAN;
    rows[1].text = NULL;
    rows[1].flag = false;
    out_title(out, "TITLE", "remark");
    out_rows(out, "rows", &table, rows, 2);
}

static void json_has_null_for_none(void **state)
{
    (void)state;
    check(OUT_AS_JSON, write_rows,
          "{\"rows\":[\n"
          "{\"n\":7,\"count\":null,\"size\":1048576,"
          "\"id\":\"000000000000feed\",\"value\":1.25,\"text\":\"a\","
          "\"buffer\":\"b\",\"flag\":true},\n"
          "{\"n\":null,\"count\":null,\"size\":null,"
          "\"id\":\"000000000000feed\",\"value\":null,\"text\":null,"
          "\"buffer\":\"b\",\"flag\":false}]}\n");
}

static void text_is_aligned(void **state)
{
    (void)state;
    check(OUT_AS_TEXT, write_rows,
          "\nTITLE  remark\n"
          "  n   size  value  text  flag\n"
          "  7  1 MiB   1.25  a     yes\n"
          "  -      -      -  -     no\n");
}

static int long_text; /* characters */

static void write_wide(struct out *out)
{
    char text[200];
    struct row row = plain;

    memset(text, 'x', sizeof text);
    text[long_text] = 0;
    row.text = text;
    out_rows(out, "x", &table, &row, 1);
}

/* One blank between columns where that makes a table fit the screen. */
static void text_closes_up(void **state)
{
    static const struct {
        int text, gap;
    } cases[] = {{75, 2}, {76, 1}, {79, 1}, {80, 2}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text;

        long_text = cases[i].text;
        text = written(OUT_AS_TEXT, write_wide);
        assert_int_equal(strcspn(text, "\n"),
                         17 + long_text + 4 * cases[i].gap);
        assert_int_equal(strstr(text, "\n  7  1 MiB") != NULL,
                         cases[i].gap == 2);
        free(text);
    }
}

static void write_foreign(struct out *out)
{
    struct row row = plain;

    row.text = "q\" b\\ \n\t\x01 \xc3\xa9 \xff \xed\xa0\x80 \xf0\x9f\x98\x80 "
               "\xc3";
    out_rows(out, "x", &table, &row, 1);
}

static void json_escapes_foreign_bytes(void **state)
{
    char *text = written(OUT_AS_JSON, write_foreign);

    (void)state;
    assert_non_null(strstr(
        text, "\"text\":\"q\\\" b\\\\ \\n\\t\\u0001 \xc3\xa9 \xef\xbf\xbd "
              "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xf0\x9f\x98\x80 "
              "\xef\xbf\xbd\""));
    free(text);
}

static void text_keeps_the_terminal_safe(void **state)
{
    char *text = written(OUT_AS_TEXT, write_foreign);

    (void)state;
    assert_null(strchr(text, '\x01'));
    assert_null(strchr(text, '\t'));
    assert_non_null(strstr(text, "q\" b\\ ??? \xc3\xa9"));
    free(text);
}

static void write_nested(struct out *out)
{
    out_text(out, "a", "1");
    out_list(out, "list");
    out_object(out, NULL);
    out_fields(out, &table, &plain);
    out_object_end(out);
    out_text(out, NULL, NULL);
    out_list_end(out);
    out_object(out, "empty");
    out_object_end(out);
    out_rows(out, "none", &table, &plain, 0);
    out_say(out, 2, "only %s", "text");
}

static void json_nests(void **state)
{
    (void)state;
    check(OUT_AS_JSON, write_nested,
          "{\"a\":\"1\",\n\"list\":[{\"n\":7,\"count\":null,\"size\":1048576,"
          "\"id\":\"000000000000feed\",\"value\":1.25,\"text\":\"a\","
          "\"buffer\":\"b\",\"flag\":true},null],\n\"empty\":{},\n"
          "\"none\":[]}\n");
}

static void text_says_none(void **state)
{
    (void)state;
    check(OUT_AS_TEXT, write_nested, "  none\n  only text\n");
}

static void write_long(struct out *out)
{
    out_fact(out, "unknown {control}",
             "0123456789 0123456789 0123456789 0123456789 0123456789 "
             "0123456789 0123456789 0123456789 0123456789 0123456789");
    out_fact(out, "label",
             "0123456789 0123456789 0123456789 0123456789 0123456789 "
             "0123456789 0123456789 0123456789 0123456789 0123456789");
    out_say(out, 2,
            "0123456789 0123456789 0123456789 0123456789 0123456789 "
            "0123456789 0123456789 0123456789 0123456789 0123456789");
    out_say(out, 0, "%s", "");
}

static void text_wraps(void **state)
{
    char *text = written(OUT_AS_TEXT, write_long);
    int width = 0;

    (void)state;
    for (const char *c = text; *c; c++) {
        width = *c == '\n' ? 0 : width + 1;
        assert_true(width <= OUT_WIDTH);
    }
    assert_non_null(strstr(text, "unknown {control} 0123456789"));
    assert_non_null(strstr(text, "\n                 0123456789"));
    assert_non_null(strstr(text, "\n    0123456789"));
    free(text);
}

static void write_many(struct out *out)
{
    struct row row = plain;

    out_table(out, "many", &table);
    for (int i = 0; i < 1000; i++) {
        row.n = i * 1000;
        out_row(out, &row);
    }
    out_table_end(out);
}

static void text_streams(void **state)
{
    char *text = written(OUT_AS_TEXT, write_many);
    int lines = 0;

    (void)state;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 1001);
    assert_non_null(strstr(text, "\n       0  1 MiB"));
    assert_non_null(strstr(text, "\n  999000  1 MiB"));
    free(text);
}

static void numbers_are_readable(void **state)
{
    static const int line[] = {0, 1, 2, 3}, pair[] = {0, 4},
                     odd[] = {0, 1, 4, 5}, step[] = {1, 3, 5, 7},
                     many[] = {0, 2, 3, 7, 11, 12, 90, 1000, 1002};
    char buffer[UNITS_SIZE], ranks[16];

    (void)state;
    assert_string_equal(units_size(buffer, 0), "0 B");
    assert_string_equal(units_size(buffer, 1023), "1023 B");
    assert_string_equal(units_size(buffer, 1536), "1.5 KiB");
    assert_string_equal(units_size(buffer, 3u << 30), "3 GiB");
    assert_string_equal(units_real(buffer, 0, 3), "0");
    assert_string_equal(units_real(buffer, 12345, 3), "12345");
    assert_string_equal(CT_NUM(24580, 3), "24580");
    assert_string_equal(CT_NUM(999.6, 3), "1000");
    assert_string_equal(CT_NUM(99.94, 3), "99.9");
    assert_string_equal(CT_NUM(-3960.2, 3), "-3960");
    assert_string_equal(CT_NUM(0, 2), "0");
    assert_string_equal(CT_NUM(.5, 3), "0.5");
    assert_string_equal(CT_NUM(.0000123, 2), "0.000012");
    assert_string_equal(CT_NUM(NAN, 3), "n/a");
    assert_string_equal(units_real(buffer, 12.345, 3), "12.3");
    assert_string_equal(units_real(buffer, 0.9996, 3), "1.00");
    assert_string_equal(units_real(buffer, 99.96, 3), "100");
    assert_string_equal(units_real(buffer, -0.0012345, 3), "-0.0012");
    assert_string_equal(units_real(buffer, -1e-9, 3), "0.0000");
    assert_string_equal(units_real(buffer, NAN, 3), "n/a");
    assert_string_equal(units_real(buffer, INFINITY, 3), "n/a");
    assert_string_equal(units_sure(buffer, .99994), "> 0.99");
    assert_string_equal(units_sure(buffer, .995), "> 0.99");
    assert_string_equal(units_sure(buffer, .9949), "0.99");
    assert_string_equal(units_sure(buffer, 1), "1.00");
    assert_string_equal(units_sure(buffer, .5), "0.50");
    assert_string_equal(units_ranks(ranks, sizeof ranks, line, 4), "0-3");
    assert_string_equal(units_ranks(ranks, sizeof ranks, pair, 2), "0,4");
    assert_string_equal(units_ranks(ranks, sizeof ranks, odd, 4), "0,1,4,5");
    assert_string_equal(units_ranks(ranks, sizeof ranks, step, 4), "1-7:2");
    assert_string_equal(units_ranks(ranks, sizeof ranks, line, 1), "0");
    assert_string_equal(units_ranks(ranks, sizeof ranks, line, 0), "");
    units_ranks(ranks, sizeof ranks, many, 9);
    assert_non_null(strstr(ranks, ",..."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_null_for_none),
        cmocka_unit_test(text_is_aligned),
        cmocka_unit_test(text_closes_up),
        cmocka_unit_test(json_escapes_foreign_bytes),
        cmocka_unit_test(text_keeps_the_terminal_safe),
        cmocka_unit_test(json_nests),
        cmocka_unit_test(text_says_none),
        cmocka_unit_test(text_wraps),
        cmocka_unit_test(text_streams),
        cmocka_unit_test(numbers_are_readable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
