/* What tells when a process was last alive and when its communicators ended:
 * tables comm_event and clock. */
#include "trace/load.h"
#include "trace/stages.h"

struct ct_comm_event_row *ct_load_add_event(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_comm_event_row *event;

    p->events = ct_grow(p->events, &loader->event_capacity, p->nevents,
                        sizeof(*p->events));
    event = &p->events[p->nevents++];
    *event = (struct ct_comm_event_row){
        .comm = CT_NONE, .host_ns = CT_NO_TIME, .result = CT_NONE};
    return event;
}

void ct_load_events(struct ct_loader *loader)
{
    struct ct_comm_event_row *event;
    struct ct_rows rows;
    const char *what;

    ct_rows_open(&rows, loader, "comm_event",
                 "SELECT comm, what, at_ns, host_ns, result FROM comm_event");
    while (ct_rows_next(&rows)) {
        event = ct_load_add_event(loader);
        if (!ct_rows_null(&rows, 0))
            event->comm = ct_ids_find(
                &loader->comm_ids, ct_rows_int(&rows, 0, "comm", 0, INT32_MAX));
        what = ct_rows_text(&rows, 1);
        event->what = what ? what : "";
        event->at_ns =
            ct_rows_opt(&rows, 2, "at_ns", -CT_MAX_TIME_NS, CT_MAX_TIME_NS, 0);
        event->host_ns =
            ct_rows_opt(&rows, 3, "host_ns", 0, CT_MAX_DURATION_NS, CT_NO_TIME);
        event->result =
            (int)ct_rows_opt(&rows, 4, "result", INT32_MIN, INT32_MAX, CT_NONE);
    }
}

static void sign(struct ct_process *p, int64_t at_ns, int64_t more_ns)
{
    if (more_ns != CT_NO_TIME)
        at_ns += more_ns;
    if (at_ns > p->last_ns)
        p->last_ns = at_ns;
}

void ct_load_clocks(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_rows rows;
    int64_t at, width;

    ct_rows_open(&rows, loader, "clock",
                 "SELECT at_ns, device, width_ns FROM clock");
    while (ct_rows_next(&rows)) {
        at = ct_rows_opt(&rows, 0, "at_ns", -CT_MAX_TIME_NS, CT_MAX_TIME_NS, 0);
        width = ct_rows_opt(&rows, 2, "width_ns", 0, CT_MAX_DURATION_NS, 0);
        sign(p, at, 0);
        if (ct_rows_null(&rows, 1))
            continue;
        if (at > p->looked_ns)
            p->looked_ns = at;
        if (width > p->gpu_clock_ns)
            p->gpu_clock_ns = width;
    }
}

void ct_load_last_sign(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    int i;

    for (i = 0; i < p->nevents; i++)
        sign(p, p->events[i].at_ns, p->events[i].host_ns);
    for (i = 0; i < p->ncomms; i++)
        sign(p, p->comms[i].enter_ns, 0);
    for (i = 0; i < p->nops; i++) {
        sign(p, p->ops[i].enter_ns, ct_op_host_ns(&p->ops[i]));
        if (ct_op_start_ns(&p->ops[i]) != CT_NO_TIME)
            sign(p, ct_op_start_ns(&p->ops[i]), ct_op_gpu_ns(&p->ops[i]));
    }
    if (p->end_ns != CT_NO_TIME)
        sign(p, p->end_ns, 0);
}
