/* Jobs, ranks, nodes, NVLink domains, and links with their evidence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace_files.h"

/* A rank with one op, so that its trace counts. */
static sqlite3 *begin(const char *folder, int rank, int world, int host)
{
    sqlite3 *db = files_begin_reducing(folder, rank, world, host);

    files_op(db, 1, 1, 0, 5000, 700);
    return db;
}

static void expect_link(const struct ct_trace *trace, int rank, int peer,
                        enum ct_link link, const char *evidence)
{
    struct ct_link_fact found;

    ct_pair_link(trace, &trace->jobs[0], 0, rank, peer, &found);
    assert_int_equal(found.link, link);
    assert_string_equal(found.evidence, evidence);
}

static void test_two_nodes(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 6; r++) {
        sqlite3 *db = begin(folder, r, 6, r < 4 ? 0 : 1);

        if (r < 2)
            files_sql(db,
                      "INSERT INTO gpu_link (device, peer_pci, kind, links, "
                      "version, source) VALUES (%d, NULL, 'nvswitch',"
                      " 18, 4, 'nvml')",
                      r);
        if (r == 0)
            files_sql(db, "INSERT INTO gpu_link (device, peer_pci, kind, "
                          "links, version, source) VALUES (0, '0000:02:00.0',"
                          " 'pcie', 0, 0, 'nvml')");
        if (r == 3) /* known from one side, and the better way counts */
            files_sql(db, "INSERT INTO gpu_link (device, peer_pci, kind, "
                          "links, version, source) VALUES (3, '0000:02:00.0',"
                          " 'pcie', 0, 0, 'nvml'), (3, '0000:02:00.0',"
                          " 'nvlink', 4, 4, 'nvml')");
        if (r == 5) /* two ranks on one GPU */
            files_sql(db, "UPDATE device SET uuid = 'GPU-1-4'");
        files_end(db);
    }
    trace = files_open(folder);
    assert_int_equal(trace->jobs[0].nnodes, 2);
    assert_int_equal(trace->jobs[0].ndomains, 2);
    assert_int_equal(trace->jobs[0].world_size, 6);
    assert_string_equal(trace->jobs[0].node_names[1], "h1");
    expect_link(trace, 0, 0, CT_LINK_SELF, "topology");
    expect_link(trace, 0, 1, CT_LINK_NVSWITCH, "topology");
    expect_link(trace, 2, 0, CT_LINK_PCIE, "topology");
    expect_link(trace, 2, 3, CT_LINK_NVLINK, "topology");
    expect_link(trace, 1, 3, CT_LINK_NODE, "host");
    expect_link(trace, 4, 5, CT_LINK_SELF, "topology");
    expect_link(trace, 0, 4, CT_LINK_NETWORK, "host");
    assert_int_equal(trace->jobs[0].comms[0].link, CT_LINK_NETWORK);
    assert_int_equal(trace->jobs[0].comms[0].nnodes, 2);
    assert_int_equal(trace->jobs[0].usages[0].link, CT_LINK_NETWORK);
    files_close(trace, folder);
}

static void test_fabric(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 4; r++) {
        sqlite3 *db = begin(folder, r, 4, r);

        /* 0 and 1 share a clique; 2 is in another; 3's cluster is none. */
        files_sql(db, "UPDATE device SET cluster = '%s', clique = %d",
                  r < 3 ? "c0ffee" : "00000000-0000", r == 2);
        files_end(db);
    }
    trace = files_open(folder);
    assert_int_equal(trace->jobs[0].nnodes, 4);
    assert_int_equal(trace->jobs[0].ndomains, 3);
    expect_link(trace, 0, 1, CT_LINK_MNNVL, "topology");
    expect_link(trace, 1, 2, CT_LINK_NETWORK, "host");
    expect_link(trace, 2, 3, CT_LINK_NETWORK, "host");
    files_close(trace, folder);
}

