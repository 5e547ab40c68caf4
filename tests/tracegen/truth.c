#include "tracegen.h"

#include <stdio.h>

static const char *const roles[COMM_KINDS] = {"control", "TP", "PP", "DP"};

static void write_comms(FILE *f, const struct layout *layout)
{
    int i;

    fprintf(f, " \"communicators\": [\n");
    for (i = 0; i < layout->ncomms; i++)
        fprintf(f,
                "  {\"uid\": %llu, \"role\": \"%s\", \"ranks\": %d,"
                " \"crosses\": %s}%s\n",
                (unsigned long long)layout->comms[i].uid,
                roles[layout->comms[i].kind], layout->comms[i].nranks,
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

/* First and last op of each step, counting a rank's ops from 0. */
static void write_steps(FILE *f, const struct simulation *s)
{
    int r, i;

    fprintf(f, " \"steps\": [\n");
    for (r = 0; r < s->layout->nranks; r++) {
        const struct rank *rank = &s->ranks[r];

        fprintf(f, "  [");
        for (i = 0; i < rank->nsteps; i++)
            fprintf(f, "%s[%d,%d]", i ? "," : "", rank->steps[i].first,
                    rank->steps[i].last);
        fprintf(f, "]%s\n", r + 1 < s->layout->nranks ? "," : "");
    }
    fprintf(f, " ]\n");
}

int truth_write(const struct simulation *s)
{
    const struct options *o = s->layout->options;
    char path[4096];
    long ops = 0;
    FILE *f;
    int r;

    snprintf(path, sizeof(path), "%s/truth.json", o->out);
    f = fopen(path, "w");
    if (!f) {
        perror(path);
        return -1;
    }
    for (r = 0; r < s->layout->nranks; r++)
        ops += s->ranks[r].nrecords;
    fprintf(f,
            "{\"tp\": %d, \"pp\": %d, \"dp\": %d, \"hosts\": %d,"
            " \"layers\": %d, \"micro_batches\": %d,\n"
            " \"hidden_bytes\": %llu, \"seed\": %llu, \"ops\": %ld,\n",
            o->degree[TP], o->degree[PP], o->degree[DP], o->hosts, o->layers,
            o->micro_batches, (unsigned long long)o->hidden,
            (unsigned long long)o->seed, ops);
    write_links(f, o);
    write_comms(f, s->layout);
    write_steps(f, s);
    fprintf(f, "}\n");
    return fclose(f) ? -1 : 0;
}
