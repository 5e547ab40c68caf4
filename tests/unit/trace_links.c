/*
 * Link classes by NCCL's words, by its profiler, by the topology: the best
 * evidence counts, with what it says. One hand-made rank file per rank; GPUs,
 * ports and log lines as tables have them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "links_files.h"

static void expect(const struct ct_trace *trace, int rank, int peer,
                   enum ct_link link, int64_t speed, const char *evidence,
                   const char *detail)
{
    struct ct_link_fact found;

    ct_pair_link(trace, &trace->jobs[0], 0, rank, peer, &found);
    assert_int_equal(found.link, link);
    assert_int_equal(found.speed, speed);
    assert_string_equal(found.evidence, evidence);
    if (!strstr(found.detail, detail))
        fail_msg("%s: not in: %s", detail, found.detail);
}

static void expect_worst(const struct ct_trace *trace, enum ct_link link,
                         int64_t speed, const char *evidence, int hops,
                         int nics)
{
    const struct ct_comm *comm = &trace->jobs[0].comms[0];

    assert_int_equal(comm->link, link);
    assert_int_equal(comm->speed, speed);
    assert_string_equal(comm->evidence, evidence);
    assert_int_equal(comm->hops, hops);
    assert_int_equal(comm->nics, nics);
    assert_int_equal(trace->jobs[0].usages[0].link, link);
    assert_int_equal(trace->jobs[0].usages[0].speed, speed);
}

struct host {         /* every GPU of a host alike */
    const char *kind; /* of gpu_link to a switch or to each peer */
    int version;
    const char *path; /* PCIe way between GPUs */
};

static void put_gpus(sqlite3 *db, const struct links_job *job, int rank,
                     const struct host *host)
{
    int r;

    if (!strcmp(host->kind, "nvswitch")) {
        links_gpu_link(db, rank, -1, "nvswitch", host->version, NULL);
        return;
    }
    for (r = 0; r < job->ranks; r++)
        if (r != rank && links_host(job, r) == links_host(job, rank))
            links_gpu_link(db, rank, r, host->kind, host->version, host->path);
}

static const struct {
    const char *via; /* between neighbours of one host */
    struct host host;
    const char *graph; /* intra_type; NULL: none */
    enum ct_link link;
    int64_t speed;
} inside[] = {
    {"P2P/CUMEM", {"nvswitch", 4, NULL}, "NVL", CT_LINK_NVSWITCH, 4},
    {"P2P/direct pointer", {"nvlink", 3, NULL}, "NVL", CT_LINK_NVLINK, 3},
    {"P2P/IPC", {"pcie", 0, "PIX"}, "PIX", CT_LINK_PCIE, CT_NONE},
    {"P2P/IPC", {"pcie", 0, "PXB"}, NULL, CT_LINK_PCIE, CT_NONE},
    {"P2P/IPC/read", {"pcie", 0, "SYS"}, "SYS", CT_LINK_PCIE_HOST, CT_NONE},
    /* Without topology the graph says what it is, without both nobody. */
    {"P2P/IPC", {"", 0, NULL}, "NVL", CT_LINK_NVLINK, CT_NONE},
    {"P2P/IPC", {"", 0, NULL}, "PXB", CT_LINK_PCIE, CT_NONE},
    {"P2P/IPC", {"", 0, NULL}, "PHB", CT_LINK_PCIE_HOST, CT_NONE},
    {"P2P/IPC", {"", 0, NULL}, "C2C", CT_LINK_C2C, CT_NONE},
    {"P2P/CUMEM", {"", 0, NULL}, NULL, CT_LINK_NODE, CT_NONE},
    /* Through a third GPU, although these two have PCIe alone. */
    {"P2P/indirect/2[2]", {"pcie", 0, "SYS"}, "NVB", CT_LINK_NVLINK, CT_NONE},
    /* What could have been NVLink is not. */
    {"SHM/direct/direct", {"nvswitch", 4, NULL}, "NVL", CT_LINK_SHM, CT_NONE},
    {"direct shared memory", {"none", 0, NULL}, "PHB", CT_LINK_SHM, CT_NONE},
    {"NET/Socket/0", {"none", 0, NULL}, "PHB", CT_LINK_TCP, CT_NONE},
};

