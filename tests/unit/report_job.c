/*
 * The report's sections on a job built by hand: a tensor-parallel group across
 * two hosts, a pipeline, and traces with something missing.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/sections.h"

#define MS INT64_C(1000000)
#define MIB (UINT64_C(1) << 20)

enum { TP0, TP1, PIPE, COMMS };
enum { U_TP0, U_TP1, U_PIPE, U_NORM, USAGES };

struct fixture {
    struct ct_op_row ops[100];
    struct ct_process processes[4];
    struct ct_member members[COMMS][4];
    struct ct_comm comms[COMMS];
    struct ct_usage usages[USAGES];
    struct ct_job job;
    struct ct_trace trace;
    struct ct_role labels[4];
    int of_usage[USAGES];
    struct ct_roles roles;
    struct ct_fit fits[1];
    struct ct_prediction predictions[2];
    struct ct_model model;
    struct ct_finding_row rows[2];
    struct ct_findings findings;
    struct view_cost costs[USAGES];
    struct view view;
    struct families families;
};

static int order[4] = {0, 1, 2, 3};
static const char *names[2] = {"node-a", "node-b"};

static void fill_comm(struct fixture *f, int comm, int nranks, const int *ranks,
                      int nodes)
{
    for (int i = 0; i < nranks; i++)
        f->members[comm][i].process = ranks[i];
    f->comms[comm] =
        (struct ct_comm){.uid = 0x1000u + (unsigned)comm,
                         .origin = "split",
                         .nranks = nranks,
                         .nknown = nranks,
                         .members = f->members[comm],
                         .nnodes = nodes,
                         .ndomains = nodes,
                         .link = nodes > 1 ? CT_LINK_NETWORK : CT_LINK_NODE,
                         .evidence = "host"};
}

static void fill_usage(struct fixture *f, int usage, int comm, enum ct_op base,
                       uint64_t bytes, double per_step, double median_us)
{
    f->usages[usage] =
        (struct ct_usage){.comm = comm,
                          .base = base,
                          .type = CT_TYPE_BFLOAT16,
                          .redop = base == CT_OP_SEND ? CT_NONE : CT_REDOP_SUM,
                          .count = bytes / 2,
                          .bytes = bytes,
                          .src = CT_NONE,
                          .dst = CT_NONE,
                          .link = f->comms[comm].link,
                          .evidence = "host",
                          .calls = (int64_t)per_step * 10,
                          .per_step = per_step,
                          .nsamples = 10,
                          .median_ns = (int64_t)(median_us * 1e3)};
    f->costs[usage] =
        (struct view_cost){.ranks = 2,
                           .calls = per_step,
                           .bytes = per_step * (double)bytes,
                           .transfer_ms = per_step * median_us / 1e3,
                           .wait_ms = .5};
}

static void fill_job(struct fixture *f)
{
    static const int tp0[] = {0, 2}, tp1[] = {1, 3}, pipe[] = {0, 1, 2, 3};
    static struct ct_step_row step = {.last_op = 99};

    for (int i = 0; i < 4; i++)
        f->processes[i] = (struct ct_process){.path = "t/x.db",
                                              .host = names[i / 2],
                                              .cmdline = "train --fast",
                                              .rank = i,
                                              .node = i / 2,
                                              .domain = i / 2,
                                              .ops = f->ops,
                                              .nops = 100,
                                              .steps = &step,
                                              .nsteps = 1};
    fill_comm(f, TP0, 2, tp0, 2);
    fill_comm(f, TP1, 2, tp1, 2);
    fill_comm(f, PIPE, 4, pipe, 2);
    fill_usage(f, U_TP0, TP0, CT_OP_ALL_REDUCE, 8 * MIB, 64, 400);
    fill_usage(f, U_TP1, TP1, CT_OP_ALL_REDUCE, 8 * MIB, 64, 400);
    fill_usage(f, U_PIPE, PIPE, CT_OP_SEND, 8 * MIB, 16, 200);
    fill_usage(f, U_NORM, PIPE, CT_OP_ALL_REDUCE, 4, 1, 30);
    f->job = (struct ct_job){.nprocesses = 4,
                             .processes = order,
                             .world_size = 4,
                             .nnodes = 2,
                             .ndomains = 2,
                             .node_names = names,
                             .ncomms = COMMS,
                             .comms = f->comms,
                             .nusages = USAGES,
                             .usages = f->usages,
                             .nsteps = 10,
                             .step_ns = 100 * MS,
                             .step_confidence = 1,
                             .span_ns = 1200 * MS};
    f->trace = (struct ct_trace){.nprocesses = 4,
                                 .njobs = 1,
                                 .processes = f->processes,
                                 .jobs = &f->job};
}

static void fill_label(struct fixture *f, int label, int comm,
                       enum ct_role_id role, const char *reason)
{
    struct ct_role *r = &f->labels[label];

    r->comm = comm;
    r->use = label == 3 ? "small" : "large";
    r->role = r->best = role;
    r->confidence = .9;
    snprintf(r->reasons[0], sizeof r->reasons[0], "%s", reason);
}

static void fill_derived(struct fixture *f)
{
    fill_label(f, 0, TP0, CT_ROLE_TP, "64 all-reduces per step");
    fill_label(f, 1, TP1, CT_ROLE_TP, "64 all-reduces per step");
    fill_label(f, 2, PIPE, CT_ROLE_PP, "edges form a chain");
    fill_label(f, 3, PIPE, CT_ROLE_CONTROL, "one scalar per step");
    for (int i = 0; i < USAGES; i++)
        f->of_usage[i] = i;
    f->roles = (struct ct_roles){.nroles = 4,
                                 .roles = f->labels,
                                 .of_usage = f->of_usage,
                                 .tp = 2,
                                 .pp = 2,
                                 .dp = 1,
                                 .layers_per_stage = 2,
                                 .micro_batches = 8};
    f->fits[0] = (struct ct_fit){.link = CT_LINK_NETWORK,
                                 .base = CT_OP_ALL_REDUCE,
                                 .nranks = 2,
                                 .sizes = 1,
                                 .samples = 100,
                                 .alpha_us = NAN,
                                 .algbw_GBps = NAN,
                                 .alpha_se = NAN,
                                 .algbw_se = NAN,
                                 .residual = .02,
                                 .quality = CT_FIT_PRIOR,
                                 .why = "one message size"};
    f->predictions[0] = (struct ct_prediction){.link = CT_LINK_NETWORK,
                                               .base = CT_OP_ALL_REDUCE,
                                               .nranks = 2,
                                               .bytes = 8 * MIB,
                                               .calls = 1280,
                                               .observed_us = 400,
                                               .fit_us = NAN,
                                               .prior_us = 200,
                                               .nccl_us = 250,
                                               .algbw_GBps = 20.97,
                                               .busbw_GBps = 20.97};
    f->predictions[1] = (struct ct_prediction){.link = CT_LINK_NETWORK,
                                               .base = CT_OP_SEND,
                                               .nranks = 4,
                                               .bytes = 8 * MIB,
                                               .calls = 160,
                                               .observed_us = NAN,
                                               .fit_us = NAN,
                                               .prior_us = 187,
                                               .nccl_us = NAN,
                                               .algbw_GBps = NAN,
                                               .busbw_GBps = NAN};
    f->model = (struct ct_model){1, 2, f->fits, f->predictions};
    f->rows[0] =
        (struct ct_finding_row){.id = CT_FINDING_TP_CROSSES_NODES,
                                .comm = TP0,
                                .observed_ms = 25.6,
                                .predicted_ms = 5.6,
                                .loss_ms = 20,
                                .loss_low_ms = 18,
                                .loss_high_ms = 22,
                                .groups = 2,
                                .per = "step",
                                .source = CT_SOURCE_PRIOR,
                                .confidence = .7,
                                .text = "TP group 0,2 spans node-a and node-b",
                                .advice = "keep TP inside a node"};
    f->findings = (struct ct_findings){1, f->rows};
}

static struct fixture *new_fixture(void)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    fill_job(f);
    fill_derived(f);
    f->view = (struct view){.trace = &f->trace,
                            .job = &f->job,
                            .model = &f->model,
                            .roles = &f->roles,
                            .findings = &f->findings,
                            .pipeline = {.stages = 2,
                                         .micro_batches = 8,
                                         .idle = .13,
                                         .idle_min = .11,
                                         .idle_max = .15,
                                         .idle_passes = .2,
                                         .theory_total = 1 / 9.,
                                         .theory_ideal = 1 / 8.,
                                         .samples = 40},
                            .per = "step",
                            .costs = f->costs,
                            .times = {.event = 400}};
    return f;
}

static void free_fixture(struct fixture *f)
{
    families_release(&f->families);
    free(f);
}

/* Lines are wrapped and columns aligned: neither is what is tested here. */
static void squeeze(char *text)
{
    char *to = text;

    for (const char *c = text; *c; c++) {
        if (*c != ' ' && *c != '\n')
            *to++ = *c;
        else if (to != text && to[-1] != ' ')
            *to++ = ' ';
    }
    *to = '\0';
}

