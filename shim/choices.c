#include "choices_parts.h"

#include "clock.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH_MAX = 1 << 15 };
enum { FEW_PLACES = PROFILER_EVENTS / 4 };
#define QUIET_NS INT64_C(50000000)
#define LATE_NS INT64_C(1000000000)

struct choices *choices_open(void)
{
    struct choices *choices = calloc(1, sizeof(*choices));
    if (choices && !(choices->captured = captured_open())) {
        free(choices);
        return NULL;
    }
    if (choices)
        choices->classes.last_id = -1; /* odd; those of the log are even */
    return choices;
}

void choices_close(struct choices *choices)
{
    if (!choices)
        return;
    for (size_t i = 0; i < choices->nknown; i++)
        if (choices->known[i])
            choices_free_known(choices->known[i]);
    while (choices->told) {
        struct told *next = choices->told->next;
        free(choices->told);
        choices->told = next;
    }
    free((void *)choices->known);
    captured_close(choices->captured);
    free(choices);
}

/* ---- communicators ---- */

static void meet_new(struct choices *choices)
{
    struct told **end = &choices->told;
    struct profiled *new = profiler_new_comms();
    while (new &&*end)
        end = &(*end)->next;
    choices->was_told |= new != NULL;
    while (new) {
        struct profiled *next = new->next;
        struct told *told = malloc(sizeof(*told));
        if (told) {
            *told = (struct told){.profiled = new};
            *end = told;
            end = &told->next;
        }
        new->reader = told;
        new = next;
    }
}

/* How well a communicator of the program's fits one that NCCL tells of: by
 * NCCL's number, which may repeat and is not known of all, and by the time. */
static int fits(const struct known *known, const struct profiled *profiled)
{
    if (profiled->told_id)
        return known->id == profiled->told_id;
    if (known->told || known->profiled || known->rank != profiled->rank ||
        known->nranks != profiled->nranks)
        return 0;
    bool by_hash = known->has_hash && known->hash == profiled->hash;
    bool by_time = known->enter_ns <= profiled->at_ns &&
                   profiled->at_ns <= known->ready_ns;
    return 2 * by_hash + by_time;
}

static void add_comm(const struct known *known, const struct profiled *profiled,
                     struct batch *batch)
{
    struct row *row = batch_add(batch, ROW_nccl_comm);
    if (!row)
        return;
    row->rowid = 2 * known->id + 1;
    row->u.nccl_comm = (struct row_nccl_comm){
        .comm = known->id,
        .hash = (int64_t)profiled->hash,
        .nodes = profiled->nodes,
        .local_ranks = CT_NULL,
        .mnnvl = CT_NULL,
        .channels = CT_NULL,
        .nvls_channels = CT_NULL,
        .p2p_channels = CT_NULL,
        .source = "plugin",
    };
}

static void join(struct choices *choices, struct told *told,
                 struct batch *batch)
{
    struct known *best = NULL;
    int most = 0;
    for (size_t i = 0; i < choices->nknown; i++) {
        struct known *known = choices->known[i];
        int fit = known ? fits(known, told->profiled) : 0;
        if (fit > most) {
            best = known;
            most = fit;
        }
    }
    if (!best)
        return;
    best->profiled = told->profiled;
    told->known = best;
    add_comm(best, told->profiled, batch);
}

static void join_new(struct choices *choices, struct batch *batch)
{
    meet_new(choices);
    for (struct told *told = choices->told; told; told = told->next)
        if (!told->known)
            join(choices, told, batch);
}

static void let_known_go(struct choices *choices, struct known *known)
{
    choices->known[known->id] = NULL;
    choices_free_known(known);
}

