#include "job.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "option_values.h"
#include "tracegen.h"

static const char *const schedules[] = {"1f1b", "gpipe", "interleaved",
                                        "zero-bubble", NULL};
static const char *const contexts[] = {"ring", "ulysses", "gather", NULL};
static const char *const pipelines[] = {"pp", "world", NULL};
static const char *const norms[] = {"world", "model", NULL};

const struct job job_default = {.chunks = 1,
                                .cp = 1,
                                .shard = 1,
                                .experts = 1,
                                .moe_every = 1,
                                .scalars = 1};

static const struct field {
    const char *name;
    size_t at;
    const char *const *words;
    int low;
    enum { A_NUMBER, A_WORD, A_SWITCH, A_COUNTS } kind;
} fields[] = {
#define NUMBER(name_, field_, low_, help_) \
    {name_, offsetof(struct job, field_), NULL, low_, A_NUMBER},
#define WORD(name_, field_, words_, value_, help_) \
    {name_, offsetof(struct job, field_), words_, 0, A_WORD},
#define SWITCH(name_, field_, help_) \
    {name_, offsetof(struct job, field_), NULL, 0, A_SWITCH},
#define COUNTS(name_, field_, help_) \
    {name_, offsetof(struct job, field_), NULL, 0, A_COUNTS},
#include "job_options.def"
};

static void set_counts(struct counts *counts, const char *name,
                       const char *text)
{
    const char *at = text;
    char *end;

    do {
        if (counts->n == MAX_COUNTS)
            option_fail(name, text);
        counts->values[counts->n++] = strtoull(at, &end, 10);
        if (end == at || !counts->values[counts->n - 1])
            option_fail(name, text);
        at = end + 1;
    } while (*end == ',');
    if (*end)
        option_fail(name, text);
}

static int word(const char *name, const char *text, const char *const *words)
{
    int i;

    for (i = 0; words[i]; i++)
        if (!strcmp(text, words[i]))
            return i;
    option_fail(name, text);
}

static void set_field(struct job *job, const struct field *field,
                      const char *value)
{
    char *at = (char *)job + field->at;

    switch (field->kind) {
    case A_NUMBER:
        *(int *)at = option_int(field->name, value, field->low);
        break;
    case A_WORD:
        *(int *)at = word(field->name, value, field->words);
        break;
    case A_SWITCH:
        *(int *)at = 1;
        break;
    case A_COUNTS:
        set_counts((struct counts *)at, field->name, value);
    }
}

bool job_set(struct options *o, const char *name, const char *value)
{
    unsigned i;

    for (i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (!strcmp(name, fields[i].name)) {
            set_field(&o->job, &fields[i], value);
            return true;
        }
    return false;
}

const char *job_check(struct options *o)
{
    struct job *job = &o->job;
    const int inner = job->experts > job->shard ? job->experts : job->shard;

    o->degree[CP] = job->cp;
    if (job->schedule != SCHEDULE_INTERLEAVED)
        job->chunks = 1;
    if (o->layers % (o->degree[PP] * job->chunks))
        return "layers must be a multiple of pp and its chunks";
    if (job->schedule == SCHEDULE_INTERLEAVED &&
        o->micro_batches % o->degree[PP])
        return "interleaved, micro-batches must be a multiple of pp";
    if (job->chunks > 1 && o->degree[PP] < 3)
        return "an interleaved pipeline has at least 3 stages";
    if (job->experts > 1 && job->shard > 1)
        return "experts and shards of FSDP cannot be had together";
    if (job->shard > 1 && job->zero != 3)
        return "only ZeRO 3 shards within a part of the ranks";
    if (inner > 1) {
        if (o->degree[DP] % inner)
            return "dp must be a multiple of ep and of shard";
        o->degree[IN] = inner;
        o->degree[DP] /= inner;
    }
    if (job->buckets.n)
        o->buckets = job->buckets.n;
    return NULL;
}

const char *job_schedule(const struct job *job)
{
    return schedules[job->schedule];
}
