/*
 * The price of a crossing: the loss against the same job on one host, where
 * the prediction came from, and what the other findings say.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "findings/findings.h"
#include "roles_jobs.h"

struct report {
    struct maker *maker;
    const struct ct_trace *trace;
    struct ct_job *job;
    struct ct_model *model;
    struct ct_roles *roles;
    struct ct_findings *findings;
};

static struct report report_on(const struct layout *layout, double jitter,
                               const struct ct_model *reference)
{
    struct report report = {.maker = layout_make(layout)};

    maker_jitter(report.maker, jitter);
    report.trace = maker_run(report.maker);
    report.job = &report.trace->jobs[0];
    report.model = ct_model_build(report.trace, report.job);
    report.roles = ct_roles_build(report.trace, report.job);
    report.findings = ct_findings_build(report.trace, report.job, report.model,
                                        reference, report.roles, NULL);
    assert_non_null(report.findings);
    return report;
}

static void end(struct report *report)
{
    ct_findings_free(report->findings);
    ct_roles_free(report->roles);
    ct_model_free(report->model);
    maker_free(report->maker);
}

static const struct ct_finding_row *find(const struct report *report,
                                         enum ct_finding id)
{
    const struct ct_finding_row *found = NULL;

    for (int i = 0; i < report->findings->n; i++)
        if (report->findings->rows[i].id == id) {
            assert_null(found); /* one row per kind here */
            found = &report->findings->rows[i];
        }
    return found;
}

/* Tensor-parallel transfer time per step of the slowest group: the truth. */
static double tensor_ms(const struct report *report)
{
    double worst = 0;

    for (int comm = 0; comm < report->job->ncomms; comm++) {
        double us = 0;

        for (int i = 0; i < report->job->nusages; i++) {
            const struct ct_usage *usage = &report->job->usages[i];

            if (usage->comm == comm && usage->per_step > 0 &&
                report->roles->roles[report->roles->of_usage[i]].role ==
                    CT_ROLE_TP)
                us += usage->per_step * (double)usage->transfer_ns /
                      (double)usage->calls / 1e3;
        }
        worst = fmax(worst, us);
    }
    return worst / 1e3;
}

/* A sweep inside a node, as samples/jobs/sweep.c makes it. */
static struct ct_model *sweep_model(int n, struct maker **maker_p)
{
    struct maker *maker = maker_new(n, n, 3);
    int ranks[64];

    for (int i = 0; i < n; i++)
        ranks[i] = i;
    const int comm = maker_comm(maker, ranks, n);

    maker_jitter(maker, .05);
    for (int rank = 0; rank < n; rank++)
        for (uint64_t count = 256; count <= 16u << 20; count *= 4)
            for (int i = 0; i < 12; i++)
                maker_op(maker, rank, comm, CT_OP_ALL_REDUCE, count,
                         CT_REDOP_SUM, CT_NONE);
    const struct ct_trace *trace = maker_run(maker);

    *maker_p = maker;
    return ct_model_build(trace, &trace->jobs[0]);
}

static struct layout crossing(int tp, int pp, int dp, const char *order)
{
    struct layout layout = default_layout;

    layout.tp = tp;
    layout.pp = pp;
    layout.dp = dp;
    memcpy(layout.order, order, sizeof layout.order);
    return layout;
}

static const struct {
    int tp, pp, dp;
    const char *order;
    bool crosses;
} cases[] = {{2, 2, 2, "tpd", false}, {2, 2, 2, "pdt", true},
             {2, 2, 2, "dpt", true},  {4, 2, 1, "tpd", false},
             {4, 2, 1, "ptd", true},  {2, 4, 1, "tpd", false},
             {2, 4, 1, "ptd", true},  {8, 1, 1, "tpd", true},
             {1, 4, 2, "tpd", false}, {1, 1, 8, "tpd", false}};

static void check_loss(const struct report *across, const struct layout *layout,
                       const struct ct_finding_row *row)
{
    struct layout home = *layout;
    double truth;

    home.ranks_per_node = 8;
    struct report inside = report_on(&home, .05, NULL);

    /* A pipeline pays for each stage's calls while it fills and drains, too. */
    truth = (tensor_ms(across) - tensor_ms(&inside)) *
            (layout->micro_batches + layout->pp - 1) / layout->micro_batches;
    assert_null(find(&inside, CT_FINDING_TP_CROSSES_NODES));
    if (!(fabs(row->loss_ms / truth - 1) < .15))
        fail_msg("loss %.3f ms, truth %.3f ms: %s", row->loss_ms, truth,
                 row->text);
    assert_true(row->loss_low_ms < truth && truth < row->loss_high_ms);
    assert_true(row->confidence > .6 && row->confidence <= 1);
    end(&inside);
}

static void test_exactly_when_it_crosses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct layout layout =
            crossing(cases[i].tp, cases[i].pp, cases[i].dp, cases[i].order);
        struct maker *maker;
        struct ct_model *reference = sweep_model(8, &maker);
        struct report report = report_on(&layout, .05, reference);
        const struct ct_finding_row *row =
            find(&report, CT_FINDING_TP_CROSSES_NODES);

        assert_int_equal(row != NULL, cases[i].crosses);
        if (row) {
            if (getenv("SHOW"))
                printf("%s\n  -> %s\n", row->text, row->advice);
            check_loss(&report, &layout, row);
            assert_int_equal(row->groups, 8 / layout.tp);
        }
        ct_model_free(reference);
        maker_free(maker);
        end(&report);
    }
}

