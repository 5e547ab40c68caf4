/*
 * What a line of NCCL's log says. Formats: INFO() in NCCL's src/init.cc,
 * graph/{connect,search}.cc, rings.cc and transport/{p2p,shm,net,coll_net}.cc,
 * releases 2.4 to 2.31.
 */
#include "nccl_log_state.h"

#include <ctype.h>

void log_message(const struct log_line *line, const char *kind)
{
    struct nccl_log_fact fact = {.kind = NCCL_LOG_MESSAGE};
    text_copy(line->log->text, sizeof(line->log->text), line->text);
    fact.message.kind = kind;
    fact.message.text = line->log->text;
    log_tell(line, &fact, NCCL_LOG_UNKNOWN);
}

/* Connections. */

static bool is_via(struct text via)
{
    static const char *const transports[] = {
        "P2P/", "SHM", "NET/", "COLLNET/", "NVLS", "direct shared memory"};
    for (size_t i = 0; i < LOG_SIZE(transports); i++)
        if (text_starts(via, transports[i]))
            return true;
    return false;
}

/* Up to what is not of it: RCCL names the communicator behind it. */
static struct text via_of(struct text text)
{
    for (const char *at = text.at; at + 1 < text.end; at++)
        if (at[0] == '\t' || (at[0] == ' ' && at[1] == ' '))
            text.end = at;
    const char *comm = text_find(text, " comm 0x");
    if (comm)
        text.end = comm;
    while (text.end > text.at && text.end[-1] == ' ')
        text.end--;
    return text;
}

static bool tell_conn(const struct log_line *line, struct nccl_log_conn *conn,
                      struct text rest)
{
    struct text via = via_of(rest);
    if (!is_via(via))
        return false;
    bool old_shm = text_starts(via, "direct");
    if (old_shm)
        memcpy(conn->via, "SHM/", 4);
    text_copy(conn->via + 4 * old_shm, sizeof(conn->via) - 4 * old_shm, via);
    struct nccl_log_fact fact = {.kind = NCCL_LOG_CONN, .conn = *conn};
    log_tell(line, &fact,
             conn->end == NCCL_LOG_RECEIVE ? conn->dst : conn->src);
    return true;
}

static enum nccl_log_end take_end(struct text *text)
{
    if (text_scan(text, "[send] "))
        return NCCL_LOG_SEND;
    if (text_scan(text, "[receive] "))
        return NCCL_LOG_RECEIVE;
    return NCCL_LOG_BOTH;
}

/* "0[1000] -> 1[0] [send] via ..."; what is in brackets is a device or a bus
 * number, and missing in 2.4. */
static bool take_way(const struct log_line *line, struct text text,
                     struct nccl_log_conn *conn)
{
    uint64_t place;
    if (!text_scan(&text, "%d", &conn->src))
        return false;
    text_scan(&text, "[%x]", &place);
    if (!text_scan(&text, " -> %d", &conn->dst))
        return false;
    text_scan(&text, "[%x]", &place);
    text_scan(&text, " ");
    conn->end = take_end(&text);
    return text_scan(&text, "via ") && tell_conn(line, conn, text);
}

static bool tell_ring(const struct log_line *line, int channel, int prev,
                      int rank, int next)
{
    struct nccl_log_fact fact = {
        .kind = NCCL_LOG_RING,
        .ring = {.channel = channel, .prev = prev, .next = next},
    };
    log_tell(line, &fact, rank);
    return true;
}

/* "Channel 00/08 : 0 1 2 3": a whole ring, which starts with the rank that
 * says it. Where there are many ranks, it is cut off. */
static bool take_order(const struct log_line *line, struct text text,
                       int channel)
{
    int first, second, rank = NCCL_LOG_UNKNOWN, n = 2;
    if (!text_scan(&text, " %d", &first))
        return false;
    if (!text_scan(&text, " %d", &second))
        return true;
    for (rank = second; text_scan(&text, " %d", &rank);)
        n++;
    const struct log_comm *comm = log_setting_up(line);
    if (comm && comm->about.nranks == n)
        tell_ring(line, channel, rank, first, second);
    return true;
}

