/* Steps of generated jobs of many shapes, against their truth files; and none
 * in what is no training. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "trace_files.h"

#define MANY 20000 /* steps */
#define SMALL_STACK (256 << 10)

static struct ct_trace *generate(const char *folder, const char *options)
{
    char command[1024];

    snprintf(command, sizeof(command), "%s %s --out %s", TRACEGEN, options,
             folder);
    assert_int_equal(system(command), 0);
    return files_open(folder);
}

/* Of truth.json: steps of a rank on a line each, "[[first,last],...]". */
static FILE *open_truth(const char *folder)
{
    char path[256], line[256] = "";
    FILE *f;

    snprintf(path, sizeof(path), "%s/truth.json", folder);
    f = fopen(path, "r");
    assert_non_null(f);
    while (strcmp(line, " \"steps\": [\n") != 0)
        assert_non_null(fgets(line, sizeof(line), f));
    return f;
}

/* Steady steps of p that are not as the next line says; -1: other number. */
static int wrong_steps(FILE *truth, const struct ct_process *p)
{
    int i = 0, wrong = 0, first, last;

    assert_int_equal(fscanf(truth, " ["), 0);
    while (fscanf(truth, "[%d,%d]", &first, &last) == 2) {
        while (i < p->nsteps && p->steps[i].kind != CT_STEP_STEADY)
            i++;
        if (i >= p->nsteps)
            wrong = -1000000;
        else
            wrong +=
                p->steps[i].first_op != first || p->steps[i].last_op != last;
        i++;
        if (fscanf(truth, ",") == EOF)
            break;
    }
    assert_int_equal(fscanf(truth, "],"), 0);
    for (; i < p->nsteps; i++)
        if (p->steps[i].kind == CT_STEP_STEADY)
            wrong = -1000000;
    return wrong;
}

static bool exact(const char *options)
{
    const char *folder = files_folder();
    struct ct_trace *trace = generate(folder, options);
    FILE *truth = open_truth(folder);
    bool right = trace->njobs == 1 && trace->jobs[0].nsteps > 0;
    int r;

    for (r = 0; r < trace->jobs[0].nprocesses; r++)
        right &=
            !wrong_steps(truth, &trace->processes[trace->jobs[0].processes[r]]);
    if (!right)
        printf("not exact: %s (%d steps)\n", options, trace->jobs[0].nsteps);
    fclose(truth);
    files_close(trace, folder);
    return right;
}