static void test_jobs(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    /* 3 and 4 share uid 5 only; 0, 1, 2 are a chain: 0-1 by 77, 1-2 by 6. */
    for (r = 0; r < 5; r++) {
        sqlite3 *db = begin(folder, r, 5, 0);

        if (r == 1 || r == 2)
            files_sql(db,
                      "INSERT INTO comm (id, uid, nranks, rank) VALUES"
                      " (2, 6, 2, %d)",
                      r - 1);
        if (r == 2)
            files_sql(db, "UPDATE comm SET uid = 1000 WHERE id = 1");
        if (r > 2)
            files_sql(db, "UPDATE comm SET uid = 5 WHERE id = 1");
        files_end(db);
    }
    trace = files_open(folder);
    assert_int_equal(trace->njobs, 2);
    assert_int_equal(trace->jobs[0].nprocesses, 3);
    assert_int_equal(trace->jobs[1].nprocesses, 2);
    assert_int_equal(trace->jobs[1].processes[0], 3);
    assert_int_equal(trace->jobs[0].ncomms, 3);
    assert_int_equal(trace->jobs[0].comms[0].nknown, 2);
    assert_int_equal(trace->jobs[0].comms[0].members[1].process, 1);
    assert_int_equal(trace->jobs[0].comms[0].members[2].process, CT_NONE);
    files_close(trace, folder);
}

/* Tries of one launch come in the order in which they were started, whatever
 * the names of their files and however many ranks left a trace. */
static void test_tries(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 3; r++) {
        sqlite3 *db = begin(folder, r, 3, 0);

        files_sql(db,
                  "UPDATE process SET run_id = 'launch', restart = %d,"
                  " t0_real_ns = %d",
                  r < 2, r < 2 ? 2000 + r : 1000);
        files_sql(db, "UPDATE comm SET uid = %d", r < 2 ? 5 : 6);
        files_end(db);
    }
    trace = files_open(folder);
    assert_int_equal(trace->njobs, 2);
    assert_int_equal(trace->jobs[0].nprocesses, 1);
    assert_int_equal(trace->jobs[0].restart, 0);
    assert_int_equal(trace->jobs[0].start_real_ns, 1000);
    assert_int_equal(trace->jobs[1].nprocesses, 2);
    assert_int_equal(trace->jobs[1].restart, 1);
    assert_int_equal(trace->jobs[1].start_real_ns, 2000);
    assert_string_equal(trace->jobs[1].run_id, "launch");
    assert_int_equal(trace->processes[0].job, 1);
    files_close(trace, folder);
}

/* Without usable ranks from the launcher, those of the largest communicator
 * count. */
static void test_ranks(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 3; r++) {
        sqlite3 *db = begin(folder, r, 3, 0);

        files_sql(db, "UPDATE process SET rank = 0, world_size = 1");
        files_sql(db, "UPDATE comm SET rank = %d", 2 - r);
        files_end(db);
    }
    trace = files_open(folder);
    assert_int_equal(trace->jobs[0].world_size, 3);
    for (r = 0; r < 3; r++)
        assert_int_equal(trace->jobs[0].processes[r], 2 - r);
    assert_int_equal(trace->processes[0].rank, 2);
    files_close(trace, folder);
}

/* One process that drives all GPUs holds every rank. */
static void test_one_process(void **state)
{
    const char *folder = files_folder();
    sqlite3 *db = begin(folder, 0, 2, 0);
    struct ct_trace *trace;

    (void)state;
    files_sql(db, "INSERT INTO device (id, uuid, pci, name, cluster, clique, "
                  "source) VALUES (1, 'GPU-b', '0000:99:00.0',"
                  " 'gpu', NULL, NULL, 'nvml')");
    files_sql(db, "INSERT INTO comm (id, uid, origin, nranks, rank, device)"
                  " VALUES (2, 77, 'init_all', 2, 1, 1)");
    files_class(db, 2, 2, CT_OP_ALL_REDUCE, 1000, -1);
    files_op(db, 2, 2, 0, 5100, 600);
    /* A communicator of the second GPU alone, made of the first; a loss. */
    files_sql(db, "INSERT INTO comm (id, uid, origin, parent, nranks, rank,"
                  " device) VALUES (3, 80, 'split', 2, 1, 0, 1)");
    /* A second one of the same name, as NCCL may number them. */
    files_sql(db, "INSERT INTO comm (id, uid, origin, nranks, rank, device)"
                  " VALUES (4, 80, 'grow', 1, 0, 1)");
    files_class(db, 3, 3, CT_OP_ALL_REDUCE, 10, -1);
    files_grouped(db, 3, 3, 0, 1);
    files_launch(db, 4, 1, 3, 1, 9000, 50);
    files_sql(db, "INSERT INTO loss (cause, what, n) VALUES ('x', 'op', 9)");
    files_end(db);
    trace = files_open(folder);
    assert_int_equal(trace->nprocesses, 2); /* one per rank */
    assert_int_equal(trace->processes[0].ncomms, 1);
    assert_int_equal(trace->processes[0].nops, 1);
    assert_int_equal(trace->processes[0].nlaunches, 0);
    assert_int_equal(trace->processes[0].rank, 0);
    assert_int_equal(trace->processes[1].ncomms, 3);
    assert_int_equal(trace->processes[1].comms[1].parent, 0);
    assert_int_equal(trace->processes[1].nops, 2);
    assert_int_equal(trace->processes[1].launches[0].first_op, 1);
    assert_int_equal(ct_op_gpu_ns(&trace->processes[1].ops[1]), 50);
    assert_int_equal(trace->processes[1].rank, 1);
    assert_int_equal(trace->jobs[0].world_size, 2);
    assert_int_equal(trace->jobs[0].lost_ops, 9);
    assert_int_equal(trace->jobs[0].missing, 0);
    assert_int_equal(trace->jobs[0].comms[0].nknown, 2);
    assert_int_equal(trace->jobs[0].ninstances, 2);
    assert_int_equal(files_instance(trace, 0, 0)->ranks, 2);
    assert_int_equal(files_instance(trace, 0, 0)->transfer_ns, 600);
    assert_false(files_instance(trace, 0, 0)->bound);
    expect_link(trace, 0, 1, CT_LINK_NODE, "host");
    files_close(trace, folder);
}