static void test_inside_a_host(void **state)
{
    const struct links_job job = {.ranks = 4, .per_host = 4};
    size_t i;
    int r;

    (void)state;
    for (i = 0; i < sizeof(inside) / sizeof(*inside); i++) {
        const bool net = !strncmp(inside[i].via, "NET", 3);
        const char *folder = files_folder();
        struct ct_trace *trace;

        for (r = 0; r < job.ranks; r++) {
            sqlite3 *db = links_begin(folder, &job, r);

            put_gpus(db, &job, r, &inside[i].host);
            if (inside[i].graph)
                links_graph(db, 4, inside[i].graph);
            links_ring(db, &job, r, inside[i].via);
            files_end(db);
        }
        trace = files_open(folder);
        expect(trace, 1, 2, inside[i].link, inside[i].speed, "conn",
               inside[i].via);
        expect_worst(trace, inside[i].link, inside[i].speed, "conn",
                     net ? 4 : 0, net ? 1 : CT_NONE);
        files_close(trace, folder);
    }
}

static const struct {
    const char *via, *list;
    const char *nics[3]; /* rows of nic after id and name */
    enum ct_link link;
    int64_t speed;
} between[] = {
    {"NET/IB/1/GDRDMA",
     "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:1<0>",
     {"rdma 1 Ethernet ACTIVE 25000", "rdma 1 InfiniBand ACTIVE 400000"},
     CT_LINK_IB,
     400000},
    {"NET/IB/0/GDRDMA",
     "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:1<0>",
     {"rdma 1 Ethernet ACTIVE 25000", "rdma 1 InfiniBand ACTIVE 400000"},
     CT_LINK_ROCE,
     25000},
    /* The log alone, and the ports alone. */
    {"NET/IB/0",
     "NET/IB : Using [0]mlx5_7:1/RoCE ; OOB ib0:1<0>",
     {NULL},
     CT_LINK_ROCE,
     CT_NONE},
    {"NET/IB/3(6)/GDRDMA",
     NULL,
     {"rdma 1 InfiniBand ACTIVE 200000", "rdma 1 InfiniBand ACTIVE 200000",
      "rdma 1 Ethernet DOWN 10000"},
     CT_LINK_IB,
     200000},
    {"NET/IBext_v8/0/GDRDMA",
     NULL,
     {"rdma 1 Ethernet ACTIVE 100000"},
     CT_LINK_ROCE,
     100000},
    /* Neither says which kind it is: no kind is claimed. */
    {"NET/IB/1",
     NULL,
     {"rdma 1 InfiniBand ACTIVE 200000", "rdma 1 Ethernet ACTIVE 25000"},
     CT_LINK_NETWORK,
     CT_NONE},
    {"NET/IB/1", NULL, {NULL}, CT_LINK_NETWORK, CT_NONE},
    {"NET/Socket/1",
     "NET/Socket : Using [0]mlx5_0:10.0.0.1<0> [1]mlx5_1:10.1.0.1<0>",
     {"net 0 - up 10000", "net 0 - up 25000"},
     CT_LINK_TCP,
     25000},
    {"NET/Socket/0", NULL, {"net 0 - up 10000"}, CT_LINK_TCP, 10000},
    {"NET/Socket/0",
     NULL,
     {"net 0 - up 10000", "net 0 - up 25000"},
     CT_LINK_TCP,
     CT_NONE},
    {"NET/AWS Libfabric/0/GDRDMA",
     NULL,
     {"rdma 1 Ethernet ACTIVE 100000"},
     CT_LINK_NET_PLUGIN,
     CT_NONE},
    {"P2P/MNNVL", NULL, {NULL}, CT_LINK_MNNVL, CT_NONE},
};

