/* The calls of a process as a sequence of tokens, with an index. */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/stages.h"
#include "trace/steps.h"

#define FEW_BYTES 64

int ct_stream_kind(struct ct_stream *s, const void *key, size_t size,
                   struct ct_kind kind)
{
    const int n = s->kind_keys.n;
    const int id = ct_intern_add(&s->kind_keys, key, size);

    if (id == n) {
        s->kinds = ct_grow(s->kinds, &s->kind_capacity, n, sizeof(*s->kinds));
        s->kinds[n] = kind;
        s->kinds[n].hash = ct_mix64(0x5bd1e995u + (uint64_t)n);
        s->nkinds = n + 1;
    }
    return id;
}

int ct_stream_token(struct ct_stream *s, const void *key, size_t size, int kind,
                    int sort)
{
    const int n = s->token_keys.n;
    const int id = ct_intern_add(&s->token_keys, key, size);

    if (id == n) {
        s->tokens =
            ct_grow(s->tokens, &s->token_capacity, n, sizeof(*s->tokens));
        s->tokens[n] = (struct ct_token){
            .kind = kind, .sort = sort, .hash = ct_mix64((uint64_t)n + 1)};
        s->ntokens = n + 1;
    }
    return id;
}

/* A handful of bytes (norm, loss, barrier) is another kind than a message. But
 * an exchange may have nothing for some peer. */
static bool is_small(const struct ct_op_class_row *class)
{
    return class->bytes <= FEW_BYTES && ct_is_collective(class->kind) &&
           class->base != CT_OP_ALL_TO_ALL;
}

/* Also where a recorder did not say how. */
static bool reduces(const struct ct_op_class_row *class)
{
    return class->redop != CT_NONE || class->base == CT_OP_ALL_REDUCE ||
           class->base == CT_OP_REDUCE_SCATTER;
}

static bool is_sum(const struct ct_op_class_row *class)
{
    return reduces(class) && class->redop != CT_REDOP_MAX &&
           class->redop != CT_REDOP_MIN;
}

static void name_kinds(struct ct_stream *s)
{
    const struct ct_process *p = s->process;
    struct ct_intern sizes = {0};
    int c;

    s->kind_of = ct_alloc((size_t)p->nclasses, sizeof(*s->kind_of));
    for (c = 0; c < p->nclasses; c++) {
        const struct ct_op_class_row *class = &p->classes[c];
        const bool small = is_small(class);
        const int key[6] = {class->comm,  (int)class->base, class->type,
                            class->redop, class->peer,      small};
        const int kind = ct_stream_kind(
            s, key, sizeof(key),
            (struct ct_kind){.collective = ct_is_collective(class->kind),
                             .p2p = ct_is_p2p(class->kind),
                             .small = small,
                             .reduces = reduces(class),
                             .sums = is_sum(class),
                             .gathers = class->base == CT_OP_ALL_GATHER,
                             .scatters = class->base == CT_OP_REDUCE_SCATTER,
                             .floats = class->type >= CT_TYPE_FLOAT16});
        const uint64_t size[2] = {(uint64_t)kind, class->count};
        const int known = sizes.n;

        s->kind_of[c] = kind;
        s->kinds[kind].ntokens +=
            ct_intern_add(&sizes, size, sizeof(size)) == known;
    }
    ct_intern_release(&sizes);
}

static void name_tokens(struct ct_stream *s)
{
    const struct ct_process *p = s->process;
    int c;

    s->token_of = ct_alloc((size_t)p->nclasses, sizeof(*s->token_of));
    for (c = 0; c < p->nclasses; c++) {
        const struct ct_op_class_row *class = &p->classes[c];
        const int kind = s->kind_of[c];
        const int sort_key[3] = {class->comm, (int)class->base,
                                 s->kinds[kind].small};
        const uint64_t key[2] = {(uint64_t)kind, class->count};
        const int sort =
            ct_intern_add(&s->sort_keys, sort_key, sizeof(sort_key));

        s->token_of[c] = ct_stream_token(
            s, key, s->kinds[kind].varied ? sizeof(key[0]) : sizeof(key), kind,
            sort);
    }
    s->nsorts = s->sort_keys.n;
}

static bool is_exchange(const struct ct_stream *s, int call)
{
    const struct ct_process *p = s->process;
    const struct ct_op_row *op;

    if (call < 0)
        return false;
    op = &p->ops[call];
    return op->launch != CT_NONE && p->launches[op->launch].nops > 1 &&
           s->kinds[s->kind_of[op->cls]].p2p &&
           s->kinds[s->kind_of[op->cls]].varied;
}

/* Of the calls first..last of a launch: whom a rank has something for changes
 * from one exchange to the next. */
static int exchange_token(struct ct_stream *s, int first, int last)
{
    const struct ct_process *p = s->process;
    const struct ct_op_class_row *class =
        &p->classes[p->ops[s->calls[first]].cls];
    int key[4] = {class->comm, -1, 0, 0}, i;
    uint64_t kind;

    for (i = first; i <= last; i++)
        key[p->classes[p->ops[s->calls[i]].cls].base == CT_OP_SEND ? 2 : 3] = 1;
    kind = (uint64_t)ct_stream_kind(
        s, key, sizeof(key), (struct ct_kind){.varied = true, .ntokens = 1});
    return ct_stream_token(
        s, &kind, sizeof(kind), (int)kind,
        s->tokens[s->token_of[p->ops[s->calls[first]].cls]].sort);
}

