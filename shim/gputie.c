#include "capture.h"
#include "clock.h"
#include "driver.h"
#include "gpu.h"

#define TIE_EVERY_NS INT64_C(1000000000)
/* How much an anchor's uncertainty grows: 10 us a second covers the drift
 * between the clocks and the rounding of a float of milliseconds. */
#define DRIFT_PER_NS 1e-5

/* Records the next anchor and waits for it, briefly: the GPU takes the event
 * at some moment inside the bracket. */
static bool bracket(struct gpu *gpu, int64_t *at_ns, int64_t *width_ns)
{
    int64_t before = clock_ns();
    if (driver.event_record(gpu->tie_event[1], gpu->tie_stream) != DRIVER_OK)
        return false;
    int64_t after;
    int ready;
    do {
        ready = driver.event_query(gpu->tie_event[1]);
        after = clock_ns();
    } while (ready == DRIVER_NOT_READY && after - before < 5000000);
    *at_ns = before + (after - before) / 2;
    *width_ns = after - before + 1;
    return ready == DRIVER_OK;
}

static bool is_better(const struct gpu *gpu, int64_t at_ns, int64_t width_ns)
{
    double age = (double)(at_ns - gpu->tie_ns);
    return gpu->tie_width_ns == 0 ||
           (double)width_ns <= (double)gpu->tie_width_ns + age * DRIFT_PER_NS;
}

/* The narrowest of a few brackets replaces the anchor unless it is worse than
 * the old one has become. */
static bool tie(struct gpu *gpu, struct gpu_anchor *anchor)
{
    bool tied = false;
    gpu->tied_ns = clock_ns();
    if (!gpu_is_usable(gpu) || driver.ctx_set_current(gpu->ctx) != DRIVER_OK)
        return false;
    for (int i = 0; i < 4; i++) {
        int64_t at_ns, width_ns;
        if (!bracket(gpu, &at_ns, &width_ns))
            break;
        if (!is_better(gpu, at_ns, width_ns))
            continue;
        void *event = gpu->tie_event[0];
        gpu->tie_event[0] = gpu->tie_event[1];
        gpu->tie_event[1] = event;
        gpu->tie_ns = at_ns;
        gpu->tie_width_ns = width_ns;
        tied = true;
    }
    *anchor = (struct gpu_anchor){
        .device = gpu->device,
        .at_ns = gpu->tie_ns,
        .real_ns = clock_real_ns() - (clock_ns() - gpu->tie_ns),
        .width_ns = gpu->tie_width_ns,
    };
    return tied;
}

static bool is_due(const struct gpu *gpu)
{
    int64_t every = gpu->tie_width_ns ? TIE_EVERY_NS : TIE_EVERY_NS / 10;
    return gpu->tied_ns == 0 || clock_ns() - gpu->tied_ns >= every;
}

/* What this thread asks of the driver must not break a capture elsewhere. */
static void leave_captures_alone(void)
{
    static bool done;
    if (!done)
        capture_relax();
    done = true;
}

int gpu_tie(struct gpu_anchor *anchors, int n)
{
    int filled = 0;
    struct gpu *gpus[GPUS];
    int ngpus = gpu_all(gpus);
    if (ngpus)
        leave_captures_alone();
    for (int i = 0; i < ngpus && filled < n; i++) {
        if (is_due(gpus[i]) && tie(gpus[i], &anchors[filled]))
            filled++;
    }
    return filled;
}
