/* nccl_log SEED ROUNDS FILE...: damages logs of NCCL's at random and demands
 * that they give the same facts in one piece and in many, whole strings, and
 * numbers within what the parser promises. Prints the round that fails. */
#include "nccl_log.h"

#include "commtrace/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = 1 << 16, FILES = 64 };

static uint64_t state;

static uint64_t next(void) /* xorshift64* */
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1d;
}

static size_t below(size_t n)
{
    return n ? (size_t)(next() >> 11) % n : 0;
}

struct bytes {
    char at[MAX];
    size_t n;
};

static struct bytes files[FILES];
static size_t nfiles;

static void insert(struct bytes *bytes, size_t at, const char *what, size_t n)
{
    if (bytes->n + n > MAX)
        return;
    memmove(bytes->at + at + n, bytes->at + at, bytes->n - at);
    memcpy(bytes->at + at, what, n);
    bytes->n += n;
}

static void erase(struct bytes *bytes, size_t at, size_t n)
{
    if (n > bytes->n - at)
        n = bytes->n - at;
    memmove(bytes->at + at, bytes->at + at + n, bytes->n - at - n);
    bytes->n -= n;
}

static void damage(struct bytes *bytes)
{
    static const char *const odd[] = {"\n",
                                      "\r",
                                      "\0\0",
                                      "-",
                                      "99999999999999999999",
                                      "-2147483648",
                                      "4294967296",
                                      "ffffffffffffffffff",
                                      " NCCL INFO ",
                                      "\n\n NCCL WARN ",
                                      "[",
                                      "]",
                                      ":",
                                      " : ",
                                      "->",
                                      "/",
                                      "|",
                                      " comm 0x",
                                      "%s%n",
                                      "\xff\xfe",
                                      " Init START",
                                      " - Init COMPLETE",
                                      "Destroy COMPLETE",
                                      "host:1:1 [0]"};
    static char stretch[256];
    const struct bytes *other = &files[below(nfiles)];
    size_t at = below(bytes->n + 1), from = below(other->n), n = below(256);
    const char *word = odd[below(sizeof(odd) / sizeof(odd[0]))];
    switch (below(5)) {
    case 0:
        if (bytes->n)
            bytes->at[at % bytes->n] = (char)next();
        break;
    case 1:
        erase(bytes, at, below(100));
        break;
    case 2:
        insert(bytes, at, word, word[0] ? strlen(word) : 2);
        break;
    case 3:
        insert(bytes, at, other->at + from, n < other->n - from ? n : 0);
        break;
    default:
        n = below(2) ? n : 1;
        memset(stretch, '0' + (int)below(10), sizeof(stretch));
        insert(bytes, at, stretch, n);
    }
}

struct digest {
    uint64_t hash;
    uint64_t facts;
    bool bad;
};

static void add_bytes(struct digest *digest, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++)
        digest->hash = (digest->hash ^ at[i]) * 0x100000001b3;
}

static void add_text(struct digest *digest, const char *text, size_t max)
{
    size_t n = strnlen(text, max);
    digest->bad |= n == max;
    add_bytes(digest, text, n);
}

static void check(void *arg, const struct nccl_log_fact *fact)
{
    struct digest *digest = arg;
    digest->facts++;
    add_bytes(digest, &fact->kind, sizeof(fact->kind));
    add_bytes(digest, &fact->comm.pointer, sizeof(fact->comm.pointer));
    add_bytes(digest, &fact->comm.birth, sizeof(fact->comm.birth));
    add_text(digest, fact->source.host, 80);
    switch (fact->kind) {
    case NCCL_LOG_COMM:
        add_text(digest, fact->about.network, sizeof(fact->about.network));
        digest->bad |= fact->comm.pointer != 0 && fact->comm.likely;
        break;
    case NCCL_LOG_CONN:
        add_text(digest, fact->conn.via, sizeof(fact->conn.via));
        digest->bad |= fact->conn.end > NCCL_LOG_RECEIVE;
        break;
    case NCCL_LOG_RING:
        add_bytes(digest, &fact->ring, sizeof(fact->ring));
        break;
    case NCCL_LOG_TREE:
        add_bytes(digest, &fact->tree, sizeof(fact->tree));
        break;
    case NCCL_LOG_GRAPH:
        add_text(digest, fact->graph.intra_type,
                 sizeof(fact->graph.intra_type));
        add_text(digest, fact->graph.inter_type,
                 sizeof(fact->graph.inter_type));
        break;
    case NCCL_LOG_TUNING:
        add_text(digest, fact->tuning.algorithm, 16);
        add_text(digest, fact->tuning.protocol, 16);
        digest->bad |= fact->tuning.op < 0 || fact->tuning.op >= CT_OP_COUNT;
        break;
    case NCCL_LOG_CHOICE:
        add_text(digest, fact->choice.algorithm,
                 sizeof(fact->choice.algorithm));
        add_text(digest, fact->choice.protocol, sizeof(fact->choice.protocol));
        digest->bad |= fact->choice.op >= CT_OP_COUNT;
        break;
    case NCCL_LOG_MESSAGE:
        add_text(digest, fact->message.kind, 16);
        add_text(digest, fact->message.text, 8193);
    }
}

