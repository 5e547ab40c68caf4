/*
 * Findings about links: each fault that is planted is found, with the line or
 * the port that tells of it; machines on which NCCL did as it should say
 * nothing.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "findings/findings.h"
#include "links_files.h"

#define IB "rdma 1 InfiniBand ACTIVE 400000"
#define IB_LIST                                                    \
    "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB " \
    "[3]mlx5_3:1/IB [RO]; OOB eth0:10.0.0.1<0>"

struct report {
    const char *folder;
    struct ct_trace *trace;
    struct ct_model *model;
    struct ct_roles *roles;
    struct ct_findings *findings;
};

static struct report report_on(const char *folder)
{
    struct report r = {.folder = folder, .trace = files_open(folder)};
    struct ct_job *job = &r.trace->jobs[0];

    r.model = ct_model_build(r.trace, job);
    r.roles = ct_roles_build(r.trace, job);
    r.findings = ct_findings_build(r.trace, job, r.model, NULL, r.roles, NULL);
    assert_non_null(r.findings);
    return r;
}

static void end(struct report *r)
{
    ct_findings_free(r->findings);
    ct_roles_free(r->roles);
    ct_model_free(r->model);
    files_close(r->trace, r->folder);
}

static bool is_about_links(const struct ct_finding_row *row)
{
    return row->id >= CT_FINDING_P2P_DISABLED &&
           row->id <= CT_FINDING_SLOW_PORT;
}

/* The only finding about links; CT_FINDING_COUNT: there is none. */
static const struct ct_finding_row *expect(const struct report *r,
                                           enum ct_finding id, const char *text,
                                           const char *advice)
{
    const struct ct_finding_row *found = NULL;

    for (int i = 0; i < r->findings->n; i++) {
        const struct ct_finding_row *row = &r->findings->rows[i];

        if (!is_about_links(row))
            continue;
        if (getenv("SHOW"))
            printf("%s: %s\n  -> %s\n", ct_finding_infos[row->id].code,
                   row->text, row->advice);
        if (row->id != id)
            fail_msg("%s: %s", ct_finding_infos[row->id].code, row->text);
        assert_null(found);
        found = row;
    }
    if (id == CT_FINDING_COUNT)
        return NULL;
    assert_non_null(found);
    if (!strstr(found->text, text))
        fail_msg("not found: %s\nin: %s", text, found->text);
    if (!strstr(found->advice, advice))
        fail_msg("not found: %s\nin: %s", advice, found->advice);
    return found;
}

/* A host of NVSwitches with a port per GPU, rings over all ranks. */
struct plan {
    struct links_job job;
    const char *gpu_link;        /* kind between GPUs of a host */
    const char *path;            /* PCIe way between them */
    const char *inside, *across; /* via */
    const char *lines[3];        /* of NCCL's log, "kind text" */
    const char *gpu;             /* its name */
    const char *nic[4];          /* ports of each host */
    const char *gpu_nic[4];      /* way from every GPU to port i */
    const char *last_nic;        /* replaces port 0 of the last host */
    bool one_domain;
    enum ct_finding id;
    const char *text, *advice;
};

static void put_rank(const struct plan *plan, const char *folder, int rank)
{
    const struct links_job *job = &plan->job;
    sqlite3 *db = links_begin(folder, job, rank);
    const bool last = rank / job->per_host == (job->ranks - 1) / job->per_host;

    if (!strcmp(plan->gpu_link, "nvswitch"))
        links_gpu_link(db, rank, -1, "nvswitch", 4, NULL);
    for (int r = 0; r < job->ranks; r++)
        if (r != rank && links_host(job, r) == links_host(job, rank) &&
            strcmp(plan->gpu_link, "nvswitch") != 0)
            links_gpu_link(db, rank, r, plan->gpu_link, 0, plan->path);
    for (int i = 0; i < 4 && plan->nic[i]; i++) {
        links_nic(db, i,
                  i || !last || !plan->last_nic ? plan->nic[i]
                                                : plan->last_nic);
        if (plan->gpu_nic[i])
            links_gpu_nic(db, rank, i, plan->gpu_nic[i]);
    }
    for (int i = 0; i < 3 && plan->lines[i]; i++) {
        char kind[32];

        snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(plan->lines[i], " "),
                 plan->lines[i]);
        links_message(db, kind, plan->lines[i] + strlen(kind) + 1);
    }
    if (plan->gpu)
        files_sql(db, "UPDATE device SET name = '%s'", plan->gpu);
    if (plan->one_domain)
        files_sql(db, "UPDATE device SET cluster = 'rack', clique = 3");
    links_ring_across(db, job, rank, plan->inside, plan->across);
    files_end(db);
}

