/* What hooks ask of a stream, by each form of the question that drivers have
 * had, and what the answers mean. */
#include "shim_test.h"

#include "capture.h"
#include "driver.h"
#include "gpu.h"

#include <stdbool.h>

enum { INVALIDATED = 2, IMPLICIT = 906, ANY_ERROR = 1 };

static int status, error, pushed;
static uint64_t number;

static int is_capturing(void *stream, int *status_p)
{
    assert_true(stream == (void *)0x1000 || pushed == 1);
    *status_p = status;
    return error;
}

static int tell(int *status_p, uint64_t *id)
{
    *status_p = status;
    if (status == DRIVER_CAPTURE_ACTIVE)
        *id = number;
    return error;
}

static int info_1(void *stream, int *status_p, uint64_t *id)
{
    (void)stream;
    return tell(status_p, id);
}

static int info_2(void *stream, int *status_p, uint64_t *id, void **graph,
                  const void **dependencies, size_t *n)
{
    (void)stream;
    assert_true(!graph && !dependencies && !n);
    return tell(status_p, id);
}

static int info_3(void *stream, int *status_p, uint64_t *id, void **graph,
                  const void **dependencies, const void **edges, size_t *n)
{
    (void)stream;
    assert_true(!graph && !dependencies && !edges && !n);
    return tell(status_p, id);
}

static int push(void *ctx)
{
    assert_ptr_equal(ctx, (void *)0x77);
    pushed++;
    return DRIVER_OK;
}

static int pop(void **ctx)
{
    (void)ctx;
    pushed--;
    return DRIVER_OK;
}

static struct gpu gpu = {.ctx = (void *)0x77};

static void check(bool capturing, int64_t wanted)
{
    int64_t graph = 99;

    assert_int_equal(capture_of(&gpu, 0x1000, &graph), capturing);
    assert_int_equal(graph, wanted);
    assert_int_equal(capture_here(0x1000), wanted);
    /* A default stream is that of the communicator's context. */
    assert_int_equal(capture_of(&gpu, 0, &graph), capturing);
    assert_int_equal(graph, wanted);
    assert_int_equal(pushed, 0);
}

static void check_answers(void)
{
    status = error = 0;
    number = 7;
    check(false, 0);
    status = DRIVER_CAPTURE_ACTIVE;
    check(true, 7);
    number = UINT64_MAX; /* no number that a trace can hold */
    check(true, 0);
    status = INVALIDATED;
    check(true, 0);
    status = 0;
    error = IMPLICIT; /* the legacy stream beside a capture */
    check(true, 0);
    error = ANY_ERROR;
    check(false, 0);
}

static void test_forms(void **state)
{
    (void)state;
    driver = (struct driver){.ctx_push = push, .ctx_pop = pop};
    check(false, 0); /* a driver that knows no captures */
    driver.stream_is_capturing = is_capturing;
    status = DRIVER_CAPTURE_ACTIVE;
    check(true, 0);
    driver.capture_info_1 = info_1;
    check_answers();
    driver.capture_info_1 = NULL;
    driver.capture_info_3 = info_3;
    check_answers();
    driver.capture_info_2 = info_2;
    check_answers();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