static void test_where_the_prediction_comes_from(void **state)
{
    const struct layout layout = crossing(2, 2, 2, "pdt");
    const struct layout alone = crossing(8, 1, 1, "tpd");
    struct maker *maker;
    struct ct_model *reference = sweep_model(2, &maker);
    /* Gradients are summed inside the hosts: the same operation, two ranks. */
    struct report own = report_on(&layout, .01, NULL);
    struct report prior = report_on(&alone, .05, NULL);
    struct report other = report_on(&alone, .05, reference);

    (void)state;
    assert_int_equal(find(&own, CT_FINDING_TP_CROSSES_NODES)->source,
                     CT_SOURCE_FIT);
    assert_int_equal(find(&prior, CT_FINDING_TP_CROSSES_NODES)->source,
                     CT_SOURCE_PRIOR);
    assert_non_null(strstr(find(&prior, CT_FINDING_TP_CROSSES_NODES)->text,
                           "published figures"));
    assert_int_equal(find(&other, CT_FINDING_TP_CROSSES_NODES)->source,
                     CT_SOURCE_REFERENCE);
    end(&own);
    end(&prior);
    end(&other);
    ct_model_free(reference);
    maker_free(maker);
}

static void test_sentence_and_advice(void **state)
{
    const struct layout wide = crossing(8, 1, 1, "tpd");
    const struct layout apart = crossing(2, 2, 2, "dpt");
    struct report report = report_on(&wide, 0, NULL);
    const struct ct_finding_row *row =
        find(&report, CT_FINDING_TP_CROSSES_NODES);

    (void)state;
    assert_string_equal(ct_finding_infos[row->id].severity, "bad");
    assert_non_null(strstr(row->text, "ranks 0-7 spans 2"));
    assert_non_null(strstr(row->text, "alpha, beta"));
    assert_non_null(strstr(row->advice, "TP=4 x PP=2 instead of TP=8"));
    end(&report);
    report = report_on(&apart, 0, NULL);
    row = find(&report, CT_FINDING_TP_CROSSES_NODES);
    assert_non_null(strstr(row->text, "worst of 4 such groups"));
    assert_non_null(strstr(row->advice, "order the ranks"));
    end(&report);
}

static void test_without_steps_per_second(void **state)
{
    struct layout layout = crossing(2, 2, 2, "dpt");

    (void)state;
    layout.steps = 0;
    struct report report = report_on(&layout, .05, NULL);
    const struct ct_finding_row *row =
        find(&report, CT_FINDING_TP_CROSSES_NODES);

    assert_non_null(find(&report, CT_FINDING_NO_STEPS));
    assert_non_null(row);
    assert_string_equal(row->per, "second");
    assert_true(row->observed_ms > 0 && row->observed_ms < 1000);
    end(&report);
}

static void test_not_timed(void **state)
{
    const struct layout layout = crossing(2, 2, 2, "dpt");
    struct report report = report_on(&layout, .05, NULL);

    (void)state;
    for (int i = 0; i < report.job->nusages; i++) {
        report.job->usages[i].median_ns = CT_NO_TIME;
        report.job->usages[i].nsamples = 0;
    }
    ct_findings_free(report.findings);
    ct_model_free(report.model);
    report.model = ct_model_build(report.trace, report.job);
    report.findings = ct_findings_build(report.trace, report.job, report.model,
                                        NULL, report.roles, NULL);
    const struct ct_finding_row *row =
        find(&report, CT_FINDING_TP_CROSSES_NODES);

    assert_non_null(row);
    assert_true(isnan(row->loss_ms));
    assert_non_null(strstr(row->text, "none of its calls was timed"));
    end(&report);
}

static void test_quality(void **state)
{
    const struct layout layout = crossing(2, 2, 2, "tpd");
    static struct ct_loss_row loss = {"ring_full", "op", CT_NONE, 12, 0, 1};
    struct report report = report_on(&layout, 0, NULL);
    struct ct_process *process =
        &((struct ct_trace *)report.trace)->processes[3];

    (void)state;
    assert_int_equal(report.findings->n, 0);
    process->dead = true;
    process->recovered = 7;
    process->lost = 12;
    process->nlosses = 1;
    process->losses = &loss;
    report.job->lost_ops = 12;
    report.job->missing = 2;
    report.job->comms[0].nknown = 6;
    report.job->mismatches = 1;
    report.job->instances[5].mismatch = true;
    ct_findings_free(report.findings);
    report.findings = ct_findings_build(report.trace, report.job, report.model,
                                        NULL, report.roles, NULL);
    assert_int_equal(report.findings->n, 4);
    assert_non_null(strstr(find(&report, CT_FINDING_OPS_LOST)->text,
                           "12 ops were not recorded, most on rank 3 (12, "
                           "cause ring_full); counts and prices leave them "
                           "out"));
    assert_non_null(
        strstr(find(&report, CT_FINDING_PROCESS_DIED)->text, "rank 3"));
    assert_int_equal(find(&report, CT_FINDING_TRACE_MISSING)->comm, 0);
    assert_non_null(find(&report, CT_FINDING_OP_MISMATCH));
    end(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exactly_when_it_crosses),
        cmocka_unit_test(test_where_the_prediction_comes_from),
        cmocka_unit_test(test_sentence_and_advice),
        cmocka_unit_test(test_without_steps_per_second),
        cmocka_unit_test(test_not_timed),
        cmocka_unit_test(test_quality),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