static const struct plan plans[] = {
    {.job = {4, 4},
     .gpu_link = "nvswitch",
     .inside = "SHM/direct/direct",
     .lines = {"environment NCCL_P2P_DISABLE set by environment to 1."},
     .id = CT_FINDING_P2P_DISABLED,
     .text = "rank 0 reaches rank 1 via SHM/direct/direct, although the "
             "machine has NVSwitch 4 between their GPUs (18 and 18 NVLinks to "
             "NVSwitches); NCCL's log: \"NCCL_P2P_DISABLE set by environment "
             "to 1.\"",
     .advice = "take that variable out"},
    /* A variable that is off is no reason. */
    {.job = {4, 4},
     .gpu_link = "nvswitch",
     .inside = "NET/Socket/0",
     .lines = {"environment NCCL_P2P_DISABLE set by environment to 0."},
     .id = CT_FINDING_P2P_DISABLED,
     .text = "via NET/Socket/0, although",
     .advice = "NCCL does not say why"},
    {.job = {2, 2},
     .gpu_link = "pcie",
     .path = "PIX",
     .inside = "SHM/direct",
     .lines = {"p2p P2P is disabled between connected GPUs 1 and 0. You can"},
     .id = CT_FINDING_P2P_DISABLED,
     .text = "pcie PIX, ",
     .advice = "PCIe access control (ACS)"},
    /* Over the CPU, NCCL never uses P2P by itself; nor where it cannot. */
    {.job = {2, 2},
     .gpu_link = "pcie",
     .path = "SYS",
     .inside = "SHM/direct",
     .lines = {"environment NCCL_P2P_LEVEL set by environment to PXB"},
     .id = CT_FINDING_COUNT},
    {.job = {2, 2},
     .gpu_link = "none",
     .inside = "SHM/direct",
     .lines = {"p2p P2P is disabled between connected GPUs 1 and 0."},
     .id = CT_FINDING_COUNT},
    /* Ports near to GPUs may beat the way over the CPU. */
    {.job = {2, 2},
     .gpu_link = "pcie",
     .path = "SYS",
     .inside = "NET/IB/0/GDRDMA",
     .nic = {IB},
     .gpu_nic = {"PIX"},
     .id = CT_FINDING_COUNT},
    {.job = {4, 2},
     .gpu_link = "nvswitch",
     .one_domain = true,
     .inside = "P2P/CUMEM",
     .across = "NET/IB/0/GDRDMA",
     .nic = {IB},
     .lines = {"environment NCCL_MNNVL_ENABLE set by environment to 0."},
     .id = CT_FINDING_P2P_DISABLED,
     .text = "has multi-node NVLink 4 between their GPUs (one NVLink "
             "fabric, clique 3 of rack); NCCL's log: \"NCCL_MNNVL_ENABLE",
     .advice = "take that variable out"},
    {.job = {4, 2},
     .gpu_link = "nvswitch",
     .one_domain = true,
     .inside = "P2P/CUMEM",
     .across = "NET/IB/0/GDRDMA",
     .nic = {IB},
     .lines = {"environment NCCL_MNNVL_ENABLE set by environment to 1."},
     .id = CT_FINDING_P2P_DISABLED,
     .text = "clique 3 of rack)",
     .advice = "NCCL does not say why"},

    {.job = {2, 2},
     .gpu_link = "none",
     .inside = "NET/Socket/0",
     .lines = {"environment NCCL_SHM_DISABLE set by environment to 1."},
     .id = CT_FINDING_SHM_DISABLED,
     .text = "rank 0 reaches rank 1 on the same host via NET/Socket/0, not "
             "through shared memory; NCCL's log: \"NCCL_SHM_DISABLE",
     .advice = "take that variable out"},
    {.job = {2, 2},
     .gpu_link = "none",
     .inside = "NET/Socket/0",
     .id = CT_FINDING_SHM_DISABLED,
     .text = "on the same host",
     .advice = "one /dev/shm"},

    {.job = {4, 2},
     .gpu_link = "nvswitch",
     .inside = "P2P/CUMEM",
     .across = "NET/Socket/0",
     .nic = {IB},
     .lines = {"network NET/IB : No device found.",
               "network NET/Socket : Using [0]eth0:10.0.0.1<0>"},
     .id = CT_FINDING_IB_FELL_BACK_TO_TCP,
     .text = "rank 3 reaches rank 0 via NET/Socket/0, eth0, although both "
             "hosts have active ports of InfiniBand 400G "
             "(/sys/class/infiniband/mlx5_0); NCCL's log: \"NET/IB : No device "
             "found.\"",
     .advice = "libibverbs"},
    {.job = {4, 2},
     .gpu_link = "nvswitch",
     .inside = "P2P/CUMEM",
     .across = "NET/Socket/0",
     .nic = {"rdma 1 Ethernet ACTIVE 100000"},
     .lines = {"environment NCCL_IB_DISABLE set by environment to 1."},
     .id = CT_FINDING_IB_FELL_BACK_TO_TCP,
     .text = "active ports of RoCE 100G",
     .advice = "or correct it"},
    {.job = {4, 2},
     .gpu_link = "nvswitch",
     .inside = "P2P/CUMEM",
     .across = "NET/Socket/0",
     .nic = {"rdma 1 InfiniBand DOWN 400000"},
     .id = CT_FINDING_COUNT},

    {.job = {4, 2},
     .gpu_link = "nvswitch",
     .inside = "P2P/CUMEM",
     .across = "NET/IB/0/GDRDMA",
     .nic = {IB, IB},
     .gpu_nic = {"SYS", "PIX"},
     .lines = {"network NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:1<0>",
               "environment NCCL_IB_HCA set to mlx5_0"},
     .id = CT_FINDING_NIC_FAR_FROM_GPU,
     .text = "rank 0 sends or receives via NET/IB/0/GDRDMA, mlx5_0, which its "
             "GPU reaches over SYS (/sys/class/infiniband/mlx5_0), while "
             "mlx5_1 is as fast and PIX away; NCCL's log: \"NCCL_IB_HCA",
     .advice = "name all ports"},
    /* One GPU a host needs no second port. */
    {.job = {2, 1},
     .gpu_link = "nvswitch",
     .inside = "P2P/CUMEM",
     .across = "NET/IB/0/GDRDMA",
     .nic = {IB, IB},
     .gpu_nic = {"PHB", "PHB"},
     .lines = {"network " IB_LIST},
     .id = CT_FINDING_COUNT},
    /* As near as any, or the nearer one is slower, or another GPU's. */
    {.job = {4, 2},
     .gpu_link = "nvswitch",
     .inside = "P2P/CUMEM",
     .across = "NET/IB/0/GDRDMA",
     .nic = {IB, IB},
     .gpu_nic = {"SYS", "SYS"},
     .lines = {"network " IB_LIST},
     .id = CT_FINDING_ONE_NIC_USED,
     .text = "goes through mlx5_0, via NET/IB/0/GDRDMA, although 2 such ports "
             "are nearest to its GPUs, as mlx5_1",
     .advice = "NET/IB : Using"},
    {.job = {4, 2},
     .gpu_link = "nvswitch",
     .inside = "P2P/CUMEM",
     .across = "NET/IB/0/GDRDMA",
     .nic = {IB, "rdma 1 InfiniBand ACTIVE 100000"},
     .gpu_nic = {"SYS", "PIX"},
     .lines = {"network " IB_LIST},
     .id = CT_FINDING_COUNT},
    {.job = {4, 2},
     .gpu_link = "nvswitch",
     .inside = "P2P/CUMEM",
     .across = "NET/IB/0(1)/GDRDMA",
     .nic = {IB, IB},
     .gpu_nic = {"SYS", "PIX"},
     .lines = {"network NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB",
               "environment NCCL_IB_HCA set to mlx5_0"},
     .id = CT_FINDING_COUNT},

    {.job = {4, 2},
     .gpu_link = "nvswitch",
     .inside = "P2P/CUMEM",
     .across = "NET/IB/0",
     .nic = {IB},
     .gpu_nic = {"PXB"},
     .lines = {"network " IB_LIST,
               "gdr NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"},
     .id = CT_FINDING_GDR_OFF,
     .text = "rank 0 sends or receives via NET/IB/0, mlx5_0, through host "
             "memory instead of GPUDirect RDMA (GDRDMA), although its GPU "
             "reaches the port over PXB (/sys/class/infiniband/mlx5_0); NCCL's "
             "log: \"NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\"",
     .advice = "nvidia_peermem"},
    {.job = {4, 2},
     .gpu_link = "nvswitch",
     .inside = "P2P/CUMEM",
     .across = "NET/IB/0",
     .nic = {IB},
     .gpu_nic = {"PIX"},
     .lines = {"network " IB_LIST,
               "environment NCCL_NET_GDR_LEVEL set by environment to LOC"},
     .id = CT_FINDING_GDR_OFF,
     .text = "NCCL_NET_GDR_LEVEL",
     .advice = "take that variable out"},
    {.job = {4, 2},
     .gpu_link = "nvswitch",
     .inside = "P2P/CUMEM",
     .across = "NET/IB/0",
     .nic = {IB},
     .gpu_nic = {"PIX"},
     .lines = {"network " IB_LIST,
               "environment NCCL_NET_GDR_LEVEL set by environment to SYS"},
     .id = CT_FINDING_GDR_OFF,
     .text = "over PIX",
     .advice = "load nvidia_peermem"},
    /* NCCL does not use it over the CPU, and some cards have none. */
    {.job = {4, 2},
     .gpu_link = "nvswitch",
     .inside = "P2P/CUMEM",
     .across = "NET/IB/0",
     .nic = {IB},
     .gpu_nic = {"PHB"},
     .id = CT_FINDING_COUNT},
    {.job = {4, 2},
     .gpu_link = "none",
     .inside = "SHM/direct",
     .across = "NET/IB/0",
     .nic = {IB},
     .gpu_nic = {"PIX"},
     .gpu = "NVIDIA GeForce RTX 4090",
     .id = CT_FINDING_COUNT},

    {.job = {4, 2},
     .gpu_link = "nvswitch",
     .inside = "P2P/CUMEM",
     .across = "NET/IB/0/GDRDMA",
     .nic = {IB},
     .gpu_nic = {"PIX"},
     .last_nic = "rdma 1 InfiniBand ACTIVE 200000",
     .lines = {"network " IB_LIST},
     .id = CT_FINDING_SLOW_PORT,
     .text = "mlx5_0 of host h1 runs at 200 Gbit/s "
             "(/sys/class/infiniband/mlx5_0), on other hosts at 400",
     .advice = "slowest"},
};