static void test_wire_factor(void **state)
{
    (void)state;
    assert_true(ct_wire_factor(CT_OP_ALL_REDUCE, 4) == 1.5);
    assert_true(ct_wire_factor(CT_OP_ALL_GATHER, 4) == 0.75);
    assert_true(ct_wire_factor(CT_OP_BROADCAST, 4) == 1);
    assert_true(ct_wire_factor(CT_OP_SEND, 2) == 1);
}

/* Communicator 2: the last two ranks of three, in the other order. */
static void add_pair(sqlite3 *db, int rank)
{
    if (rank > 0)
        files_sql(db,
                  "INSERT INTO comm (id, uid, origin, parent, color, child,"
                  " nranks, rank, device)"
                  " VALUES (2, 78, 'split', 1, 5, 1, 2, %d, %d)",
                  2 - rank, rank);
}

static int absent_rank(const struct ct_trace *trace, const struct ct_job *job,
                       int comm, int rank)
{
    const struct ct_absent absent = ct_absent_of(trace, job, comm);

    return ct_absent_rank(&absent, rank);
}

/* The one that is missing has a name in every communicator; of several only
 * what follows. */
static void test_missing_member(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    const struct ct_job *job;
    int r;

    (void)state;
    for (r = 0; r < 3; r++) {
        sqlite3 *db = begin(folder, r, 3, 0);

        add_pair(db, r);
        files_end(db);
    }
    unlink(files_path(folder, 2));
    trace = files_open(folder);
    job = &trace->jobs[0];
    assert_int_equal(job->ncomms, 2);
    assert_int_equal(job->comms[0].parent, CT_NONE);
    assert_int_equal(job->comms[1].parent, 0);
    assert_int_equal(job->missing, 2);
    assert_int_equal(job->comms[0].members[2].process, CT_NONE);
    assert_int_equal(absent_rank(trace, job, 0, 2), 2);
    assert_int_equal(job->comms[1].members[0].process, CT_NONE);
    assert_int_equal(absent_rank(trace, job, 1, 0), 2);
    /* One of its two is missing: wherever that is. */
    assert_int_equal(job->comms[1].link, CT_LINK_UNKNOWN);
    expect_link(trace, 0, 2, CT_LINK_UNKNOWN, "unknown");
    assert_int_equal(job->comms[0].link, CT_LINK_NODE);
    ct_trace_free(trace);

    unlink(files_path(folder, 0));
    trace = files_open(folder);
    job = &trace->jobs[0];
    assert_int_equal(absent_rank(trace, job, 0, 0), CT_NONE);
    assert_int_equal(absent_rank(trace, job, 1, 0), CT_NONE);
    files_close(trace, folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_member),
        cmocka_unit_test(test_two_nodes),
        cmocka_unit_test(test_fabric),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_tries),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_one_process),
        cmocka_unit_test(test_wire_factor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