static bool take_channel(struct log_line *line, struct text text)
{
    struct nccl_log_conn conn = {.connector = NCCL_LOG_UNKNOWN};
    if (!text_scan(&text, "Channel %d", &conn.channel))
        return false;
    text_scan(&text, "/%d", &conn.connector);
    if (!text_scan(&text, " :"))
        return false;
    struct text order = text;
    if (text_scan(&text, " ") && take_way(line, text, &conn))
        return true;
    return text_find(order, ">") == NULL &&
           take_order(line, order, conn.channel);
}

/* "Ring 00 : 3 -> 0 -> 1", or before 2.7 a connection. */
static bool take_ring(struct log_line *line, struct text text)
{
    struct nccl_log_conn conn = {.connector = 0};
    int prev, rank, next;
    if (!text_scan(&text, "Ring %d : ", &conn.channel))
        return false;
    struct text way = text;
    if (text_scan(&text, "%d -> %d -> %d", &prev, &rank, &next))
        return tell_ring(line, conn.channel, prev, rank, next);
    line->thread->opening |= !log_setting_up(line);
    return take_way(line, way, &conn);
}

/* "CollNet 00/0 : 3 [send] via COLLNET/SHARP/0": to the switch. */
static bool take_collnet(struct log_line *line, struct text text)
{
    struct nccl_log_conn conn = {.connector = NCCL_LOG_UNKNOWN};
    int rank;
    if (!text_scan(&text, "CollNet %d", &conn.channel) &&
        !text_scan(&text, "Coll %d", &conn.channel))
        return false;
    text_scan(&text, "/%d", &conn.connector);
    if (!text_scan(&text, " : %d ", &rank))
        return false;
    conn.end = take_end(&text);
    conn.src = conn.end == NCCL_LOG_RECEIVE ? NCCL_LOG_UNKNOWN : rank;
    conn.dst = conn.end == NCCL_LOG_RECEIVE ? rank : NCCL_LOG_UNKNOWN;
    return text_scan(&text, "via ") && tell_conn(line, &conn, text);
}

/* Trees. */

static bool tell_tree(const struct log_line *line, int rank,
                      const struct nccl_log_tree *tree)
{
    struct nccl_log_fact fact = {.kind = NCCL_LOG_TREE, .tree = *tree};
    log_tell(line, &fact, rank);
    return true;
}

/* "Tree 0 : -1 -> 0 -> 1/2/-1" */
static bool take_tree(struct log_line *line, struct text text)
{
    struct nccl_log_tree tree;
    int rank, *down = tree.down;
    return text_scan(&text, "Tree %d : %d -> %d -> %d/%d/%d", &tree.channel,
                     &tree.up, &rank, &down[0], &down[1], &down[2]) &&
           tell_tree(line, rank, &tree);
}

/* One tree of the line below. From 2.5 to 2.7 there are two to a channel, one
 * for each direction: "[0] down->0->up|up->0->down". */
static bool take_one_tree(struct text *text, int *rank,
                          struct nccl_log_tree *tree)
{
    int *down = tree->down, again[5];
    if (text_scan(text, " [%d] %d/%d/%d->%d->%d", &tree->channel, &down[0],
                  &down[1], &down[2], rank, &tree->up)) {
        text_scan(text, "|%d->%d->%d/%d/%d", &again[0], &again[1], &again[2],
                  &again[3], &again[4]);
        return true;
    }
    return text_scan(text, " [%d] %d->%d->%d/%d/%d", &tree->channel, &tree->up,
                     rank, &down[0], &down[1], &down[2]);
}

/* "Trees [0] 1/2/-1->0->-1 [1] ..."; in 2.4 "[0] -1->0->1/2/-1". NCCL cuts it
 * off at 1,023 bytes, so the last one may be a part of what it was. */
static bool take_trees(struct log_line *line, struct text text)
{
    struct nccl_log_tree tree;
    int rank, n = 0;
    if (!text_scan(&text, "Trees"))
        return false;
    for (; take_one_tree(&text, &rank, &tree); n++) {
        if (text_size(text) && *text.at != ' ')
            break;
        tell_tree(line, rank, &tree);
    }
    return n > 0;
}