static void test_shapes(void **state)
{
    static const char *const layouts[] = {
        "--tp 2 --pp 2 --dp 2 --hosts 2",
        "--tp 4 --pp 2 --hosts 2",
        "--tp 2 --pp 4",
        "--tp 8",
        "--pp 4 --dp 2",
        "--dp 8",
        "--pp 4",
        "--tp 2 --dp 4 --order dp,tp,pp --hosts 2",
    };
    static const char *const sizes[] = {
        "--layers 8 --micro-batches 8 --steps 6",
        "--layers 4 --micro-batches 16 --steps 4 --buckets 12",
        "--layers 24 --micro-batches 4 --steps 5 --buckets 1 --lone-groups",
        "--layers 8 --micro-batches 8 --steps 10 --eval-every 4",
        "--layers 4 --micro-batches 1 --steps 3 --barriers 5",
        "--layers 8 --micro-batches 2 --steps 40 --barriers 0 --buckets 2",
    };
    char options[256];
    unsigned i, j, n = 0, good = 0;

    (void)state;
    for (i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
        for (j = 0; j < sizeof(sizes) / sizeof(*sizes); j++) {
            snprintf(options, sizeof(options), "%s %s --seed %u", layouts[i],
                     sizes[j], ++n);
            good += exact(options);
        }
    printf("steps exact in %u of %u shapes\n", good, n);
    assert_true(good * 10 >= n * 9);
}

/* However often they come, they belong to no step. */
static void test_evaluations(void **state)
{
    static const char *const jobs[] = {
        "--tp 2 --pp 8 --layers 16 --micro-batches 1 --steps 8",
        "--pp 3 --dp 2 --layers 3 --micro-batches 4 --steps 8 --buckets 9",
        "--pp 2 --dp 3 --layers 8 --micro-batches 2 --steps 12 --buckets 2",
        "--tp 3 --dp 4 --layers 1 --micro-batches 8 --steps 12",
    };
    char options[256];
    unsigned i;
    int every;

    (void)state;
    for (i = 0; i < sizeof(jobs) / sizeof(*jobs); i++)
        for (every = 2; every < 6; every++) {
            snprintf(options, sizeof(options), "%s --eval-every %d", jobs[i],
                     every);
            assert_true(exact(options));
        }
}

static void test_step_times(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace =
        generate(folder, "--tp 2 --pp 2 --steps 6 --jitter 0.001");
    const struct ct_process *p = &trace->processes[0];
    int i;

    (void)state;
    assert_int_equal(trace->jobs[0].nsteps, 6);
    for (i = 1; i < p->nsteps; i++) {
        assert_int_equal(p->steps[i].start_ns, p->steps[i - 1].end_ns);
        assert_in_range(p->steps[i].end_ns - p->steps[i].start_ns,
                        trace->jobs[0].step_ns * 99 / 100,
                        trace->jobs[0].step_ns * 101 / 100);
    }
    for (i = 0; i < p->nops; i++)
        if (ct_op_step(p, &p->ops[i]) != CT_NONE) {
            const struct ct_step_row *step =
                &p->steps[ct_op_step(p, &p->ops[i])];

            assert_true(i >= step->first_op);
            assert_true(i <= step->last_op);
        }
    files_close(trace, folder);
}

static void test_per_step(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace = generate(
        folder, "--tp 2 --pp 2 --layers 8 --micro-batches 8 --steps 6");
    const struct ct_job *job = &trace->jobs[0];
    int i, large = 0, scalars = 0;

    (void)state;
    for (i = 0; i < job->nusages; i++) {
        const struct ct_usage *u = &job->usages[i];

        if (u->bytes == 4 << 20 && u->base == CT_OP_ALL_REDUCE) {
            /* 4 per layer and micro-batch: 2 forward, 2 backward. */
            assert_true(u->per_step == 4 * 4 * 8);
            assert_int_equal(u->calls, 6 * 4 * 4 * 8);
            large++;
        }
        if (u->bytes == 4 && u->type == CT_TYPE_FLOAT32) {
            assert_true(u->per_step == 1);
            assert_true(u->position == 1);
            scalars++;
        }
    }
    assert_int_equal(large, 2); /* one communicator per stage */
    assert_int_equal(scalars, 1);
    files_close(trace, folder);
}

static void no_steps(struct ct_trace *trace, const char *folder)
{
    int i;

    assert_int_equal(trace->jobs[0].nsteps, 0);
    assert_int_equal(trace->jobs[0].step_ns, CT_NO_TIME);
    for (i = 0; i < trace->nprocesses; i++)
        assert_int_equal(trace->processes[i].nsteps, 0);
    files_close(trace, folder);
}

static void test_sweeps(void **state)
{
    static const char *const options[] = {"--sweep --dp 2", "--sweep --dp 4",
                                          "--sweep --dp 8 --barriers 0"};
    unsigned i;

    (void)state;
    for (i = 0; i < 3; i++) {
        const char *folder = files_folder();

        no_steps(generate(folder, options[i]), folder);
    }
}

/* One process, one communicator; each call is a count and a kind. */
struct pattern {
    int sizes, iterations, warm_up;
    bool exchange; /* send and recv by turns, not all-reduce */
    bool barriers; /* a scalar all-reduce around each size */
};

static void add_op(sqlite3 *db, int *id, int class, int *ordinal)
{
    ++*id;
    files_op(db, *id, class, (*ordinal)++, 1000L * *id, 500);
}

static void test_patterns(void **state)
{
    static const struct pattern patterns[] = {
        {1, 100, 0, false, false}, {1, 100, 0, true, false},
        {6, 20, 0, true, false},   {2, 50, 0, true, false},
        {6, 20, 5, false, true},   {8, 20, 5, true, true},
        {3, 20, 0, false, true},
    };
    unsigned k;

    (void)state;
    for (k = 0; k < sizeof(patterns) / sizeof(*patterns); k++) {
        const struct pattern *p = &patterns[k];
        const char *folder = files_folder();
        sqlite3 *db = files_begin(folder, 0, 2, 0);
        int s, i, id = 0, ar = 0, send = 0, recv = 0;

        files_class(db, 1, 1, CT_OP_ALL_REDUCE, 1, -1);
        for (s = 0; s < p->sizes; s++) {
            files_class(db, 10 + 3 * s, 1, CT_OP_ALL_REDUCE, 256L << s, -1);
            files_class(db, 11 + 3 * s, 1, CT_OP_SEND, 256L << s, 1);
            files_class(db, 12 + 3 * s, 1, CT_OP_RECV, 256L << s, 1);
            for (i = 0; i < p->warm_up + p->iterations; i++) {
                if (p->barriers && (i == 0 || i == p->warm_up))
                    add_op(db, &id, 1, &ar);
                if (!p->exchange) {
                    add_op(db, &id, 10 + 3 * s, &ar);
                } else {
                    add_op(db, &id, 11 + 3 * s, &send);
                    add_op(db, &id, 12 + 3 * s, &recv);
                }
            }
        }
        files_end(db);
        no_steps(files_open(folder), folder);
    }
}

/* Steps whose sizes change once, with hardly any stack: it does not grow with
 * their number. */
static void test_many_before(void **state)
{
    const char *folder = files_folder();
    sqlite3 *db = files_begin(folder, 0, 2, 0);
    struct ct_trace *trace;
    struct rlimit usual, small;
    int i, id = 0, ar = 0;

    (void)state;
    for (i = 0; i < 2; i++) {
        files_class(db, 1 + 2 * i, 1, CT_OP_ALL_REDUCE, 1L << (20 + i), -1);
        files_class(db, 2 + 2 * i, 1, CT_OP_ALL_REDUCE, 1 + i, -1);
    }
    for (i = 0; i < MANY; i++) {
        add_op(db, &id, 3 * i < MANY ? 1 : 3, &ar);
        add_op(db, &id, 3 * i < MANY ? 2 : 4, &ar);
    }
    files_end(db);
    assert_int_equal(getrlimit(RLIMIT_STACK, &usual), 0);
    small = (struct rlimit){SMALL_STACK, usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_STACK, &small), 0);
    trace = files_open(folder);
    assert_int_equal(setrlimit(RLIMIT_STACK, &usual), 0);
    assert_int_equal(trace->processes[0].nsteps, MANY);
    files_close(trace, folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),      cmocka_unit_test(test_evaluations),
        cmocka_unit_test(test_step_times),  cmocka_unit_test(test_per_step),
        cmocka_unit_test(test_sweeps),      cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_many_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
