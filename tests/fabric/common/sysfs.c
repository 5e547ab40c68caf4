#include "common/sysfs.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/gpu.h"
#include "common/machine.h"

/* The paths are short, but for the folder in front. */
enum { PATH = PATH_MAX, PLACE = 160, ADDRESS = 16 };

struct tree {
    const struct fabric_config *config;
    const char *folder;
    int host;
    int error; /* the first */
};

/* A PCI function. */
struct function {
    char place[PLACE]; /* its folder, devices/... */
    char address[ADDRESS];
};

static void note_error(struct tree *tree)
{
    if (!tree->error)
        tree->error = errno;
}

/* Makes the folders that the path is in. */
static void make_parents(const struct tree *tree, char *path)
{
    for (char *p = path + strlen(tree->folder) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(path, 0777);
        *p = '/';
    }
}

static FILE *create(const struct tree *tree, char *path)
{
    FILE *file = fopen(path, "we");

    if (file || errno != ENOENT)
        return file;
    make_parents(tree, path);
    return fopen(path, "we");
}

static void put_file(struct tree *tree, const char *text, const char *place,
                     ...)
{
    char path[PATH];
    va_list rest;
    FILE *file;
    int n = snprintf(path, sizeof(path), "%s/", tree->folder);

    va_start(rest, place);
    vsnprintf(path + n, sizeof(path) - (size_t)n, place, rest);
    va_end(rest);
    file = create(tree, path);
    if (!file || fprintf(file, "%s\n", text) < 0)
        note_error(tree);
    if (file && fclose(file))
        note_error(tree);
}

static void put_number(struct tree *tree, long long number, const char *place,
                       const char *name)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", number);
    put_file(tree, text, "%s/%s", place, name);
}

/* A link as sysfs has them: relative. */
static void put_link(struct tree *tree, const char *target, const char *place)
{
    char path[PATH];
    char up[PATH];
    int used = 0;

    snprintf(path, sizeof(path), "%s/%s", tree->folder, place);
    for (const char *p = place; (p = strchr(p, '/')); p++)
        used += snprintf(up + used, sizeof(up) - (size_t)used, "../");
    snprintf(up + used, sizeof(up) - (size_t)used, "%s", target);
    if (!symlink(up, path) || errno == EEXIST)
        return;
    make_parents(tree, path);
    if (symlink(up, path))
        note_error(tree);
}

static void put_class(struct tree *tree, const char *class, const char *name,
                      const char *place)
{
    char link[PLACE];

    snprintf(link, sizeof(link), "class/%s/%s", class, name);
    put_link(tree, place, link);
}

/* "vendor device class", as the three files have them. */
static void put_function(struct tree *tree, const struct function *function,
                         const char *identity, int numa)
{
    static const char *const names[] = {"vendor", "device", "class"};
    char link[PLACE];

    for (int i = 0; i < 3; i++) {
        char text[16];

        sscanf(identity, "%15s", text);
        identity += strlen(text) + (i < 2);
        put_file(tree, text, "%s/%s", function->place, names[i]);
    }
    put_number(tree, numa, function->place, "numa_node");
    snprintf(link, sizeof(link), "bus/pci/devices/%s", function->address);
    put_link(tree, function->place, link);
}

static void set_place(struct function *function, const char *parent,
                      const char *address)
{
    snprintf(function->address, sizeof(function->address), "%s", address);
    if (snprintf(function->place, sizeof(function->place), "%s/%s", parent,
                 address) >= (int)sizeof(function->place))
        function->place[0] = '\0'; /* five components always fit */
}

/* Devices on a bus have numbers below 32, with eight functions each. */
static void set_bridge(struct function *function, const char *parent, int bus,
                       int number)
{
    char address[ADDRESS];

    snprintf(address, sizeof(address), "0000:%02x:%02x.%d", bus & 0xff,
             number / 8 & 0x1f, number % 8);
    set_place(function, parent, address);
}

/* Numbers of root ports: first the switches', then those of functions that sit
 * at the CPU. */
enum {
    PORT_OF_GPU = 64,
    PORT_OF_NIC = 128,
    PORT_OF_ETHERNET = 192,
    PORT_OF_NVSWITCH = 200
};
enum { BUS_OF_SWITCHES = 1, BUS_OF_PORTS = 2, BUS_OF_CPU = 0xa0 };

