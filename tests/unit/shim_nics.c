/* NICs and ways over PCIe, from trees in the form of sysfs: as machines have
 * them, and as nobody should find them. */
#include "nics.h"
#include "pcie.h"
#include "shim_test.h"
#include "sysfs.h"

#include <ftw.h>
#include <sys/stat.h>

static char tree[64];

static int make_tree(void **state)
{
    (void)state;
    snprintf(tree, sizeof(tree), "/tmp/shim-nics-XXXXXX");
    return mkdtemp(tree) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int remove_tree(void **state)
{
    (void)state;
    return nftw(tree, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* The path in the tree, with the folders that it is in. */
static const char *place(const char *path)
{
    static char full[1200];
    snprintf(full, sizeof(full), "%s/%s", tree, path);
    for (char *p = full + strlen(tree) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(full, 0777);
        *p = '/';
    }
    return full;
}

static void put_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(place(path), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void put(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text));
}

static void put_link(const char *path, const char *target)
{
    assert_int_equal(symlink(target, place(path)), 0);
}

/* A PCI function by its chain of addresses, as "pci0000:00/0000:00:01.0/..." */
static const char *put_function(const char *chain, const char *numa)
{
    static char folder[512];
    char path[1024], target[1024];
    snprintf(folder, sizeof(folder), "devices/%s", chain);
    snprintf(path, sizeof(path), "bus/pci/devices/%s", strrchr(chain, '/') + 1);
    snprintf(target, sizeof(target), "../../../%s", folder);
    put_link(path, target);
    snprintf(path, sizeof(path), "%s/numa_node", folder);
    put(path, numa);
    return folder;
}

static void put_rdma(const char *name, const char *chain, const char *numa)
{
    char path[1024], target[1024];
    const char *folder = put_function(chain, numa);
    snprintf(path, sizeof(path), "class/infiniband/%s", name);
    snprintf(target, sizeof(target), "../../%s/infiniband/%s", folder, name);
    put_link(path, target);
    snprintf(path, sizeof(path), "%s/infiniband/%s/hca_type", folder, name);
    put(path, "MT4129\n");
    snprintf(path, sizeof(path), "%s/infiniband/%s/fw_ver", folder, name);
    put(path, "28.39.1002\n");
    snprintf(path, sizeof(path), "%s/infiniband/%s/device", folder, name);
    snprintf(target, sizeof(target), "../../../%s", strrchr(chain, '/') + 1);
    put_link(path, target);
}

static void put_port(const char *device, int port, const char *layer,
                     const char *state, const char *rate)
{
    const char *const facts[][2] = {
        {"link_layer", layer}, {"state", state}, {"rate", rate}};
    for (int i = 0; i < 3; i++) {
        char path[256];
        snprintf(path, sizeof(path), "class/infiniband/%s/ports/%d/%s", device,
                 port, facts[i][0]);
        put(path, facts[i][1]);
    }
}

static void put_net(const char *name, const char *folder, const char *speed,
                    const char *state)
{
    char path[1024], target[1024];
    snprintf(path, sizeof(path), "class/net/%s", name);
    snprintf(target, sizeof(target), "../../%s/net/%s", folder, name);
    put_link(path, target);
    snprintf(path, sizeof(path), "%s/net/%s/speed", folder, name);
    put(path, speed);
    snprintf(path, sizeof(path), "%s/net/%s/operstate", folder, name);
    put(path, state);
}

static const char *word(const char *text)
{
    return text ? text : "-";
}

static void print_number(FILE *out, int64_t number)
{
    if (number == CT_NULL)
        fputs(" -", out);
    else
        fprintf(out, " %lld", (long long)number);
}

static void print_nic(FILE *out, const struct row_nic *nic)
{
    fprintf(out, "%lld %s %s", (long long)nic->id, word(nic->name),
            word(nic->kind));
    print_number(out, nic->port);
    fprintf(out, " %s %s", word(nic->link_layer), word(nic->state));
    print_number(out, nic->mbps);
    fprintf(out, " %s", word(nic->pci));
    print_number(out, nic->numa);
    fprintf(out, " %s %s %s %s\n", word(nic->netdev), word(nic->driver),
            word(nic->firmware), word(nic->source));
}

static void print_row(FILE *out, const struct row *row)
{
    if (row->table == ROW_nic)
        print_nic(out, &row->u.nic);
    else if (row->table == ROW_gpu_nic)
        fprintf(out, "gpu %lld nic %lld %s\n", (long long)row->u.gpu_nic.device,
                (long long)row->u.gpu_nic.nic, word(row->u.gpu_nic.path));
    else
        fprintf(out, "no %s: %s\n", row->u.absence.what, row->u.absence.why);
}

/* What is found in the tree about a GPU. Facts are read once, so by a child. */
static const char *describe(const char *gpu)
{
    static char text[65536];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct batch batch = {0};
        FILE *out = fdopen(ends[1], "w");
        sysfs_set_root(tree);
        nics_describe(&batch, 0, pcie_find(gpu));
        for (size_t i = 0; i < batch.n; i++)
            print_row(out, &batch.rows[i]);
        fclose(out);
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t n;
         (n = read(ends[0], text + used, sizeof(text) - 1 - used)) > 0;)
        used += (size_t)n;
    text[used] = 0;
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    return text;
}

#define SWITCH "pci0000:00/0000:00:01.0/0000:01:00.0/"

/* A switch with a GPU, an InfiniBand card of two ports and another switch. */
static void test_rdma(void **state)
{
    (void)state;
    put_function(SWITCH "0000:02:00.0/0000:10:00.0", "0\n");
    put_rdma("mlx5_10", SWITCH "0000:02:01.0/0000:20:00.0", "0\n");
    put_port("mlx5_10", 1, "InfiniBand\n", "4: ACTIVE\n",
             "400 Gb/sec (4X NDR)\n");
    put_port("mlx5_10", 2, "InfiniBand\n", "1: DOWN\n",
             "2.5 Gb/sec (1X SDR)\n");
    put_rdma("mlx5_2",
             SWITCH "0000:02:02.0/0000:03:00.0/0000:04:00.0/0000:30:00.0",
             "0\n");
    put_port("mlx5_2", 1, "Ethernet\n", "4: ACTIVE\n", "100 Gb/sec (2X)\n");
    put("class/infiniband/mlx5_2/ports/1/gid_attrs/ndevs/0", "rdma2\n");
    put_rdma("mlx5_3", "pci0000:80/0000:80:01.0/0000:81:00.0", "1\n");
    put_port("mlx5_3", 1, "InfiniBand\n", "4: ACTIVE\n", "200 Gb/sec (4X)\n");
    put("devices/pci0000:80/0000:80:01.0/0000:81:00.0/net/ibp129s0/speed", "");
    put_net("eth0", "devices/pci0000:00/0000:00:1c.0/0000:40:00.0", "1000\n",
            "up\n");
    put_function("pci0000:00/0000:00:1c.0/0000:40:00.0", "0\n");
    put_link("class/net/eth0/device", "../../../0000:40:00.0");
    put_link("devices/pci0000:00/0000:00:1c.0/0000:40:00.0/driver",
             "../../../../bus/pci/drivers/igb");
    assert_string_equal(
        describe("0000:10:00.0"),
        "1 mlx5_2 rdma 1 Ethernet ACTIVE 100000 0000:30:00.0 0 rdma2 MT4129 "
        "28.39.1002 /sys/class/infiniband/mlx5_2/ports/1\n"
        "2 mlx5_3 rdma 1 InfiniBand ACTIVE 200000 0000:81:00.0 1 ibp129s0 "
        "MT4129 28.39.1002 /sys/class/infiniband/mlx5_3/ports/1\n"
        "3 mlx5_10 rdma 1 InfiniBand ACTIVE 400000 0000:20:00.0 0 - MT4129 "
        "28.39.1002 /sys/class/infiniband/mlx5_10/ports/1\n"
        "4 mlx5_10 rdma 2 InfiniBand DOWN 2500 0000:20:00.0 0 - MT4129 "
        "28.39.1002 /sys/class/infiniband/mlx5_10/ports/2\n"
        "5 eth0 net - - up 1000 0000:40:00.0 0 - igb - /sys/class/net/eth0\n"
        "gpu 0 nic 1 PXB\ngpu 0 nic 2 SYS\ngpu 0 nic 3 PIX\n"
        "gpu 0 nic 4 PIX\ngpu 0 nic 5 PHB\n");
}

/* Of interfaces that are no hardware a bond's speed counts, the constant of a
 * container's does not, and the loopback not at all. */
static void test_virtual(void **state)
{
    static const char virtual[] = "devices/virtual";
    (void)state;
    put_net("lo", virtual, "", "unknown\n");
    put("class/net/lo/type", "772\n");
    put_net("bond0", virtual, "50000\n", "up\n");
    put("class/net/bond0/bonding/mode", "802.3ad 4\n");
    put_net("eth0", virtual, "10000\n", "up\n");
    put_net("vmnet", "devices/pci0000:00/0000:00:03.0/virtio0", "-1\n", "up\n");
    put_function("pci0000:00/0000:00:03.0", "-1\n");
    put_function("pci0000:00/0000:00:04.0", "-1\n");
    assert_string_equal(
        describe("0000:00:04.0"),
        "no rdma: /sys/class/infiniband: No such file or directory\n"
        "1 vmnet net - - up - 0000:00:03.0 - - - - /sys/class/net/vmnet\n"
        "2 bond0 net - - up 50000 - - - - - /sys/class/net/bond0\n"
        "3 eth0 net - - up - - - - - - /sys/class/net/eth0\n"
        "gpu 0 nic 1 PHB\n");
}

/* A device of a container that has its RDMA device, and no more. */
static void test_little(void **state)
{
    (void)state;
    put("class/infiniband/mlx5_0/ports/1/rate", "garbage");
    put("class/infiniband/mlx5_0/ports/readme", "no port");
    assert_string_equal(describe("0000:10:00.0"),
                        "no net: /sys/class/net: No such file or directory\n"
                        "1 mlx5_0 rdma 1 - - - - - - - - "
                        "/sys/class/infiniband/mlx5_0/ports/1\n");
    assert_string_equal(describe(""),
                        "no net: /sys/class/net: No such file or directory\n"
                        "1 mlx5_0 rdma 1 - - - - - - - - "
                        "/sys/class/infiniband/mlx5_0/ports/1\n");
}

static void test_nothing(void **state)
{
    (void)state;
    mkdir(place("class/infiniband"), 0777);
    put("class/net", "a file");
    assert_string_equal(describe("0000:10:00.0"),
                        "no rdma: /sys/class/infiniband: empty\n"
                        "no net: /sys/class/net: Not a directory\n");
}

/* What no kernel has: files that do not end, that are none, links in circles,
 * names that are no names. */
static void test_hostile(void **state)
{
    static const unsigned char bytes[] = "A\x01\x80\xff%s\0tail";
    static char huge[1 << 20];
    char long_name[256] = "class/infiniband/";
    (void)state;
    memset(huge, 'x', sizeof(huge));
    put_bytes("class/infiniband/mlx5_0/hca_type", bytes, sizeof(bytes));
    put_bytes("class/infiniband/mlx5_0/fw_ver", huge, sizeof(huge));
    put("class/infiniband/mlx5_0/ports/1/rate",
        "99999999999999999999 Gb/sec\n");
    put_link("class/infiniband/mlx5_0/ports/1/state", "state");
    assert_int_equal(
        mkfifo(place("class/infiniband/mlx5_0/ports/1/link_layer"), 0666), 0);
    put("class/infiniband/mlx5_0/ports/99999999999999999999/rate", "");
    put("class/infiniband/mlx5_0/ports/-1/rate", "");
    put_link("class/infiniband/loop", "loop");
    put_link("class/infiniband/%s%n\n\xff", "../../devices/0000:zz:00.0");
    put("class/infiniband/\x02/ports/1/rate", "1 Gb/sec\n");
    memset(long_name + strlen(long_name), 'n', 200);
    put(long_name, "");
    put_link("class/net/a", "../../0000:00:01.0/../0000:00:01.0/0:0:0.0//");
    put_link("bus/pci/devices/0000:10:00.0", "0000:10:00.0");
    mkdir(place("bus/pci/devices/0000:00:00.0"), 0777);
    put_link("bus/pci/devices/0000:00:00.0/numa_node", "/dev/zero");
    char want[2048], x[256];
    memset(x, 'x', 255);
    x[255] = 0;
    snprintf(want, sizeof(want),
             "1 ? rdma 1 - - 1000 - - - - - "
             "/sys/class/infiniband/?/ports/1\n"
             "2 mlx5_0 rdma 1 - - - - - - A???%%s %s "
             "/sys/class/infiniband/mlx5_0/ports/1\n"
             "3 a net - - - - 0000:00:00.0 - - - - /sys/class/net/a\n"
             "gpu 0 nic 3 -\n",
             x);
    assert_string_equal(describe("0000:10:00.0"), want);
}

/* So many that not all are looked at: those of hardware first. */
static void test_many(void **state)
{
    (void)state;
    for (int i = 0; i < 150; i++) {
        char name[32];
        snprintf(name, sizeof(name), "veth%d", i);
        put_net(name, "devices/virtual", "10000\n", "up\n");
    }
    put_net("zz0", "devices/pci0000:00/0000:00:03.0", "25000\n", "up\n");
    for (int i = 0; i < 40; i++) {
        char name[32];
        snprintf(name, sizeof(name), "rxe%d", i);
        put_port(name, 1, "Ethernet\n", "4: ACTIVE\n", "10 Gb/sec\n");
    }
    const char *text = describe("");
    int lines = 0;
    for (const char *p = text; (p = strchr(p, '\n')); p++)
        lines++;
    assert_int_equal(lines, 32 + 32 + 2 + 1);
    assert_non_null(strstr(text, "33 zz0 net - - up 25000 "));
    assert_non_null(strstr(text, "no rdma: 8 more than are looked at\n"));
    assert_non_null(strstr(text, "no net: 119 more than are looked at\n"));
}

static void test_addresses(void **state)
{
    static const struct {
        const char *from, *address;
    } all[] = {
        {"0000:1A:00.0", "0000:1a:00.0"},
        {"00000000:1A:00.0", "0000:1a:00.0"},
        {"00010000:E1:1f.7", "10000:e1:1f.7"},
        {"0000:1a:00.0 ", ""},
        {"000000000:1a:00.0", ""},
        {"0000:1a:00", ""},
        {"pci0000:00", ""},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        char address[PCIE_ADDRESS];
        bool is_one = pcie_address(all[i].from, address);
        assert_int_equal(is_one, *all[i].address != 0);
        assert_string_equal(address, all[i].address);
    }
}

static const char *way(const char *a, const char *b, int64_t numa_a,
                       int64_t numa_b)
{
    struct pcie place[2] = {{.numa = numa_a}, {.numa = numa_b}};
    const char *const chains[] = {a, b};
    /* One letter for each function. */
    for (int i = 0; i < 2; i++)
        for (const char *p = chains[i]; *p; p++)
            place[i].chain[place[i].depth++] = (uint64_t)*p;
    return word(pcie_way(&place[0], &place[1]));
}

/* A root port is 1 or 2, a switch has an upstream and a downstream port. */
static void test_ways(void **state)
{
    (void)state;
    assert_string_equal(way("1abG", "1acN", 0, 0), "PIX");
    assert_string_equal(way("1abG", "1acN", 0, 1), "PIX");
    assert_string_equal(way("1abcdG", "1abceN", 0, 0), "PIX");
    assert_string_equal(way("1abG", "1accdN", 0, 0), "PXB");
    assert_string_equal(way("1abcdG", "1aeN", 0, 0), "PXB");
    assert_string_equal(way("1abcdG", "1aefgN", 0, 0), "PXB");
    assert_string_equal(way("1abG", "2cdN", 0, 0), "PHB");
    assert_string_equal(way("1G", "2N", -1, -1), "PHB");
    assert_string_equal(way("G", "N", 3, 3), "PHB");
    assert_string_equal(way("1G", "2N", 0, 1), "SYS");
    assert_string_equal(way("1G", "2N", 0, CT_NULL), "-");
    assert_string_equal(way("", "2N", 0, 0), "-");
}

int main(void)
{
#define TEST(name_) \
    cmocka_unit_test_setup_teardown(name_, make_tree, remove_tree)
    const struct CMUnitTest tests[] = {
        TEST(test_rdma),
        TEST(test_virtual),
        TEST(test_little),
        TEST(test_nothing),
        TEST(test_hostile),
        TEST(test_many),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
