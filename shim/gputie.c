#include "capture.h"
#include "clock.h"
#include "driver.h"
#include "gpu.h"

#include <sched.h>

#define TIE_EVERY_NS INT64_C(1000000000)
/* A bracket this narrow is good; one that is wide is to be replaced soon. */
#define NARROW_NS 20000
#define WIDE_NS 100000
/* For the first one, where a communicator is made, there is time. */
#define WAIT_NS 5000000
#define FIRST_WAIT_NS 100000000
/* How much an anchor's uncertainty grows: 10 us a second covers the drift
 * between the clocks and the rounding of a float of milliseconds. */
#define DRIFT_PER_NS 1e-5

/* Records the next anchor and waits for it, briefly: the GPU takes the event
 * at some moment inside the bracket. What is wide already may be wider: others
 * get their turn on the processor. */
static bool bracket(struct gpu *gpu, int64_t wait_ns, int64_t *at_ns,
                    int64_t *width_ns)
{
    int64_t before = clock_ns();
    if (driver.event_record(gpu->tie_event[1], gpu->tie_stream) != DRIVER_OK)
        return false;
    int64_t after;
    int ready;
    do {
        ready = driver.event_query(gpu->tie_event[1]);
        after = clock_ns();
        if (ready == DRIVER_NOT_READY && after - before > WIDE_NS)
            sched_yield();
    } while (ready == DRIVER_NOT_READY && after - before < wait_ns);
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
 * the old one has become. The GPU's context is current. */
static bool narrow(struct gpu *gpu, int tries, int64_t wait_ns)
{
    bool tied = false;
    int64_t at_ns, width_ns = INT64_MAX;
    gpu->tied_ns = clock_ns();
    for (; tries && width_ns > NARROW_NS; tries--) {
        if (!bracket(gpu, wait_ns, &at_ns, &width_ns))
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
    return tied;
}

void gpu_tie_first(struct gpu *gpu)
{
    enum { TRIES = 16 };
    narrow(gpu, TRIES, FIRST_WAIT_NS);
}

static bool is_due(const struct gpu *gpu)
{
    bool poor = gpu->tie_width_ns == 0 || gpu->tie_width_ns > WIDE_NS;
    int64_t every = poor ? TIE_EVERY_NS / 10 : TIE_EVERY_NS;
    return gpu->tied_ns == 0 || clock_ns() - gpu->tied_ns >= every;
}

/* True: there is an anchor that nobody has been told of. */
static bool tie(struct gpu *gpu)
{
    enum { TRIES = 4 };
    bool news = !gpu->told && gpu->tie_width_ns != 0;
    if (gpu_lives(gpu) && !news && is_due(gpu) &&
        driver.ctx_set_current(gpu->ctx) == DRIVER_OK)
        news = narrow(gpu, TRIES, WAIT_NS);
    gpu->told |= news;
    return news;
}

static struct gpu_anchor anchor_of(const struct gpu *gpu)
{
    return (struct gpu_anchor){
        .device = gpu->device,
        .at_ns = gpu->tie_ns,
        .real_ns = clock_real_ns() - (clock_ns() - gpu->tie_ns),
        .width_ns = gpu->tie_width_ns,
    };
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
        if (tie(gpus[i]))
            anchors[filled++] = anchor_of(gpus[i]);
    }
    return filled;
}
