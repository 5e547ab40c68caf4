#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "option_values.h"
#include "tracegen.h"

static void usage(FILE *f)
{
    fputs(
        "usage: tracegen --out DIR [options]\n"
        "Writes the trace of a training job that never ran, and truth.json.\n"
        "  --tp N --pp N --dp N      parallel degrees (1)\n"
        "  --order tp,dp,pp          axes, innermost first\n"
        "  --hosts N                 hosts, of equally many ranks (1)\n"
        "  --domain-hosts N          of an NVLink domain (1)\n"
        "  --layers N                layers in all (8)\n"
        "  --micro-batches N         per step (8)\n"
        "  --steps N                 (10)\n"
        "  --ops N                   as many steps as give about N ops\n"
        "  --hidden BYTES            of an activation (4194304)\n"
        "  --bucket BYTES --buckets N  of DP all-reduces (25 MiB, 4)\n"
        "  --alpha-us A,B            inside, between domains (10,30)\n"
        "  --GBps A,B                bus bandwidth (200,25)\n"
        "  --compute-us T            half a layer, forward (300)\n"
        "  --jitter S                sigma of lognormal factors (0.02)\n"
        "  --barriers N              scalar all-reduces before the start (1)\n"
        "  --eval-every N            steps between evaluations (0: none)\n"
        "  --lone-groups             each lone send, recv in a group\n"
        "  --sweep                   message sizes x 25 instead of steps\n"
#define NUMBER(name_, field_, low_, help_) "  --" name_ " N: " help_ "\n"
#define WORD(name_, field_, words_, help_) "  --" name_ " " help_ "\n"
#define SWITCH(name_, field_, help_) "  --" name_ ": " help_ "\n"
#define COUNTS(name_, field_, help_) "  --" name_ " N,...: " help_ "\n"
#include "job_options.def"
        "  --nccl log|kernel         what NCCL says: its table and the "
        "choices\n"
        "                            of rank 0; of all, with kernel times\n"
        "  --truth-db                the truth of every op, in truth.sqlite\n"
        "  --threads N               that write (as many as cores)\n"
        "  --portion N               ops kept in memory before they are "
        "written\n"
        "  --seed N                  (1)\n",
        f);
    fputs(disturb_help, f);
    fputs(clocks_help, f);
    fputs(damage_help, f);
    fputs("example: tracegen --tp 4 --pp 2 --hosts 2 --out /tmp/t\n", f);
}

static void pair(const char *option, char *text, double *values)
{
    char *comma = strchr(text, ',');

    if (!comma)
        option_fail(option, text);
    *comma = 0;
    values[0] = option_number(option, text, 1e-9);
    values[1] = option_number(option, comma + 1, 1e-9);
}

static void nccl(struct options *o, const char *name, const char *text)
{
    if (!strcmp(text, "log"))
        o->nccl = NCCL_LOG;
    else if (!strcmp(text, "kernel"))
        o->nccl = NCCL_KERNELS;
    else
        option_fail(name, text);
}