static void test_planted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        const struct plan *plan = &plans[i];
        const char *folder = files_folder();
        const struct ct_finding_row *row;
        struct report r;

        for (int rank = 0; rank < plan->job.ranks; rank++)
            put_rank(plan, folder, rank);
        r = report_on(folder);
        row = expect(&r, plan->id, plan->text, plan->advice);
        if (row) {
            assert_string_equal(ct_finding_infos[row->id].severity, "bad");
            assert_true(isnan(row->loss_ms)); /* 0.7 us are too short */
        }
        end(&r);
    }
}

/* The port is there on both hosts, and the connections of one use it. */
static void test_port_down(void **state)
{
    const struct links_job job = {4, 2};
    const char *folder = files_folder();
    struct report r;

    (void)state;
    for (int rank = 0; rank < 4; rank++) {
        sqlite3 *db = links_begin(folder, &job, rank);

        links_nic(db, 0, rank < 2 ? IB : "rdma 1 InfiniBand DOWN 10000");
        links_nic(db, 1, IB);
        links_nic(db, 2, rank < 2 ? "rdma 1 InfiniBand DOWN 10000" : IB);
        links_message(db, "network", IB_LIST);
        links_ring_across(db, &job, rank, "P2P/CUMEM",
                          rank < 2 ? "NET/IB/0/GDRDMA" : "NET/IB/1/GDRDMA");
        files_end(db);
    }
    r = report_on(folder);
    expect(&r, CT_FINDING_NIC_DOWN,
           "mlx5_0 of host h1 is DOWN (/sys/class/infiniband/mlx5_0), while h0 "
           "uses it via NET/IB/0/GDRDMA",
           "ibstat");
    end(&r);
}

