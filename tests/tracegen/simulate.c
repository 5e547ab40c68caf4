#include "tracegen.h"

#include <stdlib.h>

void simulation_init(struct simulation *s, const struct layout *layout)
{
    unsigned long n = (unsigned long)layout->nranks;
    int i;

    *s = (struct simulation){.layout = layout};
    s->ranks = zeros(n, sizeof(*s->ranks));
    s->programs = zeros(n, sizeof(*s->programs));
    s->awake = zeros(n, sizeof(*s->awake));
    s->meetings = zeros((unsigned long)layout->ncomms, sizeof(*s->meetings));
    for (i = 0; i < layout->nranks; i++)
        s->ranks[i].dies_ns = dies_at(layout->options, i);
    for (i = 0; i < layout->ncomms; i++)
        s->meetings[i].streams =
            zeros((unsigned long)layout->comms[i].nranks, 1);
}

static void release_rank(struct rank *rank)
{
    int i;

    for (i = 0; i < STREAMS; i++)
        free(rank->streams[i].tasks);
    free(rank->records);
    free(rank->classes);
    free(rank->class_index.slots);
    free(rank->lanes);
    free(rank->segments);
}

void simulation_release(struct simulation *s)
{
    int i;

    for (i = 0; i < s->layout->nranks; i++) {
        release_rank(&s->ranks[i]);
        free(s->programs[i].code);
    }
    for (i = 0; i < s->layout->ncomms; i++)
        free(s->meetings[i].streams);
    edges_release(s);
    free(s->ranks);
    free(s->programs);
    free(s->awake);
    free(s->meetings);
}

static void wake(struct simulation *s, int r)
{
    if (s->ranks[r].awake)
        return;
    s->ranks[r].awake = true;
    s->awake[s->nawake++] = r;
}

/* The last that was woken goes on: the ranks of a small group stay in the
 * cache. What comes out does not depend on that. */
static int next_awake(struct simulation *s)
{
    const int r = s->awake[--s->nawake];

    s->ranks[r].awake = false;
    return r;
}

const struct instruction *stream_task(const struct rank *rank, int stream)
{
    const struct stream *st = &rank->streams[stream];

    return &rank->program->code[st->tasks[st->done].at];
}

/* The calls on the communicator of a call; those of a group are on one. */
static struct turns *turns_of(struct simulation *s, int r,
                              const struct instruction *in)
{
    const struct layout *layout = s->layout;
    const int comm = layout->comm_of[r][in[in->call == GROUP].comm];

    return &s->ranks[r].turns[layout->comms[comm].kind];
}

static int ops_of(const struct instruction *in)
{
    return in->call == GROUP ? in->n : 1;
}

void simulation_done(struct simulation *s, int r, int stream, int64_t end_ns)
{
    struct rank *rank = &s->ranks[r];
    struct stream *st = &rank->streams[stream];
    const struct instruction *in = stream_task(rank, stream);
    struct record *record = &rank->records[st->tasks[st->done].record];
    struct turns *turns;
    int i;

    for (i = 0; i < ops_of(in); i++) {
        record[i].start_ns = st->start_ns;
        record[i].gpu_ns = end_ns - st->start_ns;
    }
    if (in->event) {
        rank->events[in->event].pending--;
        rank->events[in->event].at_ns = end_ns;
    }
    turns = turns_of(s, r, in);
    turns->done++;
    turns->end_ns = end_ns;
    st->now_ns = end_ns;
    st->begun = false;
    st->done++;
    wake(s, r);
}

static int64_t latest(int64_t a, int64_t b, int64_t c)
{
    const int64_t ab = a > b ? a : b;

    return ab > c ? ab : c;
}

/* NCCL runs the calls on a communicator one after the other, on whatever
 * streams they are. Nothing begins before what it comes after is over. */
static void begin_task(struct simulation *s, int r, int stream)
{
    struct rank *rank = &s->ranks[r];
    struct stream *st = &rank->streams[stream];
    const struct instruction *in = stream_task(rank, stream);
    const struct event *after = &rank->events[in->after];
    const struct turns *turns = turns_of(s, r, in);
    const struct task *task = &st->tasks[st->done];

    if (after->pending || turns->done != task->turn)
        return;
    st->start_ns = latest(task->ready_ns, st->now_ns,
                          latest(after->at_ns, turns->end_ns, 0));
    if (st->start_ns >= rank->dies_ns)
        return;
    if (st->done + 1 == st->ntasks)
        rank->waiting &= ~(1u << stream);
    st->begun = true;
    st->end_ns = 0;
    if (in[in->call == GROUP].call == COLLECTIVE)
        meet(s, r, stream);
    else
        transfer(s, r, stream);
}

static void begin_tasks(struct simulation *s, int r)
{
    struct rank *rank = &s->ranks[r];
    int i;

    for (i = 0; rank->waiting >> i; i++)
        if (rank->waiting >> i & 1 && !rank->streams[i].begun)
            begin_task(s, r, i);
}

