/* The link class of each transport, and of ops, in a bare rank file. */
#include "shim_test.h"

#include "schema.h"

static sqlite3 *new_file(void)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(schema_create(db), SQLITE_OK);
    return db;
}

static void run(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL))
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

static const struct {
    const char *via, *facts, *link;
} transports[] = {
    {"P2P/CUMEM", "INSERT INTO gpu_link (device, kind) VALUES (0, 'nvswitch')",
     "NVSwitch"},
    /* Another GPU's. */
    {"P2P/CUMEM", "INSERT INTO gpu_link (device, kind) VALUES (1, 'nvswitch')",
     "inside a node"},
    {"P2P/IPC",
     "INSERT INTO nccl_graph (comm, pattern, intra_type) VALUES"
     " (1, 1, 'PHB'), (1, 4, 'NVL')",
     "NVLink"},
    {"P2P/direct pointer",
     "INSERT INTO nccl_graph (comm, pattern, intra_type) VALUES (1, 4, 'PXB')",
     "PCIe"},
    {"P2P/IPC/read",
     "INSERT INTO nccl_graph (comm, pattern, intra_type) VALUES (1, 4, 'SYS')",
     "PCIe through host"},
    {"P2P/IPC",
     "INSERT INTO nccl_graph (comm, pattern, intra_type) VALUES (1, 4, 'C2C')",
     "NVLink-C2C"},
    {"P2P/MNNVL", "SELECT 1", "multi-node NVLink"},
    {"P2P/indirect/2[2]", "SELECT 1", "NVLink"},
    {"SHM/direct/direct", "SELECT 1", "shared memory"},
    {"direct shared memory", "SELECT 1", "shared memory"},
    {"NET/Socket/0", "SELECT 1", "TCP"},
    {"NET/AWS Libfabric/0/GDRDMA", "SELECT 1", "network plugin"},
    {"NET/IB/1/GDRDMA",
     "INSERT INTO nccl_message (kind, text) VALUES ('network', 'NET/IB : Using"
     " [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>')",
     "InfiniBand"},
    {"NET/IB/0(3)/GDRDMA",
     "INSERT INTO nccl_message (kind, text) VALUES ('network', 'NET/IB : Using"
     " [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>')",
     "RoCE"},
    {"NET/IB/0",
     "INSERT INTO nic (kind, link_layer, state) VALUES"
     " ('rdma', 'Ethernet', 'ACTIVE'), ('rdma', 'InfiniBand', 'DOWN')",
     "RoCE"},
    {"NET/IBext_v8/0",
     "INSERT INTO nic (kind, link_layer, state) VALUES"
     " ('rdma', 'InfiniBand', 'ACTIVE'), ('net', NULL, 'up')",
     "InfiniBand"},
    {"NET/IB/0",
     "INSERT INTO nic (kind, link_layer, state) VALUES"
     " ('rdma', 'Ethernet', 'ACTIVE'), ('rdma', 'InfiniBand', 'ACTIVE')",
     "network"},
    {"NET/IB/0", "SELECT 1", "network"},
};

static void put_comm(sqlite3 *db)
{
    run(db, "INSERT INTO comm (id, nranks, rank, device) VALUES (1, 4, 1, 0)");
}

static void test_transports(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++) {
        struct scenario s = {.db = new_file()};
        char sql[200];

        put_comm(s.db);
        snprintf(sql, sizeof sql,
                 "INSERT INTO conn VALUES (1, 0, 0, 1, 2, NULL, '%s')",
                 transports[i].via);
        run(s.db, sql);
        run(s.db, transports[i].facts);
        assert_answer(&s, "SELECT link FROM v_conn", transports[i].link);
        sqlite3_close(s.db);
    }
}

/* A collective waits for the worst hop of its rings and trees, a send goes over
 * the connection to its peer; without any word of NCCL's nothing is said. */
static void test_ops(void **state)
{
    struct scenario s = {.db = new_file()};

    (void)state;
    put_comm(s.db);
    run(s.db, "INSERT INTO comm (id, nranks, rank) VALUES (2, 2, 0);"
              "INSERT INTO process (t0_real_ns) VALUES (0);"
              "INSERT INTO conn VALUES (1, 0, 0, 1, 2, NULL, 'SHM/direct'),"
              " (1, 1, 0, 1, 2, NULL, 'P2P/CUMEM'),"
              " (1, 0, 0, 0, 1, 'receive', 'NET/Socket/0'),"
              " (1, 0, 1, 1, 2, NULL, 'P2P/CUMEM'),"
              " (1, 0, 1, 1, 3, 'send', 'NET/AWS Libfabric/0')");
    run(s.db, "INSERT INTO comm (id, nranks, rank) VALUES (3, 2, 0);"
              "INSERT INTO nccl_comm (comm, nodes, nvls_channels, source)"
              " VALUES (3, 1, 16, 'log'), (3, 1, 16, 'plugin'),"
              " (2, 2, 16, 'log')");
    run(s.db, "CREATE TABLE t AS SELECT column1 AS id, column2 AS comm,"
              " column3 AS name, column4 AS peer FROM (VALUES"
              " (1, 1, 'all_reduce', NULL), (2, 1, 'broadcast', 2),"
              " (3, 1, 'send', 2), (4, 1, 'recv', 0), (5, 1, 'send', 3),"
              " (6, 2, 'all_reduce', NULL), (7, 2, 'send', 1),"
              " (8, 3, 'all_reduce', NULL))");
    run(s.db, "INSERT INTO op_class (id, comm, kind, peer)"
              " SELECT t.id, t.comm, k.id, t.peer FROM t"
              " JOIN op_kind k ON k.name = t.name AND k.id = k.base;"
              "INSERT INTO op (id, class, ordinal, enter_ns, flags)"
              " SELECT id, id, 0, id, 0 FROM op_class");
    assert_answer(&s, "SELECT id, op, link, network FROM v_op ORDER BY id",
                  "1|all_reduce|TCP|1\n"
                  "2|broadcast|TCP|1\n"
                  "3|send|inside a node|0\n"
                  "4|recv|TCP|1\n"
                  "5|send|network plugin|1\n"
                  "6|all_reduce|-|-\n"
                  "7|send|-|-\n"
                  "8|all_reduce|NVSwitch|0");
    assert_answer(&s, "SELECT count(*) FROM v_link WHERE evidence <> 'conn'",
                  "0");
    sqlite3_close(s.db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transports),
        cmocka_unit_test(test_ops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