static char *report(struct fixture *f, enum out_format format)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    struct out *out = out_open(file, format);

    assert_int_equal(families_build(&f->families, &f->view), 0);
    section_verdict(out, &f->view, &f->families);
    section_job(out, &f->view);
    section_roles(out, &f->view, &f->families);
    section_predictions(out, &f->view, 12);
    section_fits(out, &f->view);
    section_seed(out, &f->view, &f->families);
    section_findings(out, &f->view);
    section_quality(out, &f->view);
    assert_int_equal(out_close(out), 0);
    fclose(file);
    if (getenv("SHOW"))
        fputs(text, stdout);
    if (format == OUT_AS_TEXT)
        squeeze(text);
    return text;
}

static void expect(const char *text, const char *part)
{
    if (!strstr(text, part))
        print_error("not found: %s\nin: %s\n", part, text);
    assert_non_null(strstr(text, part));
}

static void text_tells_the_story(void **state)
{
    struct fixture *f = new_fixture();
    char *text = report(f, OUT_AS_TEXT);

    (void)state;
    expect(text, "TP_CROSSES_NODES, ranks 0,2: 20 ms of each step lost (20 %)");
    expect(text, "predicted by the prior of the link class");
    expect(text, "prior NCCL's own ratio");
    expect(text, "the worst of 2 such groups");
    expect(text, "TP 2 x PP 2 x DP 1; 2 layers per stage, 8 micro-batches");
    expect(text, "4 traced of 4, on 2 nodes (node-a, node-b)");
    /* Two groups are one line, and each rank is in one of them. */
    expect(text, "all_reduce 2 x 2");
    expect(text, "TP 26 + 0.5, PP");
    assert_null(strstr(text, "Ranks wait"));
    /* 64 calls of 8 MiB, 2 layers, 8 micro-batches: four calls each. */
    expect(text, "4 * 2(p-1)/p * b*s*h*size = 32 MiB");
    expect(text, "observed 32 MiB over 2 layers (by the number of calls) and 8 "
                 "micro-batches: 1.00 of");
    expect(text, "one message size");
    expect(text, "13.0 % of step time (ranks: 11.0 to 15.0)");
    expect(text, "20.0 % of total time, 25.0 % of ideal time");
    expect(text, "= 11.1 % of total time, (p-1)/m = 12.5 % of ideal");
    expect(text, "every rank and op is there");
    free(text);
    free_fixture(f);
}