/* Those that are over and whose events are read. */
static void let_go(struct choices *choices)
{
    struct told **at = &choices->told, *told;
    uint64_t head = profiler_head(), tail = profiler_tail();
    while ((told = *at)) {
        /* Acquire: all of its events are in the queue. */
        if (!told->over &&
            atomic_load_explicit(&told->profiled->over, memory_order_acquire)) {
            told->over = true;
            told->end = profiler_head();
        }
        if (!told->over || tail < told->end) {
            at = &told->next;
            continue;
        }
        if (told->known)
            told->known->profiled = NULL;
        profiler_give_back(told->profiled);
        *at = told->next;
        free(told);
    }
    for (size_t i = 0; head == tail && i < choices->nknown; i++)
        if (choices->known[i] && choices->known[i]->forgotten &&
            !choices->known[i]->profiled)
            let_known_go(choices, choices->known[i]);
}

/* ---- events ---- */

static const struct expected *find_replay(struct known *known,
                                          const struct expected *like)
{
    const struct expected *call = expected_find(&known->replays, like);
    if (call)
        expected_drop_launches(&known->replays, call->launch);
    return call;
}

static const struct expected *find_call(struct known *known,
                                        const struct expected *like)
{
    return expected_find(&known->expected[like->kind], like);
}

/* NCCL's own texts may be unloaded; there are few of them. */
static const char *keep_word(struct choices *choices, const char *word)
{
    int i = 0;
    if (!*word)
        return NULL;
    while (i < CHOICE_WORDS && *choices->words[i] &&
           strcmp(choices->words[i], word) != 0)
        i++;
    if (i == CHOICE_WORDS)
        return NULL;
    if (!*choices->words[i])
        memcpy(choices->words[i], word, PROFILER_WORD);
    return choices->words[i];
}

static int64_t class_of(struct choices *choices, int64_t comm,
                        const struct profiler_event *event, struct batch *batch)
{
    const struct row_choice_class wanted = {
        .comm = comm,
        .kind = event->kind,
        .bytes = (int64_t)event->bytes,
        .peer = event->peer < 0 ? CT_NULL : event->peer,
        .algorithm = keep_word(choices, event->algorithm),
        .protocol = keep_word(choices, event->protocol),
        .channels = event->channels ? event->channels : CT_NULL,
        .source = "plugin",
    };
    return choice_classes_find(&choices->classes, &wanted, batch);
}

/* Where the graph is only supposed, the other way is tried as well. */
static void meet(struct choices *choices, const struct profiler_event *event,
                 struct reading *reading, struct known *known,
                 struct batch *batch)
{
    const struct expected like = {.bytes = event->bytes,
                                  .op = event->op,
                                  .peer = event->peer,
                                  .kind = event->kind};
    const struct expected *call =
        event->replay ? find_replay(known, &like) : find_call(known, &like);
    if (!call)
        call =
            event->replay ? find_call(known, &like) : find_replay(known, &like);
    reading->n = call ? call->n : CT_NULL;
    reading->launch = call && call->launch ? call->launch : CT_NULL;
    reading->class = class_of(choices, known->id, event, batch);
    reading->met = true;
}

static void store(struct reading *reading, const struct profiler_event *event,
                  bool complete, struct batch *batch)
{
    uint64_t begin =
        atomic_load_explicit(&event->begin_ns, memory_order_relaxed);
    uint64_t end = atomic_load_explicit(&event->end_ns, memory_order_relaxed);
    bool timed = complete && begin && end >= begin;
    struct row *row = batch_add(batch, ROW_choice);
    if (!row)
        return;
    row->u.choice = (struct row_choice){
        .id = 2 * (int64_t)(reading->position - 1) + 1,
        .class = reading->class,
        .n = reading->n,
        .launch = reading->launch,
        .start_ns = timed ? (int64_t)begin : CT_NULL,
        .gpu_ns = timed ? (int64_t)(end - begin) : CT_NULL,
    };
    reading->stored = true;
}

/* All channels have ended; some releases say a wrong number of them, so quiet
 * will do. */
