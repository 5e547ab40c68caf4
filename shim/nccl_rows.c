#include "nccl_rows.h"

#include "absence.h"
#include "hash.h"
#include "nccl_file.h"
#include "nccl_log.h"

#include "commtrace/ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    SETS = 4096,       /* communicators remembered */
    BIRTHS = 4096,     /* and those that the log has not told of */
    WAITING = 1 << 16, /* rows whose communicator is not known yet */
    WORDS = 2048,
    MESSAGES = 512,
    CLASSES = 4096,
    COMMS = 4096, /* by comm.id, the newest */
    CALLS = 8192, /* by op_class.id, the newest */
    PIECE = 1 << 16,
    BATCH_MOST = 1 << 15
};

/* A row without its communicator. */
struct waiting {
    struct waiting *next;
    struct row row;
};

/* One communicator as the log tells of it. */
struct set {
    uint64_t pointer;
    unsigned birth;
    int copy;
    int64_t comm; /* -> comm.id; 0: not known yet */
    bool complete;
    bool changed;   /* since its row was added */
    unsigned looks; /* while rows wait */
    struct row_nccl_comm about;
    int rank, nranks;
    struct waiting *first, **end;
    int64_t *choices; /* so far, by kind; the last: of no known kind */
};

/* One as the program got it, until the log has told of it. */
struct born {
    int64_t comm;
    uint64_t pointer;
    int copy;
    int rank, nranks;
};

struct message {
    char *text;
    const char *kind;
    int64_t comm;
    int64_t n, told;
};

struct class
{
    int64_t id; /* 0: free */
    struct row_choice_class row;
};

/* Where a communicator of the program's was. */
struct place {
    int64_t comm;
    uint64_t pointer;
    int copy;
    int64_t nranks;
};

/* What calls of a class are to NCCL. */
struct call {
    int64_t class;
    int64_t comm;
    int op;
    int64_t share; /* bytes of a rank */
};

/* What is read of one copy of NCCL. */
struct reading {
    struct nccl_rows *rows;
    int copy;
    struct nccl_log *log;
    bool told_absence;
    uint64_t told_unknown;
};

struct nccl_rows {
    struct reading of[NCCL_COPIES];
    struct batch *batch; /* while there is one */
    struct set *sets[SETS];
    unsigned nsets;
    struct born births[BIRTHS];
    unsigned nbirths;
    unsigned nwaiting;
    struct place places[COMMS];
    struct call calls[CALLS];
    int64_t last_op;
    char *words[WORDS];
    struct message messages[MESSAGES];
    unsigned nmessages;
    int64_t more_messages, told_more;
    struct class *classes; /* by hash; NULL: nothing was chosen yet */
    unsigned nclasses;
    int64_t last_class, last_choice;
    char bytes[PIECE];
};

static int64_t or_null(int64_t number)
{
    return number == NCCL_LOG_UNKNOWN ? CT_NULL : number;
}

/* The text once for all rows; they all point to it. */
static const char *word(struct nccl_rows *rows, const char *text)
{
    if (!text || !*text)
        return NULL;
    unsigned at = (unsigned)(hash_bytes(0, text, strlen(text)) % WORDS);
    for (unsigned i = 0; i < WORDS; i++, at = (at + 1) % WORDS) {
        if (!rows->words[at])
            return rows->words[at] = strdup(text);
        if (!strcmp(rows->words[at], text))
            return rows->words[at];
    }
    return "(more words than are kept)";
}

/* Communicators. */

static void add_message(struct nccl_rows *rows, const struct row *row);

/* What still waits is of nobody; messages are worth telling even so. */
static void free_set(struct nccl_rows *rows, struct set *set)
{
    while (set->first) {
        struct waiting *next = set->first->next;
        if (set->first->row.table == ROW_nccl_message)
            add_message(rows, &set->first->row);
        free(set->first);
        set->first = next;
        rows->nwaiting--;
    }
    free(set->choices);
    free(set);
}

