#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command_line.h"
#include "files.h"
#include "tracegen.h"

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
    /* A rank alone calls nothing. */
    return per_step ? (int)((o->ops + per_step - 1) / per_step) : o->steps;
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

static bool is_trace(const char *name)
{
    const size_t n = strlen(name);

    return n > 3 && !strcmp(name + n - 3, ".db");
}

/* Two jobs in one folder have one truth.json. */
static bool has_traces(DIR *dir)
{
    const struct dirent *entry;

    while ((entry = readdir(dir)) != NULL)
        if (is_trace(entry->d_name))
            return true;
    return false;
}

/* 0, or -1 after a message. */
static int make_folder(const char *path)
{
    bool full;
    DIR *dir;

    if (!mkdir(path, 0777))
        return 0;
    dir = errno == EEXIST ? opendir(path) : NULL;
    if (!dir) {
        perror(path);
        return -1;
    }
    full = has_traces(dir);
    closedir(dir);
    if (full)
        fprintf(stderr, "tracegen: %s: has traces already\n", path);
    return full ? -1 : 0;
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
                        .disturbance.hang_ns = 60000000000,
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
    int failed;

    command_line_read(&o, argc, argv);
    if (make_folder(o.out))
        return 2;
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