/* "Pattern 4, crossNic 0, nChannels 2, bw 24.0/24.0, type PHB/PIX, ..." */
static bool take_pattern(struct log_line *line, struct text text)
{
    struct nccl_log_fact fact = {.kind = NCCL_LOG_GRAPH};
    struct nccl_log_graph *graph = &fact.graph;
    struct text unit, types;
    int cross;
    if (!text_scan(&text, "Pattern %d, crossNic %d, nChannels %d, %w %f/%f, ",
                   &graph->pattern, &cross, &graph->channels, &unit,
                   &graph->intra_GBps, &graph->inter_GBps))
        return false;
    const char *slash = NULL;
    if (text_scan(&text, "type %w", &types))
        slash = memchr(types.at, '/', text_size(types));
    if (slash) {
        text_copy(graph->intra_type, sizeof(graph->intra_type),
                  (struct text){types.at, slash});
        types.at = slash + 1;
        types.end -= types.end > types.at && types.end[-1] == ',';
        text_copy(graph->inter_type, sizeof(graph->inter_type), types);
    }
    log_tell(line, &fact, NCCL_LOG_UNKNOWN);
    return true;
}

/* Communicators. */

/* "rank 0 nranks 4 cudaDev 0 ... ": pairs of a name and a number, of which
 * some are known. */
static void take_pairs(struct text text, struct nccl_log_comm *about)
{
    struct text name, rest;
    uint64_t pointer;
    while (text_scan(&text, " %w ", &name)) {
        const struct {
            const char *name;
            int *number;
        } numbers[] = {
            {"rank", &about->rank},     {"nranks", &about->nranks},
            {"nRanks", &about->nranks}, {"cudaDev", &about->device},
            {"nNodes", &about->nodes},  {"localRanks", &about->local_ranks},
            {"MNNVL", &about->mnnvl},
        };
        for (size_t i = 0; i < LOG_SIZE(numbers); i++)
            if (text_equals(name, numbers[i].name))
                text_scan(&text, "%d", numbers[i].number);
        rest = text;
        if (text_equals(name, "commId"))
            text_scan(&text, "%x", &about->hash);
        else if (text_equals(name, "parent") &&
                 text_scan(&rest, "%x", &pointer))
            about->parent = pointer;
    }
}

/* "[Rank 0] ncclCommInitRank comm 0x1 rank 0 ... - Init START" */
static bool take_comm(struct log_line *line, struct text text)
{
    struct nccl_log_comm about;
    uint64_t pointer;
    const char *at = text_find(text, "comm 0x");
    if (!at)
        return false;
    text.at = at;
    if (!text_scan(&text, "comm %x", &pointer))
        return false;
    log_comm_clear(&about);
    take_pairs(text, &about);
    if (about.rank == NCCL_LOG_UNKNOWN)
        return false;
    if (text_find(text, "Init START"))
        log_start(line, pointer, &about);
    else if (text_find(text, "Init COMPLETE"))
        log_complete(line, pointer, &about);
    else if (text_find(text, "Destroy COMPLETE") ||
             text_find(text, "Abort COMPLETE"))
        log_end(line, pointer);
    else if (text_find(text, " nNodes ") && text_find(text, " MNNVL "))
        log_detail(line, pointer, &about);
    else if (text_find(text, " nvmlDev ")) /* 2.4.2 */
        log_start(line, pointer, &about);
    else
        return false;
    return true;
}

static bool take_destroyed(struct log_line *line, struct text text)
{
    uint64_t pointer;
    if (!text_scan(&text, "Destroyed comm %x", &pointer))
        return false;
    log_end(line, pointer);
    return true;
}

/* Where what is said of the communicator goes: it may have no name yet. */
static struct nccl_log_comm *about_of(const struct log_line *line)
{
    struct log_comm *comm = log_setting_up(line);
    return comm ? &comm->about : &line->thread->pending;
}

static void tell_detail(const struct log_line *line)
{
    struct log_comm *comm = log_setting_up(line);
    if (comm)
        log_tell_comm(line, comm, NCCL_LOG_DETAIL);
    else
        line->thread->opening = true;
}