/* The oldest makes room: most likely nothing is said of it any more. */
static void forget_set(struct nccl_rows *rows)
{
    free_set(rows, rows->sets[0]);
    rows->nsets--;
    memmove((void *)rows->sets, (void *)(rows->sets + 1),
            rows->nsets * sizeof(*rows->sets));
}

static struct set *find_set(struct nccl_rows *rows, int copy,
                            const struct nccl_log_name *name)
{
    for (unsigned i = rows->nsets; i > 0; i--) {
        struct set *set = rows->sets[i - 1];
        if (set->pointer == name->pointer && set->birth == name->birth &&
            set->copy == copy)
            return set;
    }
    return NULL;
}

static struct set *obtain_set(struct nccl_rows *rows, int copy,
                              const struct nccl_log_name *name)
{
    struct set *set = find_set(rows, copy, name);
    if (set)
        return set;
    set = calloc(1, sizeof(*set));
    if (!set)
        return NULL;
    if (rows->nsets == SETS)
        forget_set(rows);
    set->pointer = name->pointer;
    set->birth = name->birth;
    set->copy = copy;
    set->end = &set->first;
    return rows->sets[rows->nsets++] = set;
}

static bool is_of(const struct born *born, const struct set *set)
{
    return born->pointer == set->pointer && born->copy == set->copy &&
           (set->rank < 0 || born->rank == set->rank) &&
           (set->nranks < 0 || born->nranks == set->nranks);
}

static void add_row(struct nccl_rows *rows, const struct row *row)
{
    if (row->table == ROW_nccl_message)
        add_message(rows, row);
    else if (rows->batch)
        batch_add_row(rows->batch, row);
}

static void name_row(struct row *row, int64_t comm)
{
    /* The first column of all these. */
    switch (row->table) {
    case ROW_conn:
        row->u.conn.comm = comm;
        break;
    case ROW_ring:
        row->u.ring.comm = comm;
        break;
    case ROW_tree:
        row->u.tree.comm = comm;
        break;
    case ROW_nccl_graph:
        row->u.nccl_graph.comm = comm;
        break;
    case ROW_tuning:
        row->u.tuning.comm = comm;
        break;
    case ROW_choice_class:
        row->u.choice_class.comm = comm;
        break;
    default:
        row->u.nccl_message.comm = comm;
    }
}

static void tell_waiting(struct nccl_rows *rows, struct set *set)
{
    struct waiting *waiting = set->first;
    set->first = NULL;
    set->end = &set->first;
    while (waiting) {
        struct waiting *next = waiting->next;
        name_row(&waiting->row, set->comm);
        add_row(rows, &waiting->row);
        free(waiting);
        rows->nwaiting--;
        waiting = next;
    }
}

/* One at the same address has to be found first. */
static bool has_elder(const struct nccl_rows *rows, const struct set *set)
{
    unsigned i = 0;
    while (rows->sets[i] != set &&
           (rows->sets[i]->comm || !rows->sets[i]->complete ||
            rows->sets[i]->pointer != set->pointer ||
            rows->sets[i]->copy != set->copy))
        i++;
    return rows->sets[i] != set;
}

/* The log's and the program's, each in their order. */
static void join(struct nccl_rows *rows, struct set *set)
{
    for (unsigned i = 0; i < rows->nbirths && !has_elder(rows, set); i++) {
        if (!is_of(&rows->births[i], set))
            continue;
        set->comm = rows->births[i].comm;
        set->changed = true;
        rows->nbirths--;
        memmove(&rows->births[i], &rows->births[i + 1],
                (rows->nbirths - i) * sizeof(*rows->births));
        tell_waiting(rows, set);
        return;
    }
}