static void uncertain_steps_are_told(void **state)
{
    struct fixture *f = new_fixture();
    char *text;

    (void)state;
    f->processes[3].nsteps = 0;
    f->job.step_confidence = .75;
    f->job.step_doubt = "ranks by themselves found others";
    f->job.met.lost = 2;
    text = report(f, OUT_AS_TEXT);
    expect(text, "Data: 2 operations of some ranks only; 1 rank without steps, "
                 "left out of means; steps are told with confidence 0.75 only");
    expect(text, "doubt ranks by themselves found others");
    free(text);
    free_fixture(f);
}

/* Who it is, is said where it is read first; and a death before any price. */
static void verdict_names_who(void **state)
{
    struct fixture *f = new_fixture();
    struct ct_finding_row *rows = f->rows;
    char *text;

    (void)state;
    rows[1] = rows[0];
    rows[0].id = CT_FINDING_STRAGGLER;
    snprintf(rows[0].who, sizeof rows[0].who, "rank 3 (node-b)");
    rows[1].id = CT_FINDING_PROCESS_DIED;
    rows[1].loss_ms = NAN;
    snprintf(rows[1].text, sizeof rows[1].text, "2 of 4 processes ended");
    f->findings.n = 1;
    text = report(f, OUT_AS_TEXT);
    expect(text, "VERDICT STRAGGLER, rank 3 (node-b): 20 ms of each step lost");
    free(text);
    families_release(&f->families);
    f->findings.n = 2;
    text = report(f, OUT_AS_TEXT);
    expect(text, "VERDICT PROCESS_DIED: 2 of 4 processes ended STRAGGLER, rank "
                 "3 (node-b): 20 ms of each step lost");
    free(text);
    free_fixture(f);
}

