/* The calls of a process as a sequence of tokens, with an index. */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/intern.h"
#include "trace/stages.h"
#include "trace/steps.h"

#define FEW_BYTES 64

/* Calls of one sort differ only in size, peer or reduction; but a handful of
 * bytes (norm, loss, barrier) is another sort than a message. */
static int sort_of(struct ct_intern *sorts, const struct ct_op_class_row *class)
{
    int key[3] = {class->comm, (int)class->base, class->bytes <= FEW_BYTES};

    return ct_intern_add(sorts, key, sizeof(key));
}

static void name_tokens(struct ct_stream *s)
{
    const struct ct_process *p = s->process;
    struct ct_intern tokens = {0}, sorts = {0};
    int c;

    s->token_of = ct_alloc((size_t)p->nclasses, sizeof(*s->token_of));
    s->tokens =
        ct_alloc((size_t)p->nclasses + (size_t)p->ngraphs, sizeof(*s->tokens));
    for (c = 0; c < p->nclasses; c++) {
        const struct ct_op_class_row *class = &p->classes[c];
        uint64_t key[5] = {(uint64_t) class->comm, (uint64_t) class->base,
                           (uint64_t) class->redop, (uint64_t) class->peer,
                           class->count};
        int token = ct_intern_add(&tokens, key, sizeof(key));

        s->token_of[c] = token;
        s->tokens[token].sort = sort_of(&sorts, class);
        s->tokens[token].collective = ct_is_collective(class->kind);
        s->tokens[token].hash = ct_mix64((uint64_t)token + 1);
    }
    s->nsorts = sorts.n;
    ct_stream_add_graphs(s, &tokens);
    s->ntokens = tokens.n;
    ct_intern_release(&tokens);
    ct_intern_release(&sorts);
}

/* Positions of each token (counting sort), and for any two positions the hash
 * of the multiset of tokens between them. */
static void index_positions(struct ct_stream *s)
{
    int n = s->n, o, t;

    s->positions = ct_alloc((size_t)n, sizeof(*s->positions));
    s->hashes = ct_alloc((size_t)n + 1, sizeof(*s->hashes));
    for (o = 0; o < n; o++) {
        struct ct_token *token = &s->tokens[ct_token_at(s, o)];

        token->n++;
        s->hashes[o + 1] = s->hashes[o] + token->hash;
    }
    for (t = 1; t < s->ntokens; t++)
        s->tokens[t].first = s->tokens[t - 1].first + s->tokens[t - 1].n;
    for (t = 0; t < s->ntokens; t++)
        s->tokens[t].n = 0;
    for (o = 0; o < n; o++) {
        struct ct_token *token = &s->tokens[ct_token_at(s, o)];

        s->positions[token->first + token->n++] = o;
    }
}

void ct_stream_init(struct ct_stream *s, struct ct_process *process)
{
    *s = (struct ct_stream){.process = process, .n = process->nops};
    name_tokens(s);
    index_positions(s);
}

void ct_stream_release(struct ct_stream *s)
{
    free(s->calls);
    free(s->token_of);
    free(s->token_with);
    free(s->tokens);
    free(s->positions);
    free(s->hashes);
}

static const struct ct_op_row *op_at(const struct ct_stream *s, int at)
{
    const int call = s->calls ? s->calls[at] : at;

    return call >= 0 ? &s->process->ops[call] : NULL;
}

static const struct ct_graph_launch_row *launch_at(const struct ct_stream *s,
                                                   int at)
{
    return &s->process->graph_launches[~s->calls[at]];
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
    while (s->calls && at < s->n && s->calls[at] < 0)
        at++;
    if (at >= s->n)
        return s->process->nops;
    return s->calls ? s->calls[at] : at;
}
