/* nccl_log_dump [--pid PID] [--host NAME] [--piece BYTES] FILE: prints the
 * facts of a log of NCCL's, one a line, and at the end what was counted. */
#include "nccl_log.h"

#include "commtrace/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[CT_OP_COUNT] = {
#define OP(id_, name_, ...) [CT_OP_##id_] = (name_),
#include "commtrace/nccl_ops.def"
};

static const char *op_name(int op)
{
    return op < 0 ? "?" : op_names[op];
}

static void print_known(const char *name, int number)
{
    if (number != NCCL_LOG_UNKNOWN)
        printf(" %s=%d", name, number);
}

static void print_comm(const struct nccl_log_comm *about)
{
    static const char *const phases[] = {"start", "detail", "complete", "end"};
    printf("comm %s rank=%d/%d", phases[about->phase], about->rank,
           about->nranks);
    print_known("device", about->device);
    print_known("nodes", about->nodes);
    print_known("local", about->local_ranks);
    print_known("mnnvl", about->mnnvl);
    print_known("channels", about->channels);
    print_known("nvls", about->nvls_channels);
    print_known("p2p", about->p2p_channels);
    if (about->hash)
        printf(" hash=%" PRIx64, about->hash);
    if (about->parent)
        printf(" parent=%" PRIx64, about->parent);
    printf("%s%s\n", about->network[0] ? " network=" : "", about->network);
}

static void print_conn(const struct nccl_log_conn *conn)
{
    static const char *const ends[] = {"both", "send", "receive"};
    printf("conn %d/%d %d->%d %s %s\n", conn->channel, conn->connector,
           conn->src, conn->dst, ends[conn->end], conn->via);
}

static void print_choice(const struct nccl_log_choice *choice)
{
    printf("choice %s %" PRId64 " bytes %s %s channels=%d time=%.1f\n",
           op_name(choice->op), choice->bytes, choice->algorithm,
           choice->protocol, choice->channels, choice->time_us);
}

static void print_fact(void *arg, const struct nccl_log_fact *fact)
{
    (void)arg;
    printf("%s:%" PRId64 ":%" PRId64 " [%d] %" PRIx64 "#%u%s ",
           fact->source.host, fact->source.pid, fact->source.tid,
           fact->source.device, fact->comm.pointer, fact->comm.birth,
           fact->comm.likely ? "?" : "");
    switch (fact->kind) {
    case NCCL_LOG_COMM:
        print_comm(&fact->about);
        break;
    case NCCL_LOG_CONN:
        print_conn(&fact->conn);
        break;
    case NCCL_LOG_RING:
        printf("ring %d %d %d\n", fact->ring.channel, fact->ring.prev,
               fact->ring.next);
        break;
    case NCCL_LOG_TREE:
        printf("tree %d up=%d down=%d/%d/%d\n", fact->tree.channel,
               fact->tree.up, fact->tree.down[0], fact->tree.down[1],
               fact->tree.down[2]);
        break;
    case NCCL_LOG_GRAPH:
        printf("graph %d channels=%d %.3f/%.3f %s/%s\n", fact->graph.pattern,
               fact->graph.channels, fact->graph.intra_GBps,
               fact->graph.inter_GBps, fact->graph.intra_type,
               fact->graph.inter_type);
        break;
    case NCCL_LOG_TUNING:
        printf("tuning %s %s %s %.1f/%.1f\n", op_name(fact->tuning.op),
               fact->tuning.algorithm, fact->tuning.protocol,
               fact->tuning.latency_us, fact->tuning.algbw_GBps);
        break;
    case NCCL_LOG_CHOICE:
        print_choice(&fact->choice);
        break;
    case NCCL_LOG_MESSAGE:
        printf("message %s: %s\n", fact->message.kind, fact->message.text);
    }
}

static void print_counts(const struct nccl_log_counts *counts)
{
    printf("counts lines=%" PRIu64 " nccl=%" PRIu64 " others=%" PRIu64
           " unknown=%" PRIu64 " facts=%" PRIu64 " unnamed=%" PRIu64 "\n",
           counts->lines, counts->nccl, counts->others, counts->unknown,
           counts->facts, counts->unnamed);
}

static int dump(const char *path, int64_t pid, const char *host, size_t piece)
{
    FILE *file = fopen(path, "rb");
    struct nccl_log *log = nccl_log_open(pid, host, print_fact, NULL);
    char *bytes = malloc(piece);
    size_t n;
    if (!file || !log || !bytes) {
        perror(path);
        return 2;
    }
    while ((n = fread(bytes, 1, piece, file)) > 0)
        nccl_log_feed(log, bytes, n);
    nccl_log_flush(log, true, true);
    print_counts(nccl_log_counted(log));
    nccl_log_close(log);
    free(bytes);
    fclose(file);
    return 0;
}

int main(int argc, char **argv)
{
    int64_t pid = 0;
    const char *host = NULL;
    size_t piece = 65536;
    int i = 1;
    for (; i + 2 < argc; i += 2) {
        if (strcmp(argv[i], "--pid") == 0)
            pid = strtoll(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--host") == 0)
            host = argv[i + 1];
        else if (strcmp(argv[i], "--piece") == 0)
            piece = strtoull(argv[i + 1], NULL, 10);
    }
    if (i + 1 != argc || piece == 0) {
        fprintf(stderr, "usage: nccl_log_dump [--pid N] [--host NAME] "
                        "[--piece N] FILE\n");
        return 2;
    }
    return dump(argv[i], pid, host, piece);
}