static const char bridge[] = "0x10b5 0x8796 0x060400";

/* Of a function with that number of its own kind, behind a switch or not. */
static void put_way(struct tree *tree, struct function *function, int number,
                    int through, int numa, int bus)
{
    struct function port;
    struct function up;
    struct function down;
    char root[32];
    char address[ADDRESS];
    int cpu = BUS_OF_CPU + (numa > 0 ? numa : 0);

    snprintf(root, sizeof(root), "devices/pci0000:%02x", cpu & 0xff);
    snprintf(address, sizeof(address), "0000:%02x:00.0", bus & 0xff);
    set_bridge(&port, root, cpu, through >= 0 ? through : number);
    put_function(tree, &port, bridge, numa);
    if (through < 0) {
        set_place(function, port.place, address);
        return;
    }
    set_bridge(&up, port.place, BUS_OF_SWITCHES, through);
    put_function(tree, &up, bridge, numa);
    set_bridge(&down, up.place, BUS_OF_PORTS, number);
    put_function(tree, &down, bridge, numa);
    set_place(function, down.place, address);
}

static void put_gpu(struct tree *tree, int gpu)
{
    struct function function;
    int numa = fabric_gpu_numa(tree->config, gpu);

    put_way(tree, &function, PORT_OF_GPU + gpu,
            fabric_gpu_switch(tree->config, gpu), numa,
            (int)FABRIC_PCI_BUS(gpu));
    put_function(tree, &function, "0x10de 0x2330 0x030200", numa);
}

static void put_driver(struct tree *tree, const struct function *function,
                       const char *driver)
{
    char place[2 * PLACE];
    char target[PLACE];

    snprintf(target, sizeof(target), "bus/pci/drivers/%s", driver);
    put_file(tree, "", "%s/bind", target);
    snprintf(place, sizeof(place), "%s/driver", function->place);
    put_link(tree, target, place);
}

static void put_interface(struct tree *tree, const struct function *function,
                          const char *name, int64_t mbps)
{
    char place[2 * PLACE];
    char link[3 * PLACE];

    snprintf(place, sizeof(place), "%s/net/%s", function->place, name);
    put_number(tree, mbps, place, "speed");
    put_file(tree, "up", "%s/operstate", place);
    put_number(tree, 1, place, "carrier");
    put_number(tree, 1, place, "type"); /* ARPHRD_ETHER */
    put_number(tree, 0, place, "dev_port");
    snprintf(link, sizeof(link), "%s/device", place);
    put_link(tree, function->place, link);
    put_class(tree, "net", name, place);
}

static const struct rate {
    int64_t mbps;
    const char *name;
    const char *hca;
} rates[] = {
    {800000, "XDR", "MT4131"},
    {400000, "NDR", "MT4129"},
    {200000, "HDR", "MT4123"},
    {0, "EDR", "MT4119"},
};

static const struct rate *rate_of(int64_t mbps)
{
    const struct rate *rate = rates;

    while (mbps < rate->mbps)
        rate++;
    return rate;
}

/* Port 1, which is all that these devices have. */
static void put_port(struct tree *tree, const char *device, int nic)
{
    const struct fabric_hardware *hardware = &tree->config->hardware;
    int ib = hardware->network == FABRIC_IB;
    char rate[64];
    char place[3 * PLACE];

    snprintf(place, sizeof(place), "%s/ports/1", device);
    snprintf(rate, sizeof(rate), "%g Gb/sec (4X %s)",
             (double)hardware->nic_mbps / 1000,
             rate_of(hardware->nic_mbps)->name);
    put_file(tree, rate, "%s/rate", place);
    put_file(tree, "4: ACTIVE", "%s/state", place);
    put_file(tree, "5: LinkUp", "%s/phys_state", place);
    put_file(tree, ib ? "InfiniBand" : "Ethernet", "%s/link_layer", place);
    if (!ib) {
        char name[32];

        snprintf(name, sizeof(name), "rdma%d", nic);
        put_file(tree, name, "%s/gid_attrs/ndevs/0", place);
    }
}