/* Records of what the host calls now. */
static void add_records(const struct layout *layout, struct rank *rank, int r,
                        const struct instruction *in)
{
    const bool grouped = in->call == GROUP || (layout->options->lone_groups &&
                                               in->call != COLLECTIVE);
    const int stream = in->stream, n = ops_of(in);
    const int group = grouped ? ++rank->groups : 0;
    int i;

    if (in->call == GROUP)
        in++;
    for (i = 0; i < n; i++) {
        const int comm = layout->comm_of[r][in[i].comm];

        record_add(rank, &in[i], layout->comms[comm].kind, stream, group);
    }
    rank->records[rank->nrecords - 1].last_of_group = grouped;
    if (grouped)
        rank->host_ns += HOST_CALL_NS;
}

static void issue(struct simulation *s, int r, const struct instruction *in)
{
    struct rank *rank = &s->ranks[r];
    struct stream *st = &rank->streams[in->stream];
    struct task task = {.at = rank->pc,
                        .record = rank->nrecords,
                        .turn = turns_of(s, r, in)->issued++};

    add_records(s->layout, rank, r, in);
    /* The call, or the end of its group, was entered. */
    task.ready_ns = latest(rank->streams[COMPUTE_STREAM].now_ns,
                           rank->host_ns - HOST_CALL_NS, 0);
    st->tasks = grow(st->tasks, &st->capacity, st->ntasks, sizeof(*st->tasks));
    st->tasks[st->ntasks++] = task;
    rank->waiting |= 1u << in->stream;
    rank->issued = true;
    if (in->event)
        rank->events[in->event].pending++;
    begin_tasks(s, r);
}

/* The compute stream waits. */
static void join(struct rank *rank, int64_t at_ns)
{
    struct stream *compute = &rank->streams[COMPUTE_STREAM];

    if (at_ns > compute->now_ns)
        compute->now_ns = at_ns;
}

static bool step_call(struct simulation *s, int r, const struct instruction *in)
{
    struct rank *rank = &s->ranks[r];
    const struct stream *st = &rank->streams[in->stream];

    if (!rank->issued)
        issue(s, r, in);
    if (in->async)
        return true;
    if (st->done < st->ntasks)
        return false;
    join(rank, st->now_ns);
    return true;
}

static void mark(struct rank *rank, const struct instruction *in)
{
    if (in->mark == SEGMENT_END) {
        rank->segments[rank->nsegments - 1].last = rank->nops - 1;
        return;
    }
    rank->segments = grow(rank->segments, &rank->segment_capacity,
                          rank->nsegments, sizeof(*rank->segments));
    rank->segments[rank->nsegments++] =
        (struct segment){.kind = in->mark,
                         .first = rank->nops,
                         .last = -1,
                         .micro_batches = in->n};
}

/* The program of this rank lacks a call that the others have. */
static bool is_left_out(const struct simulation *s, int r,
                        const struct instruction *in)
{
    struct rank *rank = &s->ranks[r];

    return in->call == COLLECTIVE && !rank->issued &&
           is_skipped(s->layout->options, r, rank->collectives++);
}

/* False: it has to wait for others, or is dead. */
static bool step_rank(struct simulation *s, int r)
{
    struct rank *rank = &s->ranks[r];
    const struct instruction *in = &rank->program->code[rank->pc];

    if (rank->streams[COMPUTE_STREAM].now_ns >= rank->dies_ns)
        return false;
    switch (in->call) {
    case COMPUTE:
        rank->streams[COMPUTE_STREAM].now_ns +=
            compute_ns(s, r, in->compute_us);
        break;
    case WAIT:
        if (rank->events[in->event].pending)
            return false;
        join(rank, rank->events[in->event].at_ns);
        break;
    case MARK:
        mark(rank, in);
        break;
    default:
        if (is_left_out(s, r, in))
            break;
        if (!step_call(s, r, in))
            return false;
        rank->pc += ops_of(in) - (in->call != GROUP);
    }
    rank->issued = false;
    rank->pc++;
    return true;
}

static bool is_done(const struct rank *rank)
{
    int i;

    for (i = 0; i < STREAMS; i++)
        if (rank->streams[i].done < rank->streams[i].ntasks)
            return false;
    return rank->pc == rank->program->n;
}

static void end_run(struct rank *rank, bool hang)
{
    int i;

    rank->hangs = !is_done(rank);
    if (rank->hangs && !hang)
        abort(); /* a deadlock is a fault of the program above */
    for (i = 0; i < STREAMS; i++)
        rank->streams[i].done = rank->streams[i].ntasks = 0;
    rank->pc = 0;
}

void simulation_call(struct simulation *s,
                     void (*make)(struct program *p,
                                  const struct layout *layout, int rank,
                                  int number),
                     int number)
{
    int r;

    for (r = 0; r < s->layout->nranks; r++) {
        struct program *program = &s->programs[program_of(s->layout, r)];

        if (program->parts <= s->parts) {
            make(program, s->layout, r, number);
            program->parts = s->parts + 1;
        }
        s->ranks[r].program = program;
    }
    s->parts++;
}

void simulation_run(struct simulation *s)
{
    int r;

    for (r = 0; r < s->layout->nranks; r++)
        wake(s, r);
    while (s->nawake) {
        r = next_awake(s);
        begin_tasks(s, r);
        while (s->ranks[r].pc < s->ranks[r].program->n && step_rank(s, r))
            ;
    }
    for (r = 0; r < s->layout->nranks; r++)
        end_run(&s->ranks[r], may_hang(s->layout->options));
    for (r = 0; r < s->layout->nranks; r++)
        s->programs[r].n = 0;
}