static void test_between_hosts(void **state)
{
    const struct links_job job = {.ranks = 4, .per_host = 2};
    size_t i;
    int r, n;

    (void)state;
    for (i = 0; i < sizeof(between) / sizeof(*between); i++) {
        const bool net = !strncmp(between[i].via, "NET", 3);
        const char *folder = files_folder();
        struct ct_trace *trace;

        for (r = 0; r < job.ranks; r++) {
            sqlite3 *db = links_begin(folder, &job, r);

            links_gpu_link(db, r, -1, "nvswitch", 4, NULL);
            for (n = 0; n < 3 && between[i].nics[n]; n++)
                links_nic(db, n, between[i].nics[n]);
            if (between[i].list)
                links_message(db, "network", between[i].list);
            links_ring_across(db, &job, r, "P2P/CUMEM", between[i].via);
            files_end(db);
        }
        trace = files_open(folder);
        expect(trace, 0, 1, CT_LINK_NVSWITCH, 4, "conn", "P2P/CUMEM");
        expect(trace, 1, 2, between[i].link, between[i].speed, "conn",
               between[i].via);
        expect_worst(trace, between[i].link, between[i].speed, "conn",
                     net ? 2 : 0, net ? 1 : CT_NONE);
        files_close(trace, folder);
    }
}

/* Two ports a host, of which one communicator's ring uses both, and no ring of
 * which a rank says nothing. */
static void test_counts(void **state)
{
    const struct links_job job = {.ranks = 4, .per_host = 2};
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < job.ranks; r++) {
        sqlite3 *db = links_begin(folder, &job, r);

        links_ring_across(db, &job, r, "P2P/CUMEM", "NET/IB/0/GDRDMA");
        if (r < 2)
            files_sql(db,
                      "INSERT INTO conn VALUES (1, 1, 0, %d, %d, 'send',"
                      " 'NET/IB/1/GDRDMA')",
                      r, r + 2);
        if (r == 2)
            files_sql(db, "DELETE FROM ring");
        if (r == 1)
            files_sql(db, "UPDATE ring SET next = 9");
        files_end(db);
    }
    trace = files_open(folder);
    expect_worst(trace, CT_LINK_NETWORK, CT_NONE, "conn", CT_NONE, 1);
    files_close(trace, folder);
}

static void test_topology_of_ports(void **state)
{
    static const char *const kinds[] = {"InfiniBand", "Ethernet"};
    const struct links_job job = {.ranks = 2, .per_host = 1};
    int i, r;

    (void)state;
    for (i = 0; i < 3; i++) {
        const char *folder = files_folder();
        struct ct_trace *trace;

        for (r = 0; r < job.ranks; r++) {
            sqlite3 *db = links_begin(folder, &job, r);
            char nic[64];

            snprintf(nic, sizeof(nic), "rdma 1 %s ACTIVE %d",
                     kinds[i == 2 ? r : i], r ? 400000 : 200000);
            links_nic(db, 0, nic);
            links_nic(db, 1, "net 0 - up 10000");
            files_end(db);
        }
        trace = files_open(folder);
        if (i < 2)
            expect(trace, 0, 1, i ? CT_LINK_ROCE : CT_LINK_IB, 200000,
                   "topology", "RDMA ports: 1 and 1, as mlx5_0");
        else
            expect(trace, 0, 1, CT_LINK_NETWORK, CT_NONE, "host",
                   "different hosts");
        files_close(trace, folder);
    }
}

static const struct {
    const char *network, *mnnvl;
    enum ct_link link;
    const char *evidence;
} unconnected[] = {
    {"'Socket'", "0", CT_LINK_TCP, "conn"},
    {"'AWS Libfabric'", "0", CT_LINK_NET_PLUGIN, "conn"},
    {"'IB'", "0", CT_LINK_IB, "conn"},
    {"'IB'", "NULL", CT_LINK_IB, "conn"},
    {"NULL", "0", CT_LINK_IB, "topology"},
    {"'Socket'", "1", CT_LINK_IB, "topology"},
};

/* Before it connects ranks, NCCL has a network for them. */
static void test_network_of_unconnected(void **state)
{
    const struct links_job job = {.ranks = 2, .per_host = 1};
    size_t i;
    int r;

    (void)state;
    for (i = 0; i < sizeof(unconnected) / sizeof(*unconnected); i++) {
        const char *folder = files_folder();
        struct ct_trace *trace;

        for (r = 0; r < job.ranks; r++) {
            sqlite3 *db = links_begin(folder, &job, r);

            links_nic(db, 0, "rdma 1 InfiniBand ACTIVE 400000");
            files_sql(db,
                      "INSERT INTO nccl_comm (comm, mnnvl, network, source)"
                      " VALUES (1, %s, %s, 'log')",
                      unconnected[i].mnnvl, unconnected[i].network);
            files_end(db);
        }
        trace = files_open(folder);
        expect(trace, 0, 1, unconnected[i].link,
               unconnected[i].link == CT_LINK_IB ? 400000 : CT_NONE,
               unconnected[i].evidence, "");
        files_close(trace, folder);
    }
}

