#include "command_line.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "option_values.h"
#include "tracegen.h"

static void set_pair(const char *name, const char *text, double *values)
{
    option_numbers(name, text, values, 2);
    if (!(values[0] >= 1e-9 && values[1] >= 1e-9))
        option_fail(name, text);
}

static void set_alpha(struct options *o, const char *name, const char *value)
{
    set_pair(name, value, o->alpha_us);
}

static void set_bandwidth(struct options *o, const char *name,
                          const char *value)
{
    set_pair(name, value, o->GBps);
}

static void set_nccl(struct options *o, const char *name, const char *value)
{
    if (!strcmp(value, "log"))
        o->nccl = NCCL_LOG;
    else if (!strcmp(value, "kernel"))
        o->nccl = NCCL_KERNELS;
    else
        option_fail(name, value);
}

/* Data parallelism is two axes, the inner one first. */
static void set_order(struct options *o, const char *name, const char *text)
{
    static const char *const names[AXES] = {"tp", "cp", "", "dp", "pp"};
    bool seen[AXES] = {false};
    int i, a, n = 0;

    for (i = 0; text[i]; i += 2 + (text[i + 2] == ',')) {
        for (a = 0; a < AXES && (!*names[a] || strncmp(text + i, names[a], 2));
             a++)
            ;
        if (a == AXES || seen[a] || (text[i + 2] && text[i + 2] != ','))
            option_fail(name, text);
        seen[a] = true;
        if (a == DP)
            o->order[n++] = IN;
        o->order[n++] = (enum axis)a;
    }
    seen[IN] = seen[DP];
    for (a = 0; a < AXES; a++)
        if (!seen[a])
            o->order[n++] = (enum axis)a;
}

static void set_out(struct options *o, const char *name, const char *value)
{
    (void)name;
    o->out = value;
}

static const struct option_row layout_words[] = {
    {"order", "tp,dp,pp", set_order, "axes, innermost first"},
    {NULL, NULL, NULL, NULL}};

static const struct option_row time_words[] = {
    {"alpha-us", "A,B", set_alpha, "inside, between domains (10,30)"},
    {"GBps", "A,B", set_bandwidth, "bus bandwidth there (200,25)"},
    {NULL, NULL, NULL, NULL}};

static const struct option_row output_words[] = {
    {"out", "DIR", set_out, "where the files go: a folder without traces"},
    {"nccl", "log|kernel", set_nccl,
     "what NCCL says: its table and the choices of rank 0; of all, with kernel "
     "times"},
    {NULL, NULL, NULL, NULL}};

enum group { LAYOUT, TIME, DISTURBANCE, CLOCKS, DAMAGE, OUTPUT, GROUPS };

static const struct {
    const char *title;
    const struct option_row *rows;
} groups[GROUPS] = {
    [LAYOUT] = {"Layout and program", layout_words},
    [TIME] = {"Time", time_words},
    [DISTURBANCE] = {"Disturbance", disturb_options},
    [CLOCKS] = {"Clocks", clocks_options},
    [DAMAGE] = {"Damage", damage_options},
    [OUTPUT] = {"Output", output_words},
};

static const struct field {
    enum group group;
    const char *name;
    enum { AN_INT, A_SIZE, A_REAL, A_SWITCH } kind;
    double low;
    size_t at;
    const char *help;
} fields[] = {
#define FIELD(group_, name_, kind_, low_, field_, help_)                    \
    {                                                                       \
        group_, name_, kind_, low_, offsetof(struct options, field_), help_ \
    }
    FIELD(LAYOUT, "tp", AN_INT, 1, degree[TP], "tensor parallel ranks (1)"),
    FIELD(LAYOUT, "pp", AN_INT, 1, degree[PP], "pipeline stages (1)"),
    FIELD(LAYOUT, "dp", AN_INT, 1, degree[DP], "data parallel ranks (1)"),
    FIELD(LAYOUT, "hosts", AN_INT, 1, hosts, "of equally many ranks (1)"),
    FIELD(LAYOUT, "domain-hosts", AN_INT, 1, domain_hosts,
          "of an NVLink domain (1)"),
    FIELD(LAYOUT, "layers", AN_INT, 1, layers, "in all (8)"),
    FIELD(LAYOUT, "micro-batches", AN_INT, 1, micro_batches, "per step (8)"),
    FIELD(LAYOUT, "steps", AN_INT, 1, steps, "(10)"),
    FIELD(LAYOUT, "ops", A_SIZE, 1, ops, "as many steps as give about N ops"),
    FIELD(LAYOUT, "hidden", A_SIZE, 2, hidden,
          "bytes of an activation (4194304)"),
    FIELD(LAYOUT, "bucket", A_SIZE, 40, bucket,
          "bytes of a DP all-reduce (25 MiB)"),
    FIELD(LAYOUT, "buckets", AN_INT, 0, buckets, "(4)"),
    FIELD(LAYOUT, "barriers", AN_INT, 0, barriers,
          "scalar all-reduces before the start (1)"),
    FIELD(LAYOUT, "eval-every", AN_INT, 0, eval_every,
          "steps between evaluations (0: none)"),
    FIELD(LAYOUT, "lone-groups", A_SWITCH, 0, lone_groups,
          "each lone send, recv in a group"),
    FIELD(LAYOUT, "sweep", A_SWITCH, 0, sweep,
          "message sizes x 25 instead of steps"),
    FIELD(TIME, "compute-us", A_REAL, 0, compute_us,
          "half a layer, forward (300)"),
    FIELD(DISTURBANCE, "jitter", A_REAL, 0, jitter,
          "sigma of lognormal factors (0.02)"),
    FIELD(OUTPUT, "truth-db", A_SWITCH, 0, truth_db,
          "the truth of every op, in truth.sqlite"),
    FIELD(OUTPUT, "threads", AN_INT, 1, threads,
          "that write (as many as cores)"),
    FIELD(OUTPUT, "portion", A_SIZE, 1, portion,
          "ops kept in memory before they are written"),
    FIELD(OUTPUT, "seed", A_SIZE, 0, seed, "(1)"),
};