/* What 16 MiB cost through shared memory, against NVSwitch. */
static void test_price(void **state)
{
    const struct links_job job = {4, 4};
    const char *folder = files_folder();
    const struct ct_finding_row *row;
    struct report r;

    (void)state;
    for (int rank = 0; rank < 4; rank++) {
        sqlite3 *db = links_begin(folder, &job, rank);

        files_class(db, 2, 1, CT_OP_ALL_REDUCE, 4 << 20, -1);
        for (int i = 0; i < 40; i++)
            files_op(db, i + 2, 2, i + 1, 10000000 * (i + 1L), 4200000);
        links_gpu_link(db, rank, -1, "nvswitch", 4, NULL);
        links_ring(db, &job, rank, "SHM/direct/direct");
        files_end(db);
    }
    r = report_on(folder);
    row = expect(&r, CT_FINDING_P2P_DISABLED,
                 "of ranks 0-3: rank 0 reaches rank 1", "NCCL does not say");
    /* 40 calls in 0.4 s, of 4.2 ms; T = 10.2 + 1.5 * 16.78 / 0.37 us. */
    assert_true(fabs(row->loss_ms / (100 * (4.2 - .0782)) - 1) < .05);
    assert_true(row->loss_low_ms < row->loss_ms &&
                row->loss_ms < row->loss_high_ms);
    assert_string_equal(row->per, "second");
    assert_int_equal(row->source, CT_SOURCE_PRIOR);
    assert_non_null(strstr(row->text, "over NVSwitch 4"));
    end(&r);
}