/* Sockets: the slower host's interface; none where NCCL may take one of several
 * that differ, or that of a host is not known. */
static void test_rate_of_sockets(void **state)
{
    static const struct {
        const char *list, *nics[3];
        int other_mbps; /* of the other host's only one; 0: not told */
        int64_t mbps;
    } cases[] = {
        {NULL, {"net 0 - up 25000"}, 25000, 25000},
        {NULL, {"net 0 - up 25000"}, 10000, 10000},
        {NULL, {"net 0 - up 25000"}, 0, CT_NONE},
        {NULL, {"net 0 - up 25000", "net 0 - up 10000"}, 25000, CT_NONE},
        {"NET/Socket : Using [0]mlx5_1:10.0.0.1<0>",
         {"net 0 - up 25000", "net 0 - up 10000"},
         25000,
         10000},
        {"NET/Socket : Using [0]mlx5_0:10.0.0.1<0> [1]mlx5_1:10.1.0.1<0>",
         {"net 0 - up 25000", "net 0 - up 10000"},
         25000,
         CT_NONE},
        {"NET/Socket : Using [0]mlx5_0:10.0.0.1<0> [1]mlx5_2:10.1.0.1<0>",
         {"net 0 - up 25000", "net 0 - up 10000", "net 0 - up 25000"},
         40000,
         25000},
    };
    const struct links_job job = {.ranks = 2, .per_host = 1};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *folder = files_folder();
        struct ct_trace *trace;

        for (int r = 0; r < job.ranks; r++) {
            sqlite3 *db = links_begin(folder, &job, r);
            char other[64];

            snprintf(other, sizeof(other), "net 0 - up %d",
                     cases[i].other_mbps);
            for (int n = 0; n < 3 && cases[i].nics[n] && r == 0; n++)
                links_nic(db, n, cases[i].nics[n]);
            if (r == 0 && cases[i].list)
                links_message(db, "network", cases[i].list);
            if (r == 1)
                links_nic(db, 0, other);
            files_sql(db, "INSERT INTO nccl_comm (comm, mnnvl, network, source)"
                          " VALUES (1, 0, 'Socket', 'log')");
            files_end(db);
        }
        trace = files_open(folder);
        expect(trace, 0, 1, CT_LINK_TCP, cases[i].mbps, "conn", "Socket");
        files_close(trace, folder);
    }
}

/* Hosts of one NVLink domain are no network, whoever says so. */
static void test_nvl72(void **state)
{
    const struct links_job job = {.ranks = 4, .per_host = 2};
    static const char *const said[] = {"topology", "plugin", "conn"};
    int i, r;

    (void)state;
    for (i = 0; i < 3; i++) {
        const char *folder = files_folder();
        struct ct_trace *trace;

        for (r = 0; r < job.ranks; r++) {
            sqlite3 *db = links_begin(folder, &job, r);

            links_gpu_link(db, r, -1, "nvswitch", 5, NULL);
            files_sql(db, "UPDATE device SET cluster = 'rack', clique = 1");
            if (i == 1)
                files_sql(db, "INSERT INTO nccl_comm (comm, nodes, source)"
                              " VALUES (1, 1, 'plugin')");
            if (i == 2)
                links_ring(db, &job, r, "P2P/MNNVL");
            files_end(db);
        }
        trace = files_open(folder);
        expect(trace, 1, 2, CT_LINK_MNNVL, 5, said[i], "");
        assert_int_equal(trace->jobs[0].nnodes, 2);
        assert_int_equal(trace->jobs[0].ndomains, 1);
        assert_int_equal(trace->jobs[0].comms[0].nnodes, 2);
        assert_int_equal(trace->jobs[0].comms[0].ndomains, 1);
        expect_worst(trace, CT_LINK_MNNVL, 5, said[i], i == 2 ? 0 : CT_NONE,
                     CT_NONE);
        files_close(trace, folder);
    }
}