static void unknown_is_not_invented(void **state)
{
    struct fixture *f = new_fixture();
    char *text;

    (void)state;
    f->roles.layers_per_stage = f->roles.micro_batches = 0;
    f->roles.tp = f->roles.pp = f->roles.dp = 0;
    f->view.pipeline = (struct ct_pipeline){0};
    f->labels[2].role = CT_ROLE_UNKNOWN;
    f->labels[2].second = CT_ROLE_DP;
    f->findings.n = 0;
    f->view.times.host = 100;
    f->job.nsteps = 0;
    f->view.per = "second";
    text = report(f, OUT_AS_TEXT);
    expect(text, "Nothing was found of what commtrace knows to look for. No TP "
                 "group crosses nodes.");
    expect(text, "unknown {PP, DP}");
    expect(text, "figures are per second");
    expect(text, "layout n/a");
    expect(text, "observed n/a: no step was found");
    expect(text, "pipeline idle n/a: no pipeline was found");
    expect(text, "20 % of ops without a GPU time");
    free(text);
    free_fixture(f);
}

static void trouble_is_told(void **state)
{
    struct fixture *f = new_fixture();
    const char *skipped[] = {"t/bad.db: not a database"};
    char *text;

    (void)state;
    f->processes[3].dead = true;
    f->processes[3].end_ns = CT_NO_TIME;
    f->processes[3].recovered = 17;
    f->job.missing = 6;
    f->job.world_size = 6;
    f->job.lost_ops = 5;
    f->trace.nskipped = 1;
    f->trace.skipped = skipped;
    text = report(f, OUT_AS_TEXT);
    expect(text, "5 ops lost; ranks 4-5 left no trace; 1 process died");
    expect(text, "4 traced of 6, on 2 nodes");
    expect(text, "trouble 1 process died ranks 4-5 left no trace");
    expect(text, "died");
    expect(text, "17");
    expect(text, "not a database");
    free(text);
    free_fixture(f);
}

/* On another host nobody can say whether it lives. */
static void out_of_reach_is_not_dead(void **state)
{
    struct fixture *f = new_fixture();
    char *text;

    (void)state;
    for (int i = 2; i < 4; i++) {
        f->processes[i].end_ns = CT_NO_TIME;
        f->processes[i].ring_missing = true;
    }
    f->processes[3].dead = true;
    text = report(f, OUT_AS_TEXT);
    expect(text, "1 process died or cannot be reached");
    expect(text, "still running, ring out of reach");
    expect(text, "died?: died, or runs where it cannot be reached");
    free(text);
    free_fixture(f);
}

static void json_has_every_section(void **state)
{
    static const char *const keys[] = {
        "\"verdict\":{",     "\"job\":{",       "\"roles\":[",
        "\"predictions\":[", "\"nccl_us\":250", "\"fits\":[",
        "\"seed\":{",        "\"findings\":[",  "\"quality\":{",
        "\"alpha_us\":null", "\"tp_volume\":{", "\"loss_ms\":20"};
    struct fixture *f = new_fixture();
    char *text = report(f, OUT_AS_JSON);

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        expect(text, keys[i]);
    assert_null(strstr(text, "nan"));
    free(text);
    free_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_tells_the_story),
        cmocka_unit_test(uncertain_steps_are_told),
        cmocka_unit_test(verdict_names_who),
        cmocka_unit_test(unknown_is_not_invented),
        cmocka_unit_test(trouble_is_told),
        cmocka_unit_test(out_of_reach_is_not_dead),
        cmocka_unit_test(json_has_every_section),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