static void put_rdma(struct tree *tree, const struct function *function,
                     int nic)
{
    const struct fabric_hardware *hardware = &tree->config->hardware;
    char name[FABRIC_NIC_NAME];
    char place[2 * PLACE];
    char link[3 * PLACE];

    fabric_nic_name(tree->config, nic, name);
    snprintf(place, sizeof(place), "%s/infiniband/%s", function->place, name);
    put_file(tree, rate_of(hardware->nic_mbps)->hca, "%s/hca_type", place);
    put_file(tree, "28.39.1002", "%s/fw_ver", place);
    put_file(tree, "1: CA", "%s/node_type", place);
    snprintf(link, sizeof(link), "a088:c2%02x:%04x:%04x", nic & 0xff,
             (unsigned)tree->host & 0xffff, (unsigned)nic & 0xffff);
    put_file(tree, link, "%s/node_guid", place);
    put_port(tree, place, nic);
    snprintf(link, sizeof(link), "%s/device", place);
    put_link(tree, function->place, link);
    put_class(tree, "infiniband", name, place);
    if (hardware->network == FABRIC_ROCE) {
        snprintf(name, sizeof(name), "rdma%d", nic);
        put_interface(tree, function, name, hardware->nic_mbps);
    }
}

static void put_nic(struct tree *tree, int nic)
{
    struct function function;
    char name[FABRIC_NIC_NAME];
    int numa = fabric_nic_numa(tree->config, nic);
    int plugin = tree->config->hardware.network == FABRIC_PLUGIN;
    int ib = tree->config->hardware.network == FABRIC_IB;

    put_way(tree, &function, PORT_OF_NIC + nic,
            fabric_nic_switch(tree->config, nic), numa,
            (int)FABRIC_NIC_BUS(nic));
    put_function(tree, &function,
                 plugin ? "0x17db 0x0501 0x020000"
                 : ib   ? "0x15b3 0x1021 0x020700"
                        : "0x15b3 0x1021 0x020000",
                 numa);
    put_driver(tree, &function, plugin ? "cxi_ss1" : "mlx5_core");
    if (fabric_is_rdma(tree->config)) {
        put_rdma(tree, &function, nic);
        return;
    }
    fabric_nic_name(tree->config, nic, name);
    put_interface(tree, &function, name, tree->config->hardware.nic_mbps);
}

/* For sockets, where the network is another. */
static void put_ethernet(struct tree *tree)
{
    struct function function;
    int numa = fabric_gpu_numa(tree->config, 0);

    put_way(tree, &function, PORT_OF_ETHERNET, -1, numa,
            (int)FABRIC_ETHERNET_BUS);
    put_function(tree, &function, "0x8086 0x1593 0x020000", numa);
    put_driver(tree, &function, "ice");
    put_interface(tree, &function, "eth0", FABRIC_ETHERNET_MBPS);
}

static void put_nvswitch(struct tree *tree, int number)
{
    struct function function;
    int numa = fabric_gpu_numa(tree->config, 0);

    put_way(tree, &function, PORT_OF_NVSWITCH + number, -1, numa,
            (int)FABRIC_SWITCH_BUS(number));
    put_function(tree, &function, "0x10de 0x22a3 0x068000", numa);
}

static void put_loopback(struct tree *tree)
{
    static const char place[] = "devices/virtual/net/lo";

    put_file(tree, "unknown", "%s/operstate", place);
    put_number(tree, 772, place, "type"); /* ARPHRD_LOOPBACK */
    put_class(tree, "net", "lo", place);
}

int fabric_sysfs_write(const struct fabric_config *config, int host,
                       const char *folder)
{
    struct tree tree = {.config = config, .folder = folder, .host = host};

    for (int i = 0; i < config->ranks_per_host; i++)
        put_gpu(&tree, i);
    for (int i = 0; i < fabric_nics(config); i++)
        put_nic(&tree, i);
    if (config->hardware.network != FABRIC_TCP)
        put_ethernet(&tree);
    for (int i = 0; i < FABRIC_SWITCHES; i++)
        if (fabric_has_switches(config))
            put_nvswitch(&tree, i);
    put_loopback(&tree);
    errno = tree.error;
    return tree.error ? -1 : 0;
}

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    remove(path);
    return 0;
}

void fabric_sysfs_remove(const char *folder)
{
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