/* A log of one rank is enough for its own hops; send/recv and collectives have
 * connections of their own; NVLink SHARP shows none. */
static void test_part_of_the_logs(void **state)
{
    const struct links_job job = {.ranks = 4, .per_host = 4};
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < job.ranks; r++) {
        sqlite3 *db = links_begin(folder, &job, r);

        links_gpu_link(db, r, -1, "nvswitch", 4, NULL);
        if (r == 0)
            files_sql(db, "INSERT INTO conn VALUES (1, 0, 1, 0, 2, NULL,"
                          " 'SHM/direct'), (1, 0, 0, 0, 1, NULL, 'P2P/IPC'),"
                          " (1, 0, 0, 0, 77, NULL, 'SHM'),"
                          " (9, 0, 0, 0, 1, NULL, 'SHM'),"
                          " (1, 0, 0, -5, 1, NULL, 'SHM'),"
                          " (1, 0, 0, 0, 3, NULL, 'what is that')");
        if (r == 3)
            files_sql(db, "INSERT INTO nccl_comm (comm, nvls_channels, source)"
                          " VALUES (1, 16, 'log')");
        if (r == 2) /* a send goes over its own */
            files_sql(db, "INSERT INTO conn VALUES (1, 0, 0, 2, 3, NULL,"
                          " 'SHM/direct'), (1, 0, 1, 2, 3, NULL,"
                          " 'P2P/CUMEM')");
        files_end(db);
    }
    trace = files_open(folder);
    expect(trace, 0, 1, CT_LINK_NVSWITCH, 4, "conn", "P2P/IPC");
    expect(trace, 0, 2, CT_LINK_SHM, CT_NONE, "conn", "SHM/direct");
    expect(trace, 2, 0, CT_LINK_SHM, CT_NONE, "conn", "SHM/direct");
    expect(trace, 0, 3, CT_LINK_NVSWITCH, 4, "topology", "NVSwitches");
    expect(trace, 3, 1, CT_LINK_NVSWITCH, 4, "conn",
           "16 NVLS channels, no connection shown");
    expect(trace, 2, 3, CT_LINK_NVSWITCH, 4, "conn", "P2P/CUMEM");
    files_close(trace, folder);
}

/* Of a rank without a trace its peer's log tells, where it can. */
static void test_missing_peer(void **state)
{
    const struct links_job job = {.ranks = 3, .per_host = 1};
    const char *folder = files_folder();
    sqlite3 *db = links_begin(folder, &job, 0);
    struct ct_trace *trace;

    (void)state;
    links_nic(db, 0, "rdma 1 InfiniBand ACTIVE 400000");
    files_sql(db, "INSERT INTO conn VALUES (1, 0, 0, 0, 1, 'send',"
                  " 'NET/IB/0/GDRDMA'), (1, 0, 0, 2, 0, 'receive',"
                  " 'P2P/CUMEM')");
    files_end(db);
    trace = files_open(folder);
    expect(trace, 0, 1, CT_LINK_IB, 400000, "conn", "NET/IB/0");
    expect(trace, 1, 0, CT_LINK_IB, 400000, "conn", "NET/IB/0");
    expect(trace, 0, 2, CT_LINK_UNKNOWN, CT_NONE, "unknown", "");
    expect_worst(trace, CT_LINK_IB, 400000, "conn", CT_NONE, 1);
    files_close(trace, folder);
}

/* Neither shared memory nor P2P that is not MNNVL's leads to another host. */
static void test_what_cannot_be(void **state)
{
    static const char *const vias[] = {"SHM/direct", "P2P/CUMEM"};
    const struct links_job job = {.ranks = 2, .per_host = 1};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(vias) / sizeof(*vias); i++) {
        const char *folder = files_folder();
        struct ct_trace *trace;
        int r;

        for (r = 0; r < 2; r++) {
            sqlite3 *db = links_begin(folder, &job, r);

            links_ring(db, &job, r, vias[i]);
            files_end(db);
        }
        trace = files_open(folder);
        expect(trace, 0, 1, CT_LINK_NETWORK, CT_NONE, "host", "");
        files_close(trace, folder);
    }
}

