#include "profiler_queue.h"

#include <stdlib.h>

/*
 * An event's state is its position, how many threads are writing down times of
 * its kernel, and whether it is there to be read. A free one has the position
 * that it will have next.
 */
enum { STATE_READY = 1, STATE_PIN = 2, STATE_PINS = 0xfe, STATE_SHIFT = 8 };

static struct {
    _Atomic(struct profiler_event *) events; /* PROFILER_EVENTS of them */
    _Atomic uint64_t head;
    _Atomic uint64_t tail;
} queue;

static struct profiler_event *events_now(void)
{
    /* Acquire: their states are set. */
    return atomic_load_explicit(&queue.events, memory_order_acquire);
}

static struct profiler_event *event_at(struct profiler_event *events,
                                       uint64_t position)
{
    return &events[position % PROFILER_EVENTS];
}

bool profiler_queue_make(void)
{
    if (events_now())
        return true;
    struct profiler_event *events = calloc(PROFILER_EVENTS, sizeof(*events));
    if (!events)
        return false;
    for (uint64_t i = 0; i < PROFILER_EVENTS; i++)
        atomic_store_explicit(&events[i].state, i << STATE_SHIFT,
                              memory_order_relaxed);
    /* Release: with their states. */
    atomic_store_explicit(&queue.events, events, memory_order_release);
    return true;
}

struct profiler_event *profiler_queue_reserve(uint64_t *position)
{
    struct profiler_event *events = events_now();
    uint64_t head = atomic_load_explicit(&queue.head, memory_order_relaxed);
    do {
        /* Acquire: the writer has read what is overwritten now. */
        if (!events ||
            atomic_load_explicit(&event_at(events, head)->state,
                                 memory_order_acquire) != head << STATE_SHIFT) {
            /* Another thread may have taken this place meanwhile. */
            uint64_t now =
                atomic_load_explicit(&queue.head, memory_order_relaxed);
            if (now != head) {
                head = now;
                continue;
            }
            return NULL;
        }
        if (atomic_compare_exchange_weak_explicit(&queue.head, &head, head + 1,
                                                  memory_order_relaxed,
                                                  memory_order_relaxed))
            break;
    } while (true);
    *position = head;
    return event_at(events, head);
}

void profiler_queue_publish(struct profiler_event *event, uint64_t position)
{
    /* Release: with all that it holds. */
    atomic_store_explicit(&event->state, position << STATE_SHIFT | STATE_READY,
                          memory_order_release);
}

/* The event, which stays what it is until it is let go; NULL: it is over. */
struct profiler_event *profiler_queue_hold(uint64_t position)
{
    struct profiler_event *events = events_now();
    if (!events)
        return NULL;
    struct profiler_event *event = event_at(events, position);
    uint64_t state = atomic_load_explicit(&event->state, memory_order_relaxed);
    do {
        if (state >> STATE_SHIFT != position || !(state & STATE_READY) ||
            (state & STATE_PINS) == STATE_PINS)
            return NULL;
        /* Acquire: what the event holds. */
    } while (!atomic_compare_exchange_weak_explicit(
        &event->state, &state, state + STATE_PIN, memory_order_acquire,
        memory_order_relaxed));
    return event;
}

void profiler_queue_let_go(struct profiler_event *event)
{
    /* Release: the times were written before it may be another. */
    atomic_fetch_sub_explicit(&event->state, STATE_PIN, memory_order_release);
}

uint64_t profiler_head(void)
{
    return atomic_load_explicit(&queue.head, memory_order_acquire);
}

uint64_t profiler_tail(void)
{
    return atomic_load_explicit(&queue.tail, memory_order_relaxed);
}

struct profiler_event *profiler_look(uint64_t position)
{
    struct profiler_event *event = event_at(events_now(), position);
    /* Acquire: what the event holds. */
    uint64_t state = atomic_load_explicit(&event->state, memory_order_acquire);
    return state >> STATE_SHIFT == position && state & STATE_READY ? event
                                                                   : NULL;
}

static bool is_released(uint64_t position)
{
    uint64_t state = atomic_load_explicit(
        &event_at(events_now(), position)->state, memory_order_relaxed);
    return state >> STATE_SHIFT != position;
}

bool profiler_release(uint64_t position)
{
    struct profiler_event *event = event_at(events_now(), position);
    uint64_t state = position << STATE_SHIFT | STATE_READY;
    /* Acquire and release: times that were written, and all that was read. */
    if (!atomic_compare_exchange_strong_explicit(
            &event->state, &state, (position + PROFILER_EVENTS) << STATE_SHIFT,
            memory_order_acq_rel, memory_order_relaxed))
        return false;
    uint64_t tail = profiler_tail(), head = profiler_head();
    while (tail != head && is_released(tail))
        tail++;
    atomic_store_explicit(&queue.tail, tail, memory_order_relaxed);
    return true;
}