/* Sets token_at; calls that are one become one. */
static void name_calls(struct ct_stream *s)
{
    const struct ct_process *p = s->process;
    int i, last, n = 0;

    s->token_at = ct_alloc((size_t)s->n, sizeof(*s->token_at));
    for (i = 0; i < s->n; i = last + 1) {
        const int call = s->calls[i];

        last = i;
        if (is_exchange(s, call)) {
            while (last + 1 < s->n && is_exchange(s, s->calls[last + 1]) &&
                   p->ops[s->calls[last + 1]].launch == p->ops[call].launch)
                last++;
            s->token_at[n] = exchange_token(s, i, last);
        } else {
            s->token_at[n] =
                call >= 0 ? s->token_of[p->ops[call].cls]
                          : s->token_with[p->graph_launches[~call].graph];
        }
        s->calls[n++] = call;
    }
    s->n = n;
}

static void list_ops(struct ct_stream *s)
{
    int i;

    s->n = s->process->nops;
    s->calls = ct_alloc((size_t)s->n, sizeof(*s->calls));
    for (i = 0; i < s->n; i++)
        s->calls[i] = i;
}

/* Positions of each token (counting sort), and for any two positions the hash
 * of the multiset of tokens between them. */
static void index_positions(struct ct_stream *s)
{
    int n = s->n, o, t;

    s->sort_calls = ct_alloc((size_t)s->nsorts, sizeof(*s->sort_calls));
    s->positions = ct_alloc((size_t)n, sizeof(*s->positions));
    s->hashes = ct_alloc((size_t)n + 1, sizeof(*s->hashes));
    s->kind_hashes = ct_alloc((size_t)n + 1, sizeof(*s->kind_hashes));
    for (o = 0; o < n; o++) {
        struct ct_token *token = &s->tokens[s->token_at[o]];

        token->n++;
        s->sort_calls[token->sort]++;
        s->hashes[o + 1] = s->hashes[o] + token->hash;
        s->kind_hashes[o + 1] = s->kind_hashes[o] + s->kinds[token->kind].hash;
    }
    for (t = 1; t < s->ntokens; t++)
        s->tokens[t].first = s->tokens[t - 1].first + s->tokens[t - 1].n;
    for (t = 0; t < s->ntokens; t++)
        s->tokens[t].n = 0;
    for (o = 0; o < n; o++) {
        struct ct_token *token = &s->tokens[s->token_at[o]];

        s->positions[token->first + token->n++] = o;
    }
}

static void forget_sizes(struct ct_stream *s)
{
    int k;

    for (k = 0; k < s->nkinds; k++)
        s->kinds[k].varied = true;
}

void ct_stream_init(struct ct_stream *s, struct ct_process *process,
                    const struct ct_job *job, bool sizes)
{
    *s = (struct ct_stream){.process = process};
    name_kinds(s);
    if (sizes)
        ct_stream_find_varied(s);
    else
        forget_sizes(s);
    name_tokens(s);
    ct_stream_add_graphs(s);
    if (!s->calls)
        list_ops(s);
    name_calls(s);
    if (job)
        ct_stream_fill_gaps(s, job);
    index_positions(s);
}

void ct_stream_release(struct ct_stream *s)
{
    free(s->calls);
    free(s->token_at);
    free(s->token_of);
    free(s->kind_of);
    free(s->token_with);
    free(s->tokens);
    free(s->kinds);
    free(s->sort_calls);
    free(s->positions);
    free(s->hashes);
    free(s->kind_hashes);
    ct_intern_release(&s->token_keys);
    ct_intern_release(&s->kind_keys);
    ct_intern_release(&s->sort_keys);
}

/* A lost call stands for the one before it that is not. */
static int recorded(const struct ct_stream *s, int at)
{
    while (at > 0 && s->calls[at] == CT_LOST_CALL)
        at--;
    return at;
}

static const struct ct_op_row *op_at(const struct ct_stream *s, int at)
{
    const int call = s->calls[recorded(s, at)];

    return call >= 0 ? &s->process->ops[call] : NULL;
}

static const struct ct_graph_launch_row *launch_at(const struct ct_stream *s,
                                                   int at)
{
    return &s->process->graph_launches[~s->calls[recorded(s, at)]];
}

bool ct_stream_timed(const struct ct_stream *s, int at)
{
    const struct ct_op_row *op = op_at(s, at);

    return op && ct_op_start_ns(op) != CT_NO_TIME &&
           ct_op_gpu_ns(op) != CT_NO_TIME;
}

int64_t ct_stream_enter(const struct ct_stream *s, int at)
{
    const struct ct_op_row *op = op_at(s, at);

    return op ? op->enter_ns : launch_at(s, at)->enter_ns;
}

int64_t ct_stream_begin(const struct ct_stream *s, int at)
{
    const struct ct_op_row *op = op_at(s, at);

    return op && s->on_gpu && ct_op_start_ns(op) != CT_NO_TIME
               ? ct_op_start_ns(op)
               : ct_stream_enter(s, at);
}

int64_t ct_stream_end(const struct ct_stream *s, int at)
{
    const struct ct_op_row *op = op_at(s, at);
    int64_t host_ns = op ? ct_op_host_ns(op) : launch_at(s, at)->host_ns;

    if (s->on_gpu && ct_stream_timed(s, at))
        return ct_op_start_ns(op) + ct_op_gpu_ns(op);
    return ct_stream_enter(s, at) + (host_ns == CT_NO_TIME ? 0 : host_ns);
}

int ct_stream_op(const struct ct_stream *s, int at)
{
    while (at < s->n && s->calls[at] < 0)
        at++;
    return at < s->n ? s->calls[at] : s->process->nops;
}