#define FIELDS (sizeof(fields) / sizeof(*fields))

static bool set_field(struct options *o, const char *name, const char *value)
{
    const struct field *field = fields;
    char *at;

    while (field < fields + FIELDS && strcmp(field->name, name) != 0)
        field++;
    if (field == fields + FIELDS)
        return false;
    at = (char *)o + field->at;
    if (field->kind == AN_INT)
        *(int *)at = option_int(name, value, (int)field->low);
    else if (field->kind == A_SIZE)
        *(uint64_t *)at = (uint64_t)option_number(name, value, field->low);
    else if (field->kind == A_REAL)
        *(double *)at = option_number(name, value, field->low);
    else
        *(bool *)at = true;
    return true;
}

static void set(struct options *o, const char *name, const char *value)
{
    int i = 0;

    if (set_field(o, name, value) || job_set(o, name, value))
        return;
    while (i < GROUPS && !option_set(groups[i].rows, o, name, value))
        i++;
}

static void say(FILE *f, const char *name, const char *value, const char *help)
{
    int n = fprintf(f, "  --%s %s", name, value);

    fprintf(f, "%*s%s\n", n < 28 ? 28 - n : 1, "", help);
}

static void say_job_options(FILE *f)
{
#define NUMBER(name_, field_, low_, help_) say(f, name_, "N", help_);
#define WORD(name_, field_, words_, value_, help_) say(f, name_, value_, help_);
#define SWITCH(name_, field_, help_) say(f, name_, "", help_);
#define COUNTS(name_, field_, help_) say(f, name_, "N,...", help_);
#include "job_options.def"
}

static void say_group(FILE *f, enum group group)
{
    const struct option_row *row;
    size_t i;

    fprintf(f, "\n%s:\n", groups[group].title);
    for (i = 0; i < FIELDS; i++)
        if (fields[i].group == group)
            say(f, fields[i].name, fields[i].kind == A_SWITCH ? "" : "N",
                fields[i].help);
    for (row = groups[group].rows; row->name; row++)
        say(f, row->name, row->value, row->help);
    if (group == LAYOUT)
        say_job_options(f);
}

static void usage(FILE *f)
{
    int group;

    fputs(
        "usage: tracegen --out DIR [options]\n"
        "Writes the trace of a training job that never ran, and truth.json.\n",
        f);
    for (group = 0; group < GROUPS; group++)
        say_group(f, (enum group)group);
    fputs("\nexample: tracegen --tp 4 --pp 2 --hosts 2 --out /tmp/t\n", f);
}

struct names {
    struct option *all;
    int n, capacity;
};

static void add_name(struct names *names, const char *name, int has_value,
                     int key)
{
    names->all =
        grow(names->all, &names->capacity, names->n, sizeof(*names->all));
    names->all[names->n++] = (struct option){name, has_value, NULL, key};
}

enum { OPTION = 1, HELP };

static struct option *all_names(void)
{
    struct names names = {0};
    const struct option_row *row;
    size_t i;

    for (i = 0; i < FIELDS; i++)
        add_name(&names, fields[i].name, fields[i].kind != A_SWITCH, OPTION);
#define NUMBER(name_, ...) add_name(&names, name_, 1, OPTION);
#define WORD(name_, ...) add_name(&names, name_, 1, OPTION);
#define SWITCH(name_, ...) add_name(&names, name_, 0, OPTION);
#define COUNTS(name_, ...) add_name(&names, name_, 1, OPTION);
#include "job_options.def"
    for (i = 0; i < GROUPS; i++)
        for (row = groups[i].rows; row->name; row++)
            add_name(&names, row->name, 1, OPTION);
    add_name(&names, "help", 0, HELP);
    add_name(&names, NULL, 0, 0);
    return names.all;
}

_Noreturn static void misuse(void)
{
    usage(stderr);
    exit(2);
}

/* The first option that names what the job does not have. */
static const char *check_names(const struct options *o, int nranks)
{
    const char *name = disturb_check(o, nranks);

    if (!name)
        name = damage_check(o, nranks);
    return name ? name : clocks_check(o);
}

static void check(struct options *o)
{
    const char *why = job_check(o), *name;
    double ranks = 1;
    int axis;

    for (axis = 0; axis < AXES; axis++)
        ranks *= o->degree[axis];
    if (!why && (o->hosts > ranks || ranks > MAX_RANKS))
        why = "there cannot be more hosts than ranks, or more than 65536 ranks";
    if (why) {
        fprintf(stderr, "tracegen: %s\n", why);
        exit(2);
    }
    name = check_names(o, (int)ranks);
    if (name) {
        fprintf(stderr, "tracegen: --%s: the job has no such rank or host\n",
                name);
        exit(2);
    }
}

void command_line_read(struct options *o, int argc, char **argv)
{
    struct option *known = all_names();
    int key, index = 0;

    while ((key = getopt_long(argc, argv, "", known, &index)) == OPTION)
        set(o, known[index].name, optarg);
    free(known);
    if (key == HELP) {
        usage(stdout);
        exit(0);
    }
    if (key != -1 || optind < argc || !o->out)
        misuse();
    check(o);
}