void nccl_rows_meet(struct nccl_rows *rows, const struct comm_facts *facts)
{
    if (!rows || nccl_file_absence((int)facts->row.library - 1))
        return;
    rows->places[facts->row.id % COMMS] = (struct place){
        .comm = facts->row.id,
        .pointer = (uintptr_t)facts->key,
        .copy = (int)facts->row.library - 1,
        .nranks = facts->row.nranks,
    };
    if (rows->nbirths == BIRTHS) {
        rows->nbirths--;
        memmove(&rows->births[0], &rows->births[1],
                rows->nbirths * sizeof(*rows->births));
    }
    rows->births[rows->nbirths++] = (struct born){
        .comm = facts->row.id,
        .pointer = (uintptr_t)facts->key,
        .copy = (int)facts->row.library - 1,
        .rank = (int)facts->row.rank,
        .nranks = (int)facts->row.nranks,
    };
}

static void join_all(struct nccl_rows *rows)
{
    for (unsigned i = 0; rows->nbirths && i < rows->nsets; i++)
        if (rows->sets[i]->complete && !rows->sets[i]->comm)
            join(rows, rows->sets[i]);
}

static void learn_comm(struct reading *reading,
                       const struct nccl_log_fact *fact)
{
    struct nccl_rows *rows = reading->rows;
    const struct nccl_log_comm *about = &fact->about;
    struct set *set = obtain_set(rows, reading->copy, &fact->comm);
    if (!set)
        return;
    set->rank = about->rank;
    set->nranks = about->nranks;
    set->complete |= about->phase == NCCL_LOG_COMPLETE;
    set->changed = true;
    set->about = (struct row_nccl_comm){
        .hash = about->hash ? (int64_t)about->hash : CT_NULL,
        .nodes = or_null(about->nodes),
        .local_ranks = or_null(about->local_ranks),
        .mnnvl = or_null(about->mnnvl),
        .channels = or_null(about->channels),
        .nvls_channels = or_null(about->nvls_channels),
        .p2p_channels = or_null(about->p2p_channels),
        .network = word(rows, about->network),
        .source = "log",
    };
    if (set->complete && !set->comm)
        join(rows, set);
}

static void tell_comms(struct nccl_rows *rows)
{
    for (unsigned i = 0; i < rows->nsets; i++) {
        struct set *set = rows->sets[i];
        struct row row = {.table = ROW_nccl_comm, .rowid = 2 * set->comm};
        if (!set->changed || !set->comm)
            continue;
        set->about.comm = set->comm;
        row.u.nccl_comm = set->about;
        add_row(rows, &row);
        set->changed = false;
    }
}

/* A set-up may hang, and what NCCL warns of then is worth more than to know of
 * which communicator. */
static void tell_impatient(struct nccl_rows *rows, struct set *set)
{
    struct waiting **at = &set->first;
    while (*at) {
        struct waiting *waiting = *at;
        if (waiting->row.table != ROW_nccl_message) {
            at = &waiting->next;
            continue;
        }
        *at = waiting->next;
        add_message(rows, &waiting->row);
        free(waiting);
        rows->nwaiting--;
    }
    set->end = at;
}

static void tell_all_impatient(struct nccl_rows *rows, bool last)
{
    enum { PATIENCE = 4 };
    for (unsigned i = 0; rows->nwaiting && i < rows->nsets; i++)
        if (rows->sets[i]->first &&
            (++rows->sets[i]->looks >= PATIENCE || last))
            tell_impatient(rows, rows->sets[i]);
}

/* A row of a communicator, when it is known. */
static void put(struct reading *reading, const struct nccl_log_fact *fact,
                struct row *row)
{
    struct nccl_rows *rows = reading->rows;
    struct set *set = fact->comm.pointer && !fact->comm.likely
                          ? obtain_set(rows, reading->copy, &fact->comm)
                          : NULL; /* else one of several */
    if (set && !set->comm && rows->nwaiting < WAITING) {
        struct waiting *waiting = malloc(sizeof(*waiting));
        if (!waiting)
            return;
        *waiting = (struct waiting){.row = *row};
        name_row(&waiting->row, CT_NULL);
        *set->end = waiting;
        set->end = &waiting->next;
        rows->nwaiting++;
        return;
    }
    name_row(row, set && set->comm ? set->comm : CT_NULL);
    add_row(rows, row);
}

