#include "nccl/tuning.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/config.h"
#include "nccl/comm.h"
#include "nccl/graph.h"
#include "nccl/layout.h"
#include "nccl/release.h"
#include "nccl/tuning_table.h"

/*
 * Facts of NCCL 2.30.7, src/graph/tuning.cc, in microseconds and GB/s: every
 * release has the same formulas with figures close to these.
 */
enum hardware { NVLINK, PCI, NET, HARDWARES };

static const double base_us[ALGORITHMS][PROTOCOLS] = {
    [ALGORITHM_TREE] = {6.8, 14.0, 8.4},
    [ALGORITHM_RING] = {6.6, 14.0, 8.4},
    [ALGORITHM_PAT] = {8.0, 8.0, 8.0},
};

static const double hop_us[HARDWARES][ALGORITHMS][PROTOCOLS] = {
    [NVLINK] = {[ALGORITHM_TREE] = {0.6, 1.25, 4.0},
                [ALGORITHM_RING] = {0.6, 1.9, 3.4},
                [ALGORITHM_COLLNET_DIRECT] = {0, 0, 3.7},
                [ALGORITHM_COLLNET_CHAIN] = {0, 0, 2.8},
                [ALGORITHM_NVLS] = {0, 0, 25.0},
                [ALGORITHM_NVLS_TREE] = {0, 0, 25.0},
                [ALGORITHM_PAT] = {0, 0, 4.0}},
    [PCI] = {[ALGORITHM_TREE] = {1.0, 1.9, 4.0},
             [ALGORITHM_RING] = {1.0, 2.5, 5.7},
             [ALGORITHM_COLLNET_DIRECT] = {0, 0, 3.7},
             [ALGORITHM_COLLNET_CHAIN] = {0, 0, 2.8},
             [ALGORITHM_PAT] = {0, 0, 4.0}},
    [NET] = {[ALGORITHM_TREE] = {5.0, 8.5, 14.0},
             [ALGORITHM_RING] = {2.7, 4.0, 14.0},
             [ALGORITHM_COLLNET_DIRECT] = {0, 0, 31.0},
             [ALGORITHM_COLLNET_CHAIN] = {0, 0, 30.0},
             [ALGORITHM_NVLS] = {0, 0, 18.0},
             [ALGORITHM_NVLS_TREE] = {0, 0, 20.9},
             [ALGORITHM_PAT] = {0, 0, 14.0}},
};

/* By generation of GPUs, and by nodes: one, two, more. */
enum generation { AMPERE, HOPPER, BLACKWELL, GENERATIONS };

static const struct caps {
    double ll_one_node;
    double ring_ll128[3];
    double tree_ll128[3];
    double tree[3];
    double nvls_tree[3];
    double nvls_share;
} caps[GENERATIONS] = {
    [AMPERE] = {87.7,
                {20, 20, 20},
                {20, 20, 20},
                {24, 23.6, 17.8},
                {24, 23.6, 17.8},
                0},
    [HOPPER] = {141,
                {36.7, 36.7, 36.7},
                {36.7, 36.7, 29},
                {38.7, 41.4, 36},
                {0, 57.7, 45.5},
                0.85},
    [BLACKWELL] = {282,
                   {40, 40, 40},
                   {55.6, 31.67, 20},
                   {70, 42.8, 24},
                   {0, 96, 80},
                   0.74},
};

/* Between nodes it is the CPU that counts: these are for Intel's. */
static const double ll_between_nodes[3] = {0, 39, 20.4};