/* "8 coll channels, 0 nvls channels, 8 p2p channels, 2 p2p channels per peer"
 */
static bool take_channels(struct log_line *line, struct text text)
{
    struct nccl_log_comm *about = about_of(line);
    struct text what, unit;
    int n;
    if (!text_scan(&text, "%d coll channels, ", &n))
        return false;
    about->channels = n;
    while (text_scan(&text, "%d %w %w ", &n, &what, &unit)) {
        if (text_equals(what, "nvls"))
            about->nvls_channels = n;
        else if (text_equals(what, "p2p") && text_equals(unit, "channels,"))
            about->p2p_channels = n;
    }
    tell_detail(line);
    return true;
}

static bool take_network(struct log_line *line, struct text text)
{
    if (!text_scan(&text, "Using network "))
        return false;
    struct nccl_log_comm *about = about_of(line);
    text_copy(about->network, sizeof(about->network), text);
    log_message(line, "network");
    return true;
}

/* Connections at first use are a batch of one communicator's up to here. */
static bool take_connected(struct log_line *line, struct text text)
{
    if (!text_starts(text, "Connected all ") &&
        !text_starts(text, "Connected binomial"))
        return false;
    log_settle_connected(line->log, line->thread);
    return true;
}
/* Lines that begin with a number. */
static bool take_numbers(struct log_line *line, struct text text)
{
    struct text rest = text;
    int number;
    if (take_channels(line, text) ||
        log_take_choice(line, NCCL_LOG_UNKNOWN, text))
        return true;
    if (!text_scan(&rest, "%d", &number))
        return false;
    /* Rings as the search draws them, and 2.4's matrix of ways. */
    if (text_starts(rest, " : "))
        return true;
    while (text_scan(&rest, " %d", &number))
        continue;
    return text_scan(&rest, " ") && text_size(rest) == 0;
}

/* "init.cc:526 (f) -> 3": an error on its way up. */
static bool is_trace_of_error(struct text text)
{
    struct text word, code = text;
    int64_t number;
    if (!text_scan(&text, "%w ", &word))
        return false;
    const char *colon = memchr(word.at, ':', text_size(word));
    const char *arrow = text_find(code, "-> ");
    if (!colon || !arrow)
        return false;
    code.at = colon + 1;
    return text_scan(&code, "%D", &number);
}

static bool take_known(struct log_line *line, struct text text)
{
    static const char PASS[] = "";
    static const struct {
        const char *kind;
        const char *start;
        bool anywhere;
    } known[] = {
#define HAS(kind_, part_) {kind_, part_, true},
#define LINE(kind_, start_) {kind_, start_, false},
#include "nccl_log_lines.def"
    };
    for (size_t i = 0; i < LOG_SIZE(known); i++) {
        if (known[i].anywhere ? !text_find(text, known[i].start)
                              : !text_starts(text, known[i].start))
            continue;
        if (known[i].kind != PASS)
            log_message(line, known[i].kind);
        return true;
    }
    return is_trace_of_error(text);
}

static const struct {
    char first;
    bool (*take)(struct log_line *line, struct text text);
} shapes[] = {
    {'C', take_channel},        {'C', take_collnet},     {'C', take_connected},
    {'R', take_ring},           {'T', take_tree},        {'T', take_trees},
    {'P', take_pattern},        {'U', take_network},     {'D', take_destroyed},
    {'A', log_take_algorithms}, {'L', log_take_columns}, {'I', log_take_called},
    {'c', take_comm},           {'n', take_comm},        {'[', take_comm},
};

bool log_facts(struct log_line *line)
{
    struct text text = line->text;
    while (text_size(text) && *text.at == ' ')
        text.at++;
    line->text = text;
    if (text_size(text) == 0)
        return true;
    for (size_t i = 0; i < LOG_SIZE(shapes); i++)
        if (shapes[i].first == *text.at && shapes[i].take(line, text))
            return true;
    if (isdigit((unsigned char)*text.at) && take_numbers(line, text))
        return true;
    return log_take_function(line, text) || take_known(line, text);
}