/* The facts, one by one. */

static void put_conn(struct reading *reading, const struct nccl_log_fact *fact)
{
    static const char *const directions[] = {NULL, "send", "receive"};
    const struct nccl_log_conn *conn = &fact->conn;
    struct row row = {.table = ROW_conn, .rowid = CT_NULL};
    row.u.conn = (struct row_conn){
        .channel = or_null(conn->channel),
        .connector = or_null(conn->connector),
        .src = or_null(conn->src),
        .dst = or_null(conn->dst),
        .direction = directions[conn->end],
        .via = word(reading->rows, conn->via),
    };
    put(reading, fact, &row);
}

static void put_ring(struct reading *reading, const struct nccl_log_fact *fact)
{
    struct row row = {.table = ROW_ring, .rowid = CT_NULL};
    row.u.ring = (struct row_ring){
        .channel = fact->ring.channel,
        .prev = or_null(fact->ring.prev),
        .next = or_null(fact->ring.next),
    };
    put(reading, fact, &row);
}

static void put_tree(struct reading *reading, const struct nccl_log_fact *fact)
{
    const struct nccl_log_tree *tree = &fact->tree;
    struct row row = {.table = ROW_tree, .rowid = CT_NULL};
    row.u.tree = (struct row_tree){
        .channel = tree->channel,
        .up = or_null(tree->up),
        .down0 = or_null(tree->down[0]),
        .down1 = or_null(tree->down[1]),
        .down2 = or_null(tree->down[2]),
    };
    put(reading, fact, &row);
}

static void put_graph(struct reading *reading, const struct nccl_log_fact *fact)
{
    const struct nccl_log_graph *graph = &fact->graph;
    struct row row = {.table = ROW_nccl_graph, .rowid = CT_NULL};
    row.u.nccl_graph = (struct row_nccl_graph){
        .pattern = or_null(graph->pattern),
        .channels = or_null(graph->channels),
        .intra_GBps = graph->intra_GBps,
        .inter_GBps = graph->inter_GBps,
        .intra_type = word(reading->rows, graph->intra_type),
        .inter_type = word(reading->rows, graph->inter_type),
    };
    put(reading, fact, &row);
}

static void put_tuning(struct reading *reading,
                       const struct nccl_log_fact *fact)
{
    const struct nccl_log_tuning *tuning = &fact->tuning;
    struct row row = {.table = ROW_tuning, .rowid = CT_NULL};
    row.u.tuning = (struct row_tuning){
        .kind = or_null(tuning->op),
        .algorithm = word(reading->rows, tuning->algorithm),
        .protocol = word(reading->rows, tuning->protocol),
        .latency_us = tuning->latency_us,
        .algbw_GBps = tuning->algbw_GBps,
    };
    put(reading, fact, &row);
}

static void put_message(struct reading *reading,
                        const struct nccl_log_fact *fact)
{
    struct row row = {.table = ROW_nccl_message, .rowid = CT_NULL};
    char *text = strdup(fact->message.text);
    if (!text)
        return;
    row.u.nccl_message = (struct row_nccl_message){
        .kind = word(reading->rows, fact->message.kind), .n = 1, .text = text};
    put(reading, fact, &row);
}

/* Takes the text. */
static void add_message(struct nccl_rows *rows, const struct row *row)
{
    const struct row_nccl_message *new = &row->u.nccl_message;
    char *text = (char *)(uintptr_t) new->text;
    unsigned i = 0;
    while (i < rows->nmessages && (rows->messages[i].kind != new->kind ||
                                   strcmp(rows->messages[i].text, text) != 0))
        i++;
    struct message *message = &rows->messages[i];
    if (i == MESSAGES) {
        rows->more_messages++;
        free(text);
    } else if (i == rows->nmessages) {
        *message = (struct message){text, new->kind, new->comm, 1, 0};
        rows->nmessages++;
    } else {
        if (message->comm != new->comm)
            message->comm = CT_NULL;
        message->n++;
        free(text);
    }
}

