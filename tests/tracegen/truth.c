#include "tracegen.h"

#include <stdio.h>

static void write_comms(FILE *f, const struct layout *layout)
{
    int i;

    fprintf(f, " \"communicators\": [\n");
    for (i = 0; i < layout->ncomms; i++)
        fprintf(f,
                "  {\"uid\": %llu, \"role\": \"%s\", \"ranks\": %d,"
                " \"crosses\": %s}%s\n",
                (unsigned long long)layout->comms[i].uid,
                layout_role(layout, i), layout->comms[i].nranks,
                layout->comms[i].crosses ? "true" : "false",
                i + 1 < layout->ncomms ? "," : "");
    fprintf(f, " ],\n");
}

static void write_links(FILE *f, const struct options *o)
{
    static const char *const names[] = {"inside", "between"};
    int i;

    for (i = 0; i < 2; i++)
        fprintf(f,
                " \"%s\": {\"alpha_us\": %.17g, \"busbw_GBps\": %.17g,"
                " \"send_us\": %.17g, \"tp_us\": %.17g},\n",
                names[i], o->alpha_us[i], o->GBps[i],
                transfer_ns(o, i, CT_OP_SEND, 2, o->hidden) / 1e3,
                transfer_ns(o, i, CT_OP_ALL_REDUCE, o->degree[TP], o->hidden) /
                    1e3);
}

/* Segments of one kind, or all: first and last op, from 0. */
static void write_segments(FILE *f, const struct rank *rank)
{
    static const char *const names[] = {"warm_up", "step", "evaluation",
                                        "checkpoint", "forward"};
    int i;

    for (i = 0; i < rank->nsegments; i++) {
        const struct segment *segment = &rank->segments[i];

        if (segment->last < 0) /* it was never over */
            break;
        fprintf(f, "%s[\"%s\",%lld,%lld,%d]", i ? "," : "",
                names[segment->kind], (long long)segment->first,
                (long long)segment->last, segment->micro_batches);
    }
}

static void write_steps(FILE *f, const struct rank *rank)
{
    const char *comma = "";
    int i;

    for (i = 0; i < rank->nsegments; i++) {
        const struct segment *segment = &rank->segments[i];

        if (segment->kind != SEGMENT_STEP || segment->last < 0)
            continue;
        fprintf(f, "%s[%lld,%lld]", comma, (long long)segment->first,
                (long long)segment->last);
        comma = ",";
    }
}

static void write_ranks(FILE *f, const struct simulation *s, const char *name,
                        void (*write)(FILE *f, const struct rank *rank),
                        const char *after)
{
    int r;

    fprintf(f, " \"%s\": [\n", name);
    for (r = 0; r < s->layout->nranks; r++) {
        fprintf(f, "  [");
        write(f, &s->ranks[r]);
        fprintf(f, "]%s\n", r + 1 < s->layout->nranks ? "," : "");
    }
    fprintf(f, " ]%s\n", after);
}

int truth_write(const struct simulation *s)
{
    const struct options *o = s->layout->options;
    char path[4096];
    int64_t ops = 0;
    FILE *f;
    int r;

    snprintf(path, sizeof(path), "%s/truth.json", o->out);
    f = fopen(path, "w");
    if (!f) {
        perror(path);
        return -1;
    }
    for (r = 0; r < s->layout->nranks; r++)
        ops += s->ranks[r].nops;
    fprintf(f,
            "{\"tp\": %d, \"pp\": %d, \"dp\": %d, \"hosts\": %d,"
            " \"layers\": %d, \"micro_batches\": %d,\n"
            " \"hidden_bytes\": %llu, \"seed\": %llu, \"ops\": %lld,\n",
            o->degree[TP], o->degree[PP], o->degree[DP] * o->degree[IN],
            o->hosts, o->layers, o->micro_batches,
            (unsigned long long)o->hidden, (unsigned long long)o->seed,
            (long long)ops);
    fprintf(f,
            " \"schedule\": \"%s\", \"chunks\": %d, \"cp\": %d,"
            " \"ep\": %d, \"zero\": %d,\n",
            job_schedule(&o->job), o->job.chunks, o->job.cp, o->job.experts,
            o->job.zero);
    write_links(f, o);
    write_comms(f, s->layout);
    write_ranks(f, s, "steps", write_steps, ",");
    write_ranks(f, s, "segments", write_segments, "");
    fprintf(f, "}\n");
    return fclose(f) ? -1 : 0;
}
