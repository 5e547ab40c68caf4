#include "capture.h"

#include "driver.h"
#include "gpu.h"

#include <errno.h>

bool capture_is_error(int error)
{
    return error >= DRIVER_CAPTURE_ERRORS && error <= DRIVER_CAPTURE_ERRORS_END;
}

/* Only the number is asked for, which all forms of the call tell. */
static int ask_number(void *stream, int *status, uint64_t *number)
{
    if (driver.capture_info_2)
        return driver.capture_info_2(stream, status, number, NULL, NULL, NULL);
    if (driver.capture_info_3)
        return driver.capture_info_3(stream, status, number, NULL, NULL, NULL,
                                     NULL);
    if (driver.capture_info_1)
        return driver.capture_info_1(stream, status, number);
    return -1;
}

static int64_t number_of(void *stream)
{
    int status = 0;
    uint64_t number = 0;
    if (ask_number(stream, &status, &number) != DRIVER_OK ||
        status != DRIVER_CAPTURE_ACTIVE || number > INT64_MAX)
        return 0;
    return (int64_t)number;
}

static bool ask(uint64_t stream, int64_t *graph)
{
    void *handle = (void *)(uintptr_t)stream;
    int saved = errno, status = 0;
    /* Asking the legacy stream beside a capture is an error that says so. */
    int error = driver.stream_is_capturing(handle, &status);
    if (!error && status)
        *graph = number_of(handle);
    errno = saved;
    return status || capture_is_error(error);
}

bool capture_of(struct gpu *gpu, uint64_t stream, int64_t *graph)
{
    *graph = 0;
    if (!driver.stream_is_capturing || !gpu_is_there())
        return false;
    if (stream > DRIVER_LAST_DEFAULT_STREAM)
        return ask(stream, graph);
    int saved = errno;
    void *ctx = gpu->ctx;
    bool capturing = false;
    if (driver.ctx_push(ctx) == DRIVER_OK) {
        capturing = ask(stream, graph);
        driver.ctx_pop(&ctx);
    }
    errno = saved;
    return capturing;
}

int64_t capture_here(uint64_t stream)
{
    int64_t graph = 0;
    if (driver.stream_is_capturing && gpu_is_there())
        ask(stream, &graph);
    return graph;
}

int capture_relax(void)
{
    int mode = DRIVER_CAPTURE_RELAXED;
    if (driver.exchange_capture_mode)
        driver.exchange_capture_mode(&mode);
    return mode;
}

void capture_restore(int mode)
{
    if (driver.exchange_capture_mode)
        driver.exchange_capture_mode(&mode);
}