static void tell_message(struct nccl_rows *rows, int64_t rowid,
                         const struct row_nccl_message *message)
{
    struct row row = {.table = ROW_nccl_message, .rowid = rowid};
    row.u.nccl_message = *message;
    if (rows->batch)
        batch_add_row(rows->batch, &row);
}

enum { MORE_ROW = NCCL_COPIES + 1, FIRST_MESSAGE_ROW };

static void tell_messages(struct nccl_rows *rows)
{
    for (unsigned i = 0; i < rows->nmessages; i++) {
        struct message *message = &rows->messages[i];
        if (message->told == message->n)
            continue;
        message->told = message->n;
        tell_message(rows, FIRST_MESSAGE_ROW + i,
                     &(struct row_nccl_message){message->comm, message->kind,
                                                message->n, message->text});
    }
    if (rows->told_more == rows->more_messages)
        return;
    rows->told_more = rows->more_messages;
    tell_message(rows, MORE_ROW,
                 &(struct row_nccl_message){CT_NULL, "unknown",
                                            rows->more_messages,
                                            "more messages than are kept"});
}

/* Choices. */

static bool is_class(const struct row_choice_class *a,
                     const struct row_choice_class *b)
{
    return a->comm == b->comm && a->kind == b->kind && a->bytes == b->bytes &&
           a->algorithm == b->algorithm && a->protocol == b->protocol &&
           a->channels == b->channels;
}

static uint64_t hash_class(const struct row_choice_class *row)
{
    uint64_t hash = hash_add((uint64_t)row->comm, (uint64_t)row->kind);
    hash = hash_add(hash, (uint64_t)row->bytes);
    hash = hash_add(hash, (uintptr_t)row->algorithm);
    hash = hash_add(hash, (uintptr_t)row->protocol);
    return hash_add(hash, (uint64_t)row->channels);
}

/* When the table is full it is emptied: a class may then have more numbers than
 * one. */
static int64_t class_of(struct nccl_rows *rows,
                        const struct row_choice_class *wanted)
{
    if (!rows->classes &&
        !(rows->classes = calloc(CLASSES, sizeof(struct class))))
        return CT_NULL;
    if (rows->nclasses > CLASSES / 2) {
        memset(rows->classes, 0, CLASSES * sizeof(*rows->classes));
        rows->nclasses = 0;
    }
    unsigned at = (unsigned)(hash_class(wanted) % CLASSES);
    while (rows->classes[at].id && !is_class(&rows->classes[at].row, wanted))
        at = (at + 1) % CLASSES;
    struct class *class = &rows->classes[at];
    if (!class->id) {
        struct row row = {.table = ROW_choice_class, .rowid = CT_NULL};
        class->id = rows->last_class += 2;
        class->row = *wanted;
        class->row.id = class->id;
        row.u.choice_class = class->row;
        rows->nclasses++;
        add_row(rows, &row);
    }
    return class->id;
}