static bool is_complete(struct reading *reading,
                        const struct profiler_event *event)
{
    if (!profiler_times_kernels())
        return true;
    uint32_t ended = atomic_load_explicit(&event->ended, memory_order_acquire);
    uint32_t begun = atomic_load_explicit(&event->begun, memory_order_relaxed);
    if (!ended || ended < begun)
        return false;
    if (event->channels && ended >= event->channels)
        return true;
    int64_t now = clock_ns();
    if (ended != reading->ended) {
        reading->ended = ended;
        reading->since_ns = now;
    }
    return now - reading->since_ns > QUIET_NS;
}

static struct reading *reading_of(struct choices *choices, uint64_t position)
{
    struct reading *reading = &choices->readings[position % PROFILER_EVENTS];
    if (reading->position != position + 1)
        *reading = (struct reading){.position = position + 1};
    return reading;
}

static void release(struct reading *reading)
{
    reading->released = profiler_release(reading->position - 1);
}

struct adding {
    struct choices *choices;
    struct batch *batch;
    uint64_t next;
    uint64_t head;
    bool force, last;
};

/* False: its call is not known yet, nor are those after it. */
static bool add_event(const struct adding *adding, struct reading *reading,
                      struct profiler_event *event)
{
    struct choices *choices = adding->choices;
    struct told *told = event->comm->reader;
    if (!reading->met && event->after > adding->next && !adding->last)
        return false;
    if (!told || !told->known) {
        choices->losses.strangers++;
        release(reading);
        return true;
    }
    if (!reading->met)
        meet(choices, event, reading, told->known, adding->batch);
    bool complete = is_complete(reading, event);
    bool scarce =
        adding->head - reading->position > PROFILER_EVENTS - FEW_PLACES;
    bool give_up = adding->last || scarce;
    if (complete || ((adding->force || give_up) && !reading->stored))
        store(reading, event, complete, adding->batch);
    if (complete || give_up) {
        release(reading);
        choices->losses.untimed += !complete && reading->released;
    }
    return true;
}

/* A thread that died while it wrote an event leaves it as it is. */
static bool is_given_up(struct reading *reading)
{
    int64_t now = clock_ns();
    if (!reading->since_ns)
        reading->since_ns = now;
    return now - reading->since_ns > LATE_NS;
}

void choices_add(struct choices *choices, uint64_t next, bool force, bool last,
                 struct batch *batch)
{
    struct adding adding = {choices, batch, next, profiler_head(), force, last};
    join_new(choices, batch);
    for (uint64_t at = profiler_tail();
         at != adding.head && batch->n < BATCH_MAX; at++) {
        struct reading *reading = reading_of(choices, at);
        if (reading->released)
            continue;
        struct profiler_event *event = profiler_look(at);
        if (event ? !add_event(&adding, reading, event) : !is_given_up(reading))
            break;
    }
    let_go(choices);
}

uint64_t choices_discard(struct choices *choices)
{
    uint64_t n = 0, head = profiler_head();
    meet_new(choices);
    for (uint64_t at = profiler_tail(); at != head; at++) {
        struct reading *reading = reading_of(choices, at);
        if (!reading->released && profiler_look(at)) {
            n += !reading->stored;
            release(reading);
        }
    }
    let_go(choices);
    return n;
}

bool choices_wait(const struct choices *choices)
{
    uint64_t head = profiler_head();
    if (!profiler_times_kernels())
        return false;
    for (uint64_t at = profiler_tail(); at != head; at++) {
        const struct reading *reading =
            &choices->readings[at % PROFILER_EVENTS];
        const struct profiler_event *event = profiler_look(at);
        if (event && !(reading->position == at + 1 && reading->released))
            return true;
    }
    return false;
}

bool choices_are_untold(const struct choices *choices)
{
    return choices->nknown && !choices->was_told;
}

struct choices_losses choices_losses(const struct choices *choices)
{
    return choices ? choices->losses : (struct choices_losses){0};
}