/* Ranks that no communicator has hide none of those that it has. */
static void test_absurd_ranks(void **state)
{
    const struct links_job job = {.ranks = 2, .per_host = 1};
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < job.ranks; r++) {
        sqlite3 *db = links_begin(folder, &job, r);

        files_sql(db, "INSERT INTO conn VALUES"
                      " (1, 0, 0, 0, 2147483647, NULL, 'P2P/IPC'),"
                      " (1, 0, 0, 0, -2147483648, NULL, 'P2P/IPC'),"
                      " (1, 0, 0, -2147483648, 1, NULL, 'P2P/IPC'),"
                      " (1, 0, 0, 0, 1, NULL, 'NET/Socket/0'),"
                      " (1, 0, 0, 2147483647, -1, NULL, 'P2P/IPC'),"
                      " (1, 1, 0, 0, -2147483648, NULL, 'P2P/IPC')");
        files_end(db);
    }
    trace = files_open(folder);
    assert_int_equal(trace->processes[0].nccl.nconns, 5);
    expect(trace, 0, 1, CT_LINK_TCP, CT_NONE, "conn", "NET/Socket/0");
    expect_worst(trace, CT_LINK_TCP, CT_NONE, "conn", CT_NONE, 1);
    files_close(trace, folder);
}

/* A process with two ranks: each has the words that are about it. */
static void test_parts(void **state)
{
    const struct links_job job = {.ranks = 2, .per_host = 2};
    const char *folder = files_folder();
    sqlite3 *db = links_begin(folder, &job, 0);
    struct ct_trace *trace;

    (void)state;
    files_sql(db, "INSERT INTO device (id, uuid, pci) VALUES (1, 'GPU-b',"
                  " '0000:01:00.0')");
    files_sql(db, "INSERT INTO comm (id, uid, origin, nranks, rank, device)"
                  " VALUES (2, 77, 'init_all', 2, 1, 1)");
    files_class(db, 2, 2, CT_OP_ALL_REDUCE, 1000, -1);
    files_op(db, 2, 2, 0, 5100, 600);
    links_gpu_link(db, 0, 1, "nvlink", 4, NULL);
    files_sql(db, "INSERT INTO conn VALUES"
                  " (1, 0, 0, 0, 1, NULL, 'P2P/direct pointer'),"
                  " (2, 0, 0, 1, 0, NULL, 'P2P/direct pointer')");
    links_message(db, "version", "NCCL version 2.30.7+cuda13.0");
    files_end(db);
    trace = files_open(folder);
    assert_int_equal(trace->nprocesses, 2);
    assert_int_equal(trace->processes[0].nccl.nconns, 1);
    assert_int_equal(trace->processes[1].nccl.nconns, 1);
    assert_int_equal(trace->processes[1].nccl.conns[0].comm, 0);
    assert_int_equal(trace->processes[1].nccl.nmessages, 1);
    expect(trace, 0, 1, CT_LINK_NVLINK, 4, "conn", "direct pointer");
    expect_worst(trace, CT_LINK_NVLINK, 4, "conn", CT_NONE, CT_NONE);
    files_close(trace, folder);
}

static void test_words(void **state)
{
    char text[40];

    (void)state;
    ct_link_text(CT_LINK_NVSWITCH, 4, text, sizeof(text));
    assert_string_equal(text, "NVSwitch 4");
    ct_link_text(CT_LINK_IB, 400000, text, sizeof(text));
    assert_string_equal(text, "InfiniBand 400G");
    ct_link_text(CT_LINK_TCP, 100, text, sizeof(text));
    assert_string_equal(text, "TCP 100M");
    ct_link_text(CT_LINK_SHM, CT_NONE, text, sizeof(text));
    assert_string_equal(text, "shared memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inside_a_host),
        cmocka_unit_test(test_between_hosts),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_topology_of_ports),
        cmocka_unit_test(test_network_of_unconnected),
        cmocka_unit_test(test_rate_of_sockets),
        cmocka_unit_test(test_nvl72),
        cmocka_unit_test(test_part_of_the_logs),
        cmocka_unit_test(test_missing_peer),
        cmocka_unit_test(test_what_cannot_be),
        cmocka_unit_test(test_absurd_ranks),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