/* Of communicators that are set up: before that nothing is chosen. */
static void put_choice(struct reading *reading,
                       const struct nccl_log_fact *fact)
{
    const struct nccl_log_choice *choice = &fact->choice;
    struct nccl_rows *rows = reading->rows;
    struct set *set =
        fact->comm.pointer ? find_set(rows, reading->copy, &fact->comm) : NULL;
    if (!set || !set->comm)
        return;
    if (!set->choices &&
        !(set->choices = calloc(CT_OP_COUNT + 1, sizeof(*set->choices))))
        return;
    int kind =
        choice->op >= 0 && choice->op < CT_OP_COUNT ? choice->op : CT_OP_COUNT;
    struct row row = {.table = ROW_choice, .rowid = CT_NULL};
    row.u.choice = (struct row_choice){
        .id = rows->last_choice += 2,
        .class = class_of(rows,
                          &(struct row_choice_class){
                              .comm = set->comm,
                              .kind = or_null(choice->op),
                              .bytes = choice->bytes,
                              .peer = CT_NULL,
                              .algorithm = word(rows, choice->algorithm),
                              .protocol = word(rows, choice->protocol),
                              .channels = or_null(choice->channels),
                              .source = "log",
                          }),
        .n = set->choices[kind]++,
        .launch = CT_NULL,
        .start_ns = CT_NULL,
        .gpu_ns = CT_NULL,
    };
    add_row(rows, &row);
}

/* The program's calls, which lines that name no communicator are about. */

static int64_t type_bytes(int64_t type)
{
    static const int64_t bytes[CT_TYPE_COUNT] = {
#define TYPE(id_, value_, name_, bytes_) [value_] = (bytes_),
#include "commtrace/nccl_types.def"
    };
    return type >= 0 && type < CT_TYPE_COUNT ? bytes[type] : 1;
}

