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
    s->tokens = ct_alloc((size_t)p->nclasses, sizeof(*s->tokens));
    for (c = 0; c < p->nclasses; c++) {
        const struct ct_op_class_row *class = &p->classes[c];
        uint64_t key[5] = {(uint64_t) class->comm, (uint64_t) class->base,
                           (uint64_t) class->redop, (uint64_t) class->peer,
                           class->count};
        int token = ct_intern_add(&tokens, key, sizeof(key));
        enum ct_op_class cls = ct_op_infos[class->kind].cls;

        s->token_of[c] = token;
        s->tokens[token].sort = sort_of(&sorts, class);
        s->tokens[token].collective = cls == CT_COLL || cls == CT_ROOTED;
        s->tokens[token].hash = ct_mix64((uint64_t)token + 1);
    }
    s->ntokens = tokens.n;
    s->nsorts = sorts.n;
    ct_intern_release(&tokens);
    ct_intern_release(&sorts);
}

/* Positions of each token (counting sort), and for any two positions the hash
 * of the multiset of tokens between them. */
static void index_positions(struct ct_stream *s)
{
    int n = s->process->nops, o, t;

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
    *s = (struct ct_stream){.process = process};
    name_tokens(s);
    index_positions(s);
}

void ct_stream_release(struct ct_stream *s)
{
    free(s->token_of);
    free(s->tokens);
    free(s->positions);
    free(s->hashes);
}

int64_t ct_stream_begin(const struct ct_stream *s, int op)
{
    const struct ct_op_row *row = &s->process->ops[op];

    return s->on_gpu && row->start_ns != CT_NO_TIME ? row->start_ns
                                                    : row->enter_ns;
}

int64_t ct_stream_end(const struct ct_stream *s, int op)
{
    const struct ct_op_row *row = &s->process->ops[op];

    if (s->on_gpu && row->start_ns != CT_NO_TIME && row->gpu_ns != CT_NO_TIME)
        return row->start_ns + row->gpu_ns;
    return row->enter_ns + (row->host_ns == CT_NO_TIME ? 0 : row->host_ns);
}