static struct digest read_all(const struct bytes *bytes, size_t piece)
{
    struct digest digest = {.hash = 0xcbf29ce484222325};
    struct nccl_log *log = nccl_log_open(0, NULL, check, &digest);
    if (!log)
        abort();
    for (size_t at = 0, n; at < bytes->n; at += n) {
        /* Of its own size, so that a step beyond is seen. */
        n = 1 + below(piece);
        n = n < bytes->n - at ? n : bytes->n - at;
        char *copy = malloc(n);
        memcpy(copy, bytes->at + at, n);
        nccl_log_feed(log, copy, n);
        free(copy);
    }
    nccl_log_flush(log, true, true);
    const struct nccl_log_counts *counts = nccl_log_counted(log);
    digest.bad |= counts->facts != digest.facts || counts->bytes != bytes->n ||
                  counts->unknown > counts->nccl ||
                  counts->unnamed > counts->facts;
    nccl_log_close(log);
    return digest;
}

/* Of one process of the logs, whose calls are told between pieces. */
static struct digest read_with_calls(const struct bytes *bytes)
{
    static const int64_t pids[] = {3, 6, 17, 60, 81};
    static const uint64_t pointers[] = {0x10, 0x20, 0x77,  0xa0,
                                        0xb0, 0xf0, 0x501, 1};
    struct digest digest = {.hash = 0};
    struct nccl_log *log = nccl_log_open(
        pids[below(sizeof(pids) / sizeof(pids[0]))], NULL, check, &digest);
    if (!log)
        abort();
    for (size_t at = 0, n; at < bytes->n; at += n) {
        n = 1 + below(300);
        n = n < bytes->n - at ? n : bytes->n - at;
        nccl_log_feed(log, bytes->at + at, n);
        nccl_log_called(log,
                        pointers[below(sizeof(pointers) / sizeof(pointers[0]))],
                        (int)below(CT_OP_COUNT), (int64_t)below(5000),
                        (int64_t)below(5000), false);
        if (below(8) == 0)
            nccl_log_flush(log, true, false);
    }
    nccl_log_flush(log, true, true);
    digest.bad |= nccl_log_counted(log)->facts != digest.facts;
    nccl_log_close(log);
    return digest;
}

static bool survives(const struct bytes *bytes)
{
    struct digest whole = read_all(bytes, MAX), pieces = read_all(bytes, 64);
    return !whole.bad && !pieces.bad && whole.hash == pieces.hash &&
           whole.facts == pieces.facts && !read_with_calls(bytes).bad;
}

static void read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || nfiles == FILES) {
        perror(path);
        exit(2);
    }
    files[nfiles].n = fread(files[nfiles].at, 1, MAX, file);
    nfiles++;
    fclose(file);
}

int main(int argc, char **argv)
{
    static struct bytes bytes;
    if (argc < 4) {
        fprintf(stderr, "usage: nccl_log SEED ROUNDS FILE...\n");
        return 2;
    }
    uint64_t seed = strtoull(argv[1], NULL, 0);
    long rounds = strtol(argv[2], NULL, 0);
    for (int i = 3; i < argc; i++)
        read_file(argv[i]);
    for (long round = 0; round < rounds; round++) {
        state = (seed + (uint64_t)round) * 0x9e3779b97f4a7c15 | 1;
        bytes = files[below(nfiles)];
        for (size_t n = 1 + below(20); n; n--)
            damage(&bytes);
        if (survives(&bytes))
            continue;
        printf("fuzz nccl_log: seed %" PRIu64 " fails\n",
               seed + (uint64_t)round);
        return 1;
    }
    printf("fuzz nccl_log: %ld rounds from seed %" PRIu64 "\n", rounds, seed);
    return 0;
}