/* Machines at random on which NCCL did as it should. */
static int chance(unsigned *seed, int n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (int)((*seed >> 16) % (unsigned)n);
}

struct machine {
    struct links_job job;
    int kind;    /* NVSwitch, NVLink, PCIe switches, none */
    int network; /* InfiniBand, RoCE, TCP, plugin */
    bool near;   /* a port on each GPU's switch; else one on the CPU */
};

static void put_gpu(sqlite3 *db, const struct machine *m, int rank)
{
    if (m->kind == 0)
        links_gpu_link(db, rank, -1, "nvswitch", 4, NULL);
    for (int r = 0; r < m->job.ranks; r++) {
        if (r == rank || links_host(&m->job, r) != links_host(&m->job, rank))
            continue;
        if (m->kind == 1)
            links_gpu_link(db, rank, r, "nvlink", 3, "SYS");
        else if (m->kind == 2)
            links_gpu_link(db, rank, r, "pcie", 0,
                           r / 2 == rank / 2 ? "PIX" : "SYS");
        else if (m->kind == 3)
            links_gpu_link(db, rank, r, "none", 0, "PHB");
    }
}

static void put_ports(sqlite3 *db, const struct machine *m, int rank)
{
    static const char *const kinds[] = {IB, "rdma 1 Ethernet ACTIVE 100000",
                                        "net 0 - up 25000",
                                        "net 0 - up 200000"};
    const int n = m->near ? m->job.per_host : 1;

    for (int i = 0; i < n; i++) {
        links_nic(db, i, kinds[m->network]);
        links_gpu_nic(db, rank, i,
                      !m->near                      ? "PHB"
                      : i == rank % m->job.per_host ? "PIX"
                                                    : "SYS");
    }
    if (m->network == 0)
        links_message(db, "network", IB_LIST);
}

static const char *inside(const struct machine *m, int a, int b)
{
    if (m->kind < 2 || (m->kind == 2 && a / 2 == b / 2))
        return "P2P/CUMEM";
    return "SHM/direct/direct";
}

static void across(const struct machine *m, int rank, char *via, size_t size)
{
    static const char *const names[] = {"IB", "IB", "Socket", "AWS Libfabric"};

    snprintf(via, size, "NET/%s/%d%s", names[m->network],
             m->near ? rank % m->job.per_host : 0,
             m->near && m->network != 2 ? "/GDRDMA" : "");
}

static void put_machine(const struct machine *m, const char *folder)
{
    for (int rank = 0; rank < m->job.ranks; rank++) {
        const int next = (rank + 1) % m->job.ranks;
        const int prev = (rank + m->job.ranks - 1) % m->job.ranks;
        sqlite3 *db = links_begin(folder, &m->job, rank);
        char via[48];

        put_gpu(db, m, rank);
        put_ports(db, m, rank);
        links_message(db, "environment",
                      "NCCL_P2P_DISABLE set by environment to 0.");
        across(m, rank, via, sizeof via);
        links_conn(db, rank, next, "send",
                   links_host(&m->job, rank) == links_host(&m->job, next)
                       ? inside(m, rank, next)
                       : via);
        links_conn(db, prev, rank, "receive",
                   links_host(&m->job, rank) == links_host(&m->job, prev)
                       ? inside(m, prev, rank)
                       : via);
        files_end(db);
    }
}

static void test_healthy(void **state)
{
    unsigned seed = 7;

    (void)state;
    for (int i = 0; i < 48; i++) {
        const char *folder = files_folder();
        struct machine m = {
            .kind = i % 4, .network = i / 4 % 4, .near = chance(&seed, 2)};
        struct report r;

        m.job.per_host = 1 + chance(&seed, 4);
        m.job.ranks = m.job.per_host * (1 + chance(&seed, 3));
        put_machine(&m, folder);
        r = report_on(folder);
        expect(&r, CT_FINDING_COUNT, "", "");
        end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted),
        cmocka_unit_test(test_port_down),
        cmocka_unit_test(test_price),
        cmocka_unit_test(test_healthy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