static bool is_one_sided(int op)
{
    static const unsigned char class_of_op[CT_OP_COUNT] = {
#define OP(id_, name_, fn_, since_, base_, class_, ...) \
    [CT_OP_##id_] = CT_##class_,
#include "commtrace/nccl_ops.def"
    };
    return class_of_op[op] == CT_ONE_SIDED;
}

static int64_t whole(const struct call *call, int64_t nranks)
{
    static const unsigned char size_of_op[CT_OP_COUNT] = {
#define OP(id_, name_, fn_, since_, base_, class_, size_, ...) \
    [CT_OP_##id_] = CT_##size_,
#include "commtrace/nccl_ops.def"
    };
    return size_of_op[call->op] == CT_ALL_SHARES ? nranks * call->share
                                                 : call->share;
}

static void tell_call(struct nccl_rows *rows, const struct call *call,
                      bool choices)
{
    const struct place *place = &rows->places[call->comm % COMMS];
    if (place->comm != call->comm || place->nranks < 2 || call->share <= 0 ||
        is_one_sided(call->op))
        return;
    struct nccl_log *log = rows->of[place->copy].log;
    if (log && nccl_file_has_choices(place->copy) == choices)
        nccl_log_called(log, place->pointer, call->op, call->share,
                        whole(call, place->nranks));
}

/* A new class is the first call of its kind, which may connect ranks; later
 * ones matter to choices alone. */
static void take_class(struct nccl_rows *rows, const struct row_op_class *row)
{
    struct call *call = &rows->calls[row->id % CALLS];
    *call = (struct call){
        .class = row->id,
        .comm = row->comm,
        .op = (int)row->kind,
        .share = row->count * type_bytes(row->type),
    };
    tell_call(rows, call, false);
}

static void take_op(struct nccl_rows *rows, const struct row_op *row)
{
    const struct call *call = &rows->calls[row->class % CALLS];
    if (row->id <= rows->last_op) /* its end is told */
        return;
    rows->last_op = row->id;
    if (call->class == row->class)
        tell_call(rows, call, true);
}

static void take_calls(struct nccl_rows *rows, const struct batch *batch,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct row *row = &batch->rows[i];
        if (row->table == ROW_op_class)
            take_class(rows, &row->u.op_class);
        else if (row->table == ROW_op)
            take_op(rows, &row->u.op);
    }
}

static void take(void *arg, const struct nccl_log_fact *fact)
{
    switch (fact->kind) {
    case NCCL_LOG_COMM:
        learn_comm(arg, fact);
        break;
    case NCCL_LOG_CONN:
        put_conn(arg, fact);
        break;
    case NCCL_LOG_RING:
        put_ring(arg, fact);
        break;
    case NCCL_LOG_TREE:
        put_tree(arg, fact);
        break;
    case NCCL_LOG_GRAPH:
        put_graph(arg, fact);
        break;
    case NCCL_LOG_TUNING:
        put_tuning(arg, fact);
        break;
    case NCCL_LOG_CHOICE:
        put_choice(arg, fact);
        break;
    case NCCL_LOG_MESSAGE:
        put_message(arg, fact);
    }
}

/* Reading. */

static bool is_full(const struct nccl_rows *rows)
{
    return rows->batch && rows->batch->n >= BATCH_MOST;
}

static void open_log(struct reading *reading)
{
    if (reading->log)
        return;
    reading->log = nccl_log_open(nccl_file_pid(reading->copy),
                                 nccl_file_host(reading->copy), take, reading);
    if (reading->log)
        nccl_log_expect_calls(reading->log);
}

static size_t read_log(struct reading *reading)
{
    struct nccl_rows *rows = reading->rows;
    size_t n, all = 0;
    while (!is_full(rows) &&
           (n = nccl_file_read(reading->copy, rows->bytes, PIECE)) > 0) {
        open_log(reading);
        if (reading->log)
            nccl_log_feed(reading->log, rows->bytes, n);
        all += n;
    }
    return all;
}

static void tell_absence(struct reading *reading)
{
    const char *why = nccl_file_absence(reading->copy);
    if (!why || !*why || reading->told_absence || !reading->rows->batch)
        return;
    absence_add(reading->rows->batch, "nccl_log", why);
    reading->told_absence = true;
}

static void tell_unknown(struct reading *reading)
{
    if (!reading->log)
        return;
    uint64_t n = nccl_log_counted(reading->log)->unknown;
    if (n == reading->told_unknown)
        return;
    reading->told_unknown = n;
    tell_message(reading->rows, reading->copy + 1,
                 &(struct row_nccl_message){CT_NULL, "unknown", (int64_t)n,
                                            "lines in no known shape"});
}

void nccl_rows_add(struct nccl_rows *rows, struct batch *batch, bool last)
{
    if (!rows)
        return;
    size_t calls = batch->n, came = 0;
    rows->batch = batch;
    join_all(rows);
    for (int i = 0; i < NCCL_COPIES; i++)
        came += read_log(&rows->of[i]);
    take_calls(rows, batch, calls);
    for (int i = 0; i < NCCL_COPIES; i++)
        if (rows->of[i].log && (came == 0 || last))
            nccl_log_flush(rows->of[i].log, last);
    join_all(rows);
    tell_all_impatient(rows, last);
    tell_comms(rows);
    tell_messages(rows);
    for (int i = 0; i < NCCL_COPIES; i++) {
        tell_absence(&rows->of[i]);
        tell_unknown(&rows->of[i]);
    }
    rows->batch = NULL;
}

void nccl_rows_discard(struct nccl_rows *rows)
{
    if (!rows)
        return;
    for (int i = 0; i < NCCL_COPIES; i++)
        while (nccl_file_read(i, rows->bytes, PIECE) > 0)
            ;
}

struct nccl_rows *nccl_rows_open(void)
{
    struct nccl_rows *rows = calloc(1, sizeof(*rows));
    for (int i = 0; rows && i < NCCL_COPIES; i++) {
        rows->of[i].rows = rows;
        rows->of[i].copy = i;
    }
    return rows;
}

void nccl_rows_close(struct nccl_rows *rows)
{
    if (!rows)
        return;
    for (int i = 0; i < NCCL_COPIES; i++)
        if (rows->of[i].log)
            nccl_log_close(rows->of[i].log);
    for (unsigned i = 0; i < rows->nsets; i++)
        free_set(rows, rows->sets[i]);
    for (unsigned i = 0; i < WORDS; i++)
        free(rows->words[i]);
    for (unsigned i = 0; i < rows->nmessages; i++)
        free(rows->messages[i].text);
    free(rows->classes);
    free(rows);
}