/* What a tree lacks of its bandwidth, from 64 bytes on in powers of two. */
static const double tree_share[PROTOCOLS][24] = {
    {1,  1,  1,  1,  .9, .8, .7, .7, .7, .7, .6, .5,
     .4, .4, .5, .6, .7, .8, .9, 1,  1,  1,  1,  1},
    {1,  1,  1,  1,  1,  .9, .8, .8, .8, .7, .6, .6,
     .6, .6, .6, .6, .8, .9, .9, .9, .9, 1,  1,  1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
     .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
};

static const char *const algorithm_upper[ALGORITHMS] = {
    "TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
    "NVLS_TREE", "PAT"};
static const char *const protocol_upper[PROTOCOLS] = {"LL", "LL128", "SIMPLE"};

static double least(double a, double b)
{
    return a < b ? a : b;
}

static int log2_of(uint64_t n)
{
    int log = -1;

    for (; n; n >>= 1)
        log++;
    return log;
}

static enum generation generation(void)
{
    int version = fabric_config()->hardware.nvlink_version;

    if (!fabric_config()->hardware.nvlink || version <= 3)
        return AMPERE;
    return version == 4 ? HOPPER : BLACKWELL;
}

/* What an entry of the table depends on. */
struct place {
    const struct layout *layout;
    struct graph graph;
    enum function function;
    enum algorithm algorithm;
    enum protocol protocol;
    double ranks, nodes, per_node, steps;
    int row; /* of the caps: nodes */
};

static double steps_of(enum function function, double ranks)
{
    switch (function) {
    case FUNCTION_ALL_REDUCE:
        return 2 * (ranks - 1);
    case FUNCTION_ALL_GATHER:
    case FUNCTION_REDUCE_SCATTER:
        return ranks - 1;
    default:
        return ranks;
    }
}

static int shares(enum function function)
{
    return function == FUNCTION_ALL_GATHER ||
           function == FUNCTION_REDUCE_SCATTER;
}

/* What there is a kernel for. */
static int exists(enum function f, enum algorithm a, enum protocol p)
{
    if (a >= ALGORITHM_NVLS && p != PROTOCOL_SIMPLE)
        return 0;
    if (f == FUNCTION_BROADCAST || f == FUNCTION_REDUCE)
        return a == ALGORITHM_RING;
    if (f == FUNCTION_ALL_REDUCE)
        return a != ALGORITHM_PAT;
    return a == ALGORITHM_PAT || a == ALGORITHM_RING || a == ALGORITHM_NVLS ||
           a == ALGORITHM_COLLNET_DIRECT;
}

static double nvls_channel(const struct place *at)
{
    const struct caps *c = &caps[generation()];
    double n = at->graph.channels;
    double intra = at->graph.intra_GBps * c->nvls_share * (n - 1) / n;
    int is_tree = at->algorithm == ALGORITHM_NVLS_TREE;
    double inter = at->graph.inter_GBps * (is_tree && at->nodes <= 2 ? 2 : 1);

    intra *= shares(at->function) ? (at->per_node - 1) / at->per_node : 2;
    intra = least(intra, inter);
    return is_tree ? least(intra, c->nvls_tree[at->row]) : intra;
}

static double ll_cap(const struct place *at)
{
    return at->nodes > 1 ? ll_between_nodes[at->row]
                         : caps[generation()].ll_one_node;
}

static double ring_bus(const struct place *at, double bus)
{
    if (at->protocol == PROTOCOL_LL)
        return least(ll_cap(at), bus * 0.5);
    if (at->protocol == PROTOCOL_LL128)
        return least(bus * 0.92, at->graph.channels *
                                     caps[generation()].ring_ll128[at->row]);
    return bus;
}

static double tree_bus(const struct place *at, double bus)
{
    const struct caps *c = &caps[generation()];

    bus = least(bus * 0.92, at->graph.channels * c->tree[at->row]);
    if (at->protocol == PROTOCOL_LL)
        return least(bus / 3.8, ll_cap(at));
    if (at->protocol == PROTOCOL_LL128)
        return least(bus * (at->nodes > 1 ? 120.0 / 128 : 7.0 / 9),
                     at->graph.channels * c->tree_ll128[at->row]);
    return bus;
}

static double bandwidth(const struct place *at)
{
    double bus = at->graph.channels *
                 (at->nodes <= 2 ? at->graph.intra_GBps : at->graph.inter_GBps);

    switch (at->algorithm) {
    case ALGORITHM_RING:
        return ring_bus(at, bus) * at->ranks / at->steps;
    case ALGORITHM_TREE:
        return tree_bus(at, bus) * 0.5;
    case ALGORITHM_NVLS:
    case ALGORITHM_NVLS_TREE:
        bus = at->graph.channels * nvls_channel(at);
        return shares(at->function) ? bus : bus * at->ranks / at->steps;
    case ALGORITHM_PAT:
        return bus * 0.75;
    default:
        return 0; /* no network here reduces */
    }
}

static double inter_us(const struct place *at)
{
    return hop_us[NET][at->per_node > 1 ? at->algorithm : ALGORITHM_TREE]
                 [at->protocol];
}

static double ring_us(const struct place *at, double intra)
{
    double post = at->nodes > 1 ? at->protocol == PROTOCOL_SIMPLE ? 3 : 1 : 0;
    double inter_steps = at->nodes - 1;

    if (at->function == FUNCTION_BROADCAST || at->function == FUNCTION_REDUCE)
        return at->nodes > 1 ? hop_us[NET][at->algorithm][at->protocol] : intra;
    if (at->function == FUNCTION_ALL_REDUCE)
        inter_steps *= 2;
    if (intra < post)
        intra = post;
    return (at->steps - inter_steps) * intra + inter_steps * inter_us(at);
}

static double latency(const struct place *at)
{
    int is_nvlink = at->graph.intra <= PATH_NVL;
    double intra =
        hop_us[is_nvlink ? NVLINK : PCI][at->algorithm][at->protocol];
    double base = base_us[at->algorithm][at->protocol];
    int levels = log2_of((uint64_t)at->nodes);

    switch (at->algorithm) {
    case ALGORITHM_RING:
        return base + ring_us(at, intra);
    case ALGORITHM_TREE:
        return base + 2 * ((at->per_node - 1) * intra + levels * inter_us(at));
    case ALGORITHM_COLLNET_DIRECT:
        return 2 * ((at->per_node > 1 ? intra : 0) + (at->per_node - 1) * 0.4) +
               inter_us(at);
    case ALGORITHM_COLLNET_CHAIN:
        return 2 * (at->per_node - 1) * intra + inter_us(at);
    case ALGORITHM_NVLS:
        return intra + (at->nodes > 1 ? inter_us(at) : 0);
    case ALGORITHM_NVLS_TREE:
        return intra + 2 * levels * inter_us(at);
    default:
        return base + levels * inter_us(at) / 3.5 + at->ranks * 2.8;
    }
}

int tuning_algorithms(void)
{
    int release = nccl_release();

    if (release >= 22304)
        return ALGORITHMS;
    return release >= 21800 ? ALGORITHM_PAT : 3;
}

/* What the machine, the release and NCCL's defaults allow. */
static int is_enabled(const struct place *at)
{
    const struct layout *l = at->layout;

    if ((int)at->algorithm >= tuning_algorithms())
        return 0;
    if (at->protocol == PROTOCOL_LL128 &&
        (at->graph.intra > PATH_NVL || at->graph.inter > PATH_PXB))
        return 0;
    switch (at->algorithm) {
    case ALGORITHM_TREE:
    case ALGORITHM_RING:
        return 1;
    case ALGORITHM_NVLS:
        return l->nvls_channels && l->nodes == 1;
    case ALGORITHM_NVLS_TREE:
        return l->nvls_channels && l->nodes > 1;
    case ALGORITHM_PAT:
        return l->nodes == l->nranks && l->nodes > 1;
    default:
        return 0;
    }
}

const char *tuning_algorithm_name(enum algorithm algorithm)
{
    static const char *const names[ALGORITHMS] = {
        "Tree",     "Ring", "CollNetDirect", "CollNetChain", "NVLS",
        "NVLSTree", "PAT"};

    return names[algorithm];
}

const char *tuning_protocol_name(enum protocol protocol)
{
    static const char *const names[PROTOCOLS] = {"LL", "LL128", "Simple"};

    return names[protocol];
}

const char *tuning_function_name(enum function function)
{
    static const char *const names[FUNCTIONS] = {
        "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};

    return names[function];
}

/* Whether a list like "Ring,Tree" or "^NVLS" allows it. */
static int list_allows(const char *list, size_t n, const char *name)
{
    int without = n && *list == '^';
    int found = 0;

    for (size_t i = (size_t)without; i < n;) {
        size_t len = strcspn(list + i, ",;");

        if (i + len > n)
            len = n - i;
        found |= len == strlen(name) && !strncasecmp(list + i, name, len);
        i += len + 1;
    }
    return found != without;
}

/* Parts between semicolons: "Ring;allreduce:tree,ring". The last part that is
 * about the function decides. */
static int variable_allows(const char *variable, enum function function,
                           const char *name)
{
    const char *text = getenv(variable);
    const char *of = tuning_function_name(function);
    int allowed = 1;

    while (text && *text) {
        size_t n = strcspn(text, ";");
        const char *colon = memchr(text, ':', n);
        size_t skip = colon ? (size_t)(colon - text) + 1 : 0;

        if (!colon ||
            (skip - 1 == strlen(of) && !strncasecmp(text, of, skip - 1)))
            allowed = list_allows(text + skip, n - skip, name);
        text += n + (text[n] == ';');
    }
    return allowed;
}

struct entry tuning_entry(struct ncclComm *comm, enum function function,
                          enum algorithm algorithm, enum protocol protocol)
{
    const struct layout *l = layout_of(comm);
    struct place at = {
        .layout = l,
        .graph = graph_of(comm, algorithm),
        .function = function,
        .algorithm = algorithm,
        .protocol = protocol,
        .ranks = l->nranks,
        .nodes = l->nodes,
        .per_node = (double)l->nranks / l->nodes,
        .steps = steps_of(function, l->nranks),
        .row = l->nodes > 2 ? 2 : l->nodes - 1,
    };
    struct entry entry = {0, 0};

    if (!exists(function, algorithm, protocol))
        return entry;
    entry.latency_us = latency(&at);
    if (is_enabled(&at) &&
        variable_allows("NCCL_ALGO", function,
                        tuning_algorithm_name(algorithm)) &&
        variable_allows("NCCL_PROTO", function, tuning_protocol_name(protocol)))
        entry.GBps = bandwidth(&at);
    return entry;
}

int tuning_threads(struct ncclComm *comm, enum algorithm algorithm,
                   enum protocol protocol)
{
    struct graph g = graph_of(comm, ALGORITHM_RING);

    if (algorithm > ALGORITHM_RING)
        return protocol == PROTOCOL_SIMPLE && algorithm != ALGORITHM_PAT ? 640
                                                                         : 0;
    if (protocol == PROTOCOL_LL128)
        return 640;
    if (algorithm == ALGORITHM_RING && protocol == PROTOCOL_SIMPLE)
        return g.intra_GBps * g.channels <= 12 ? 256 : 512;
    return 512;
}

/* The whole table, once it has been asked for. */
struct tuning_table {
    struct entry entry[FUNCTIONS][ALGORITHMS][PROTOCOLS];
};

static const struct tuning_table *table_of(struct ncclComm *comm)
{
    struct tuning_table *none = NULL, *t = atomic_load(&comm->tuning);

    if (t || !layout_of(comm))
        return t;
    t = malloc(sizeof(*t));
    if (!t)
        return NULL;
    for (int f = 0; f < FUNCTIONS; f++) {
        for (int a = 0; a < ALGORITHMS; a++) {
            for (int p = 0; p < PROTOCOLS; p++)
                t->entry[f][a][p] =
                    tuning_entry(comm, (enum function)f, (enum algorithm)a,
                                 (enum protocol)p);
        }
    }
    if (!atomic_compare_exchange_strong(&comm->tuning, &none, t)) {
        free(t);
        t = none;
    }
    return t;
}

static double share_of_tree(enum protocol p, int log)
{
    return log >= 0 && log < 23 ? tree_share[p][log] : 1;
}

/* -1: not to be used. */
static double time_us(struct ncclComm *comm, const struct tuning_table *t,
                      enum function f, enum algorithm a, enum protocol p,
                      size_t bytes)
{
    const struct layout *l = layout_of(comm);
    struct entry e = t->entry[f][a][p];
    size_t slices = (size_t)l->channels * (size_t)l->nranks;

    if (e.GBps <= 0)
        return -1;
    if (a == ALGORITHM_TREE)
        e.GBps *= share_of_tree(p, log2_of(bytes >> 6));
    if (a == ALGORITHM_RING && p == PROTOCOL_SIMPLE && l->nodes > 1 &&
        f == FUNCTION_ALL_REDUCE && bytes / slices >= 64)
        e.latency_us *= 1.4;
    return e.latency_us + (double)bytes / (1000 * e.GBps);
}

/* Few bytes take fewer channels, then fewer threads. */
static void size_grid(struct ncclComm *comm, size_t bytes,
                      struct fabric_choice *c)
{
    static const size_t per_thread[PROTOCOLS] = {8, 8, 64};
    size_t least_bytes = per_thread[c->protocol];
    int threads = tuning_threads(comm, c->algorithm, c->protocol);
    const struct layout *l = layout_of(comm);

    c->channels =
        c->algorithm >= ALGORITHM_NVLS && c->algorithm <= ALGORITHM_NVLS_TREE
            ? l->nvls_channels
            : l->channels;
    if (c->algorithm == ALGORITHM_RING && c->protocol == PROTOCOL_LL)
        least_bytes *= (size_t)l->nranks;
    while (c->channels > 1 &&
           bytes < (size_t)c->channels * (size_t)threads * least_bytes)
        c->channels--;
    while (threads > 128 && threads % 128 == 0 &&
           bytes < (size_t)threads * least_bytes)
        threads /= 2;
    c->warps = threads / 32;
}

enum function tuning_function(const struct op *op)
{
    switch (op->kind) {
    case OP_ALL_REDUCE:
        return FUNCTION_ALL_REDUCE;
    case OP_REDUCE_SCATTER:
        return FUNCTION_REDUCE_SCATTER;
    case OP_ALL_GATHER:
        return FUNCTION_ALL_GATHER;
    case OP_REDUCE:
        return FUNCTION_REDUCE;
    default:
        return FUNCTION_BROADCAST;
    }
}

static struct fabric_choice choose_p2p(struct ncclComm *comm, size_t bytes)
{
    const struct layout *l = layout_of(comm);
    struct fabric_choice c = {.algorithm = ALGORITHM_RING, .warps = 16};

    c.channels = l ? l->p2p_channels_per_peer : 1;
    c.protocol =
        bytes <= (size_t)c.channels * 16384 ? PROTOCOL_LL : PROTOCOL_SIMPLE;
    c.protocol_name = protocol_upper[c.protocol];
    return c;
}

struct fabric_choice fabric_choose(const struct op *op)
{
    struct ncclComm *comm = op->comm;
    size_t bytes = op_bytes(op);
    enum function f = tuning_function(op);
    struct fabric_choice best = {.algorithm = ALGORITHM_RING,
                                 .protocol = PROTOCOL_SIMPLE,
                                 .us = -1,
                                 .channels = 1};
    const struct tuning_table *t;

    if (op_is_p2p(op))
        return choose_p2p(comm, bytes);
    t = table_of(comm);
    for (int a = 0; t && a < ALGORITHMS; a++) {
        for (int p = 0; p < PROTOCOLS; p++) {
            double us =
                time_us(comm, t, f, (enum algorithm)a, (enum protocol)p, bytes);

            if (us < 0 || (best.us >= 0 && us >= best.us))
                continue;
            best.algorithm = (enum algorithm)a;
            best.protocol = (enum protocol)p;
            best.us = us;
        }
    }
    if (t)
        size_grid(comm, bytes, &best);
    best.algorithm_name = algorithm_upper[best.algorithm];
    best.protocol_name = protocol_upper[best.protocol];
    return best;
}
