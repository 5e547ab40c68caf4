/* Times in four bytes. */
#include "trace/short_ns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int64_t back(int64_t ns)
{
    return ct_full_ns(ct_shorten_ns(ns));
}

static void test_exact(void **state)
{
    const int64_t most = (INT64_C(1) << 30) - 1;

    (void)state;
    assert_int_equal(sizeof(struct ct_short_ns), 4);
    assert_int_equal(back(CT_NO_TIME), CT_NO_TIME);
    for (int64_t ns = 0; ns <= most; ns += ns / 3 + 1) {
        assert_int_equal(back(ns), ns);
        assert_int_equal(back(-ns), -ns);
    }
    assert_int_equal(back(most), most);
    assert_int_equal(back(-most), -most);
}

/* As long as it may be in a trace, and as it may come from a hostile one. */
static void test_long(void **state)
{
    int64_t before = (INT64_C(1) << 30) - 1;

    (void)state;
    for (int64_t ns = before + 1; ns < INT64_C(1) << 57; ns += ns / 7) {
        const int64_t full = back(ns);

        assert_true(full <= ns && ns - full <= ns >> 25);
        assert_true(full > before);
        assert_int_equal(back(-ns), -full);
        assert_int_equal(back(full), full);
        before = full;
    }
    assert_true(back(INT64_MAX) >= before);
    assert_int_equal(back(-INT64_MAX), -back(INT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