/* Data parallelism is two axes, the inner one first. */
static void order(struct options *o, const char *text)
{
    static const char *const names[AXES] = {"tp", "cp", "", "dp", "pp"};
    bool seen[AXES] = {false};
    int i, a, n = 0;

    for (i = 0; text[i]; i += 2 + (text[i + 2] == ',')) {
        for (a = 0; a < AXES && (!*names[a] || strncmp(text + i, names[a], 2));
             a++)
            ;
        if (a == AXES || seen[a] || (text[i + 2] && text[i + 2] != ','))
            option_fail("order", text);
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

static const struct option names[] = {
    {"tp", 1, NULL, 't'},           {"pp", 1, NULL, 'p'},
    {"dp", 1, NULL, 'd'},           {"order", 1, NULL, 'o'},
    {"hosts", 1, NULL, 'h'},        {"domain-hosts", 1, NULL, 'V'},
    {"layers", 1, NULL, 'l'},       {"micro-batches", 1, NULL, 'm'},
    {"steps", 1, NULL, 's'},        {"ops", 1, NULL, 'n'},
    {"hidden", 1, NULL, 'b'},       {"bucket", 1, NULL, 'B'},
    {"buckets", 1, NULL, 'k'},      {"alpha-us", 1, NULL, 'a'},
    {"GBps", 1, NULL, 'g'},         {"compute-us", 1, NULL, 'c'},
    {"jitter", 1, NULL, 'j'},       {"slow", 1, NULL, 'W'},
    {"slow-host", 1, NULL, 'W'},    {"slow-link", 1, NULL, 'W'},
    {"slow-nic", 1, NULL, 'W'},     {"curve", 1, NULL, 'W'},
    {"contention", 1, NULL, 'W'},   {"kill", 1, NULL, 'W'},
    {"skip", 1, NULL, 'W'},         {"end-us", 1, NULL, 'W'},
    {"end-order-us", 1, NULL, 'W'}, {"barriers", 1, NULL, 'r'},
    {"eval-every", 1, NULL, 'e'},   {"lone-groups", 0, NULL, 'L'},
    {"sweep", 0, NULL, 'S'},        {"nccl", 1, NULL, 'N'},
#define NUMBER(name_, ...) {name_, 1, NULL, 'J'},
#define WORD(name_, ...) {name_, 1, NULL, 'J'},
#define SWITCH(name_, ...) {name_, 0, NULL, 'J'},
#define COUNTS(name_, ...) {name_, 1, NULL, 'J'},
#include "job_options.def"
    {"clock-us", 1, NULL, 'C'},     {"drift-ppm", 1, NULL, 'C'},
    {"wander-ppm", 1, NULL, 'C'},   {"host-clock", 1, NULL, 'C'},
    {"tick-ns", 1, NULL, 'C'},      {"gpu-us", 1, NULL, 'C'},
    {"drop", 1, NULL, 'D'},         {"drop-launches", 1, NULL, 'D'},
    {"missing", 1, NULL, 'D'},      {"cut", 1, NULL, 'D'},
    {"mismatch", 1, NULL, 'D'},     {"truth-db", 0, NULL, 'T'},
    {"threads", 1, NULL, 'Z'},      {"portion", 1, NULL, 'Q'},
    {"seed", 1, NULL, 'x'},         {"out", 1, NULL, 'O'},
    {"help", 0, NULL, 'H'},         {NULL, 0, NULL, 0}};

static void set(struct options *o, int key, const char *name, char *value)
{
    switch (key) {
    case 't':
        o->degree[TP] = (int)option_number(name, value, 1);
        break;
    case 'p':
        o->degree[PP] = (int)option_number(name, value, 1);
        break;
    case 'd':
        o->degree[DP] = (int)option_number(name, value, 1);
        break;
    case 'o':
        order(o, value);
        break;
    case 'h':
        o->hosts = (int)option_number(name, value, 1);
        break;
    case 'V':
        o->domain_hosts = (int)option_number(name, value, 1);
        break;
    case 'l':
        o->layers = (int)option_number(name, value, 1);
        break;
    case 'm':
        o->micro_batches = (int)option_number(name, value, 1);
        break;
    case 's':
        o->steps = (int)option_number(name, value, 1);
        break;
    case 'n':
        o->ops = (long)option_number(name, value, 1);
        break;
    case 'b':
        o->hidden = (uint64_t)option_number(name, value, 2);
        break;
    case 'B':
        o->bucket = (uint64_t)option_number(name, value, 40);
        break;
    case 'k':
        o->buckets = (int)option_number(name, value, 0);
        break;
    case 'a':
        pair(name, value, o->alpha_us);
        break;
    case 'g':
        pair(name, value, o->GBps);
        break;
    case 'c':
        o->compute_us = option_number(name, value, 0);
        break;
    case 'j':
        o->jitter = option_number(name, value, 0);
        break;
    case 'r':
        o->barriers = (int)option_number(name, value, 0);
        break;
    case 'e':
        o->eval_every = (int)option_number(name, value, 0);
        break;
    case 'L':
        o->lone_groups = true;
        break;
    case 'S':
        o->sweep = true;
        break;
    case 'N':
        nccl(o, name, value);
        break;
    case 'J':
        job_set(o, name, value);
        break;
    case 'W':
        disturb_set(o, name, value);
        break;
    case 'C':
        clocks_set(o, name, value);
        break;
    case 'D':
        damage_set(o, name, value);
        break;
    case 'Q':
        o->portion = (int64_t)option_number(name, value, 1);
        break;
    case 'Z':
        o->threads = (int)option_number(name, value, 1);
        break;
    case 'T':
        o->truth_db = true;
        break;
    case 'x':
        o->seed = (uint64_t)option_number(name, value, 0);
        break;
    case 'O':
        o->out = value;
        break;
    case 'H':
        usage(stdout);
        exit(0);
    default:
        usage(stderr);
        exit(2);
    }
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
    const char *why, *name;
    int ranks = 1, axis;

    if (!o->out) {
        usage(stderr);
        exit(2);
    }
    why = job_check(o);
    for (axis = 0; axis < AXES; axis++)
        ranks *= o->degree[axis];
    if (!why && (o->hosts > ranks || ranks > 65536))
        why = "there cannot be more hosts than ranks, or more than 65536 ranks";
    if (why) {
        fprintf(stderr, "tracegen: %s\n", why);
        exit(2);
    }
    name = check_names(o, ranks);
    if (name) {
        fprintf(stderr, "tracegen: --%s: the job has no such rank or host\n",
                name);
        exit(2);
    }
    if (mkdir(o->out, 0777) && errno != EEXIST) {
        perror(o->out);
        exit(2);
    }
}

static void program_part(struct program *p, const struct layout *layout, int r,
                         int number)
{
    if (layout->options->job.serve)
        program_forward(p, layout, r, number);
    else
        program_step(p, layout, r, number);
}

static void program_begin(struct program *p, const struct layout *layout, int r,
                          int number)
{
    program_setup(p, layout, r, number);
    if (layout->options->sweep)
        program_sweep(p, layout, r, number);
}

static void run_steps(struct simulation *s, struct files *files, int n)
{
    int step;

    for (step = 0; step < n; step++) {
        simulation_call(s, program_part, step);
        if (may_hang(s->layout->options))
            continue; /* nobody knows who will come to its next step */
        simulation_run(s);
        files_add(files);
    }
}

static int steps_for(struct simulation *s, const struct options *o)
{
    int64_t per_step = 0;
    int r;

    if (!o->ops)
        return o->steps;
    for (r = 0; r < s->layout->nranks; r++) {
        struct program program = {0};

        program_part(&program, s->layout, r, 0);
        per_step += program_ops(&program);
        free(program.code);
    }
    return (int)((o->ops + per_step - 1) / per_step);
}

static void simulate(struct simulation *s, struct files *files,
                     const struct options *o)
{
    int r;

    for (r = 0; r < s->layout->nranks; r++) {
        s->ranks[r].host_ns = 10000;
        s->ranks[r].streams[COMPUTE_STREAM].now_ns = 5000000;
    }
    simulation_call(s, program_begin, 0);
    if (!may_hang(o))
        simulation_run(s);
    if (!o->sweep)
        run_steps(s, files, steps_for(s, o));
    if (may_hang(o))
        simulation_run(s);
}

int main(int argc, char **argv)
{
    struct options o = {.degree = {1, 1, 1, 1, 1},
                        .order = {TP, CP, IN, DP, PP},
                        .hosts = 1,
                        .layers = 8,
                        .micro_batches = 8,
                        .steps = 10,
                        .barriers = 1,
                        .hidden = 4 << 20,
                        .bucket = 25 << 20,
                        .buckets = 4,
                        .alpha_us = {10, 30},
                        .GBps = {200, 25},
                        .compute_us = 300,
                        .jitter = 0.02,
                        .damage = {.drop_run = 1},
                        .tick_ns = 1,
                        .domain_hosts = 1,
                        .clocks = {.wander_s = 600},
                        .portion = 8000000,
                        .seed = 1,
                        .job = job_default};
    struct simulation s;
    struct layout layout;
    struct files *files;
    int key, index = 0, failed;

    while ((key = getopt_long(argc, argv, "", names, &index)) != -1)
        set(&o, key, names[index].name, optarg);
    check(&o);
    layout_init(&layout, &o);
    simulation_init(&s, &layout);
    files = files_begin(&s);
    if (!files)
        return 1;
    simulate(&s, files, &o);
    failed = files_end(files) | truth_write(&s);
    simulation_release(&s);
    layout_release(&layout);
    return failed ? 1 : 0;
}
