#include "nics.h"

#include "absence.h"
#include "sysfs.h"
#include "texts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As many as NCCL takes at most (MAX_IB_DEVS), and interfaces of containers
 * are many more. */
enum {
    PORTS = 32,
    RDMA_DEVICES = 32,
    DEVICE_PORTS = 8,
    INTERFACES = 32,
    NAMES = 256
};
#define NAME "%.63s" /* SYSFS_NAME, which compilers do not see in arrays */
enum { LOOPBACK = 772 /* ARPHRD_LOOPBACK */ };

static struct {
    bool read;
    int n;
    struct row_nic nic[PORTS + INTERFACES];
    const struct pcie *place[PORTS + INTERFACES];
} nics;

/* The kernel says -1 where it does not know. */
static int64_t known(int64_t number)
{
    return number >= 0 ? number : CT_NULL;
}

/* Of what a link of sysfs leads to. */
static struct row_nic *add_nic(const char *kind, const char *target)
{
    char address[PCIE_ADDRESS];
    const struct pcie *place = pcie_behind(target, address);
    struct row_nic *nic = &nics.nic[nics.n];
    nics.place[nics.n] = place;
    *nic = (struct row_nic){
        .id = ++nics.n,
        .kind = kind,
        .port = CT_NULL,
        .mbps = CT_NULL,
        .pci = text_keep(address),
        .numa = known(place->numa),
    };
    return nic;
}

static const char *kept_line(const char *folder, const char *name)
{
    char line[SYSFS_LINE];
    return sysfs_line(line, "%s/%s", folder, name) ? text_keep(line) : NULL;
}

/* "400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)", in whatever locale. */
static int64_t parse_rate(const char *rate)
{
    char *end;
    long gbps = strtol(rate, &end, 10);
    int tenths = 0;
    if (end == rate || gbps < 0 || gbps > 1000000)
        return CT_NULL;
    if (*end == '.' && isdigit((unsigned char)end[1])) {
        tenths = end[1] - '0';
        end += 2;
    }
    return strncmp(end, " Gb/sec", 7) ? CT_NULL : gbps * 1000 + tenths * 100;
}

/* "4: ACTIVE" */
static const char *after_number(const char *text)
{
    const char *word = strchr(text, ':');
    return word ? word + 1 + strspn(word + 1, " ") : text;
}

/* Where the port has no GID of an interface, as on InfiniBand, that of the
 * device, if it has but one. */
static const char *interface_of(const char *device, const char *folder)
{
    char path[SYSFS_PATH];
    struct sysfs_name one;
    int more;
    const char *name = kept_line(folder, "gid_attrs/ndevs/0");
    if (name)
        return name;
    snprintf(path, sizeof(path), "class/infiniband/" NAME "/device/net",
             device);
    if (sysfs_list(path, &one, 1, &more) != 1 || more)
        return NULL;
    sysfs_printable(one.text);
    return text_keep(one.text);
}

static void add_port(const char *device, int64_t port, const char *target)
{
    char folder[SYSFS_PATH], line[SYSFS_LINE], name[SYSFS_LINE];
    struct row_nic *nic = add_nic("rdma", target);
    snprintf(folder, sizeof(folder), "class/infiniband/" NAME "/ports/%d",
             device, (int)port);
    snprintf(name, sizeof(name), NAME, device);
    sysfs_printable(name);
    nic->name = text_keep(name);
    nic->port = port;
    nic->link_layer = kept_line(folder, "link_layer");
    if (sysfs_line(line, "%s/state", folder))
        nic->state = text_keep(after_number(line));
    if (sysfs_line(line, "%s/rate", folder))
        nic->mbps = parse_rate(line);
    nic->netdev = interface_of(device, folder);
}

static void set_device_facts(const char *device, struct row_nic *nic, int n)
{
    char folder[SYSFS_PATH];
    snprintf(folder, sizeof(folder), "class/infiniband/" NAME, device);
    const char *type = kept_line(folder, "hca_type");
    const char *firmware = kept_line(folder, "fw_ver");
    for (int i = 0; i < n; i++) {
        snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s/ports/%d",
                 nic[i].name ? nic[i].name : "", (int)nic[i].port);
        nic[i].driver = type;
        nic[i].firmware = firmware;
        nic[i].source = text_keep(folder);
    }
}

static int add_device(const char *device, int room)
{
    char path[SYSFS_PATH], target[SYSFS_PATH];
    struct sysfs_name ports[DEVICE_PORTS];
    int more, first = nics.n;
    snprintf(path, sizeof(path), "class/infiniband/" NAME "/ports", device);
    int n = sysfs_list(path, ports, DEVICE_PORTS, &more);
    sysfs_link(target, "class/infiniband/%s", device);
    for (int i = 0; i < n && nics.n - first < room; i++) {
        char *end;
        long port = strtol(ports[i].text, &end, 10);
        if (!*end && port > 0 && port < 1000)
            add_port(device, port, target);
    }
    set_device_facts(device, &nics.nic[first], nics.n - first);
    return more;
}

static void tell_more(struct batch *batch, const char *what, int more)
{
    char why[64];
    if (!more)
        return;
    snprintf(why, sizeof(why), "%d more than are looked at", more);
    absence_add(batch, what, why);
}

static void tell_missing(struct batch *batch, const char *what,
                         const char *folder, int n)
{
    char why[128];
    int error = errno;
    snprintf(why, sizeof(why), "/sys/%s: %s", folder,
             n < 0 ? strerrordesc_np(error) : "empty");
    if (n <= 0)
        absence_add(batch, what, why);
}

static void read_rdma(struct batch *batch)
{
    static const char folder[] = "class/infiniband";
    struct sysfs_name names[RDMA_DEVICES];
    int more, n = sysfs_list(folder, names, RDMA_DEVICES, &more);
    tell_missing(batch, "rdma", folder, n);
    for (int i = 0; i < n; i++) {
        if (nics.n < PORTS)
            more += add_device(names[i].text, PORTS - nics.n);
        else
            more++;
    }
    tell_more(batch, "rdma", more);
}

/* Of virtual interfaces only a bond's speed means something. */
static bool has_speed(const char *name, const struct row_nic *nic)
{
    char line[SYSFS_LINE];
    return nic->pci || sysfs_line(line, "class/net/%s/bonding/mode", name);
}

static void add_interface(const char *name, const char *target)
{
    char text[SYSFS_PATH];
    struct row_nic *nic = add_nic("net", target);
    snprintf(text, sizeof(text), "/sys/class/net/%s", name);
    sysfs_printable(text);
    nic->source = text_keep(text);
    nic->name = text_keep(strrchr(text, '/') + 1);
    if (has_speed(name, nic))
        nic->mbps = known(sysfs_number("class/net/%s/speed", name));
    if (sysfs_line(text, "class/net/%s/operstate", name))
        nic->state = text_keep(text);
    if (sysfs_link(text, "class/net/%s/device/driver", name)) {
        const char *slash = strrchr(text, '/');
        sysfs_printable(text);
        nic->driver = text_keep(slash ? slash + 1 : text);
    }
}

static bool is_virtual(const char *target)
{
    return strstr(target, "/virtual/");
}

static bool is_loopback(const char *name)
{
    return sysfs_number("class/net/%s/type", name) == LOOPBACK;
}

/* Those of hardware first: of virtual ones there may be hundreds. How many were
 * left out. */
static int add_interfaces(const struct sysfs_name *names, int n)
{
    char target[SYSFS_PATH];
    const char *later[NAMES];
    int put_off = 0, left_out = 0, room = nics.n + INTERFACES;
    for (int i = 0; i < n; i++) {
        if (!sysfs_link(target, "class/net/%s", names[i].text))
            continue;
        if (is_virtual(target))
            later[put_off++] = names[i].text;
        else if (nics.n < room)
            add_interface(names[i].text, target);
        else
            left_out++;
    }
    for (int i = 0; i < put_off; i++) {
        if (is_loopback(later[i]))
            continue;
        if (nics.n < room)
            add_interface(later[i], "");
        else
            left_out++;
    }
    return left_out;
}

static void read_net(struct batch *batch)
{
    static const char folder[] = "class/net";
    struct sysfs_name *names = malloc(sizeof(*names) * NAMES);
    int more = 0;
    int n = names ? sysfs_list(folder, names, NAMES, &more) : -1;
    tell_missing(batch, "net", folder, n);
    more += add_interfaces(names, n);
    tell_more(batch, "net", more);
    free(names);
}

static void read_all(struct batch *batch)
{
    nics.read = true;
    read_rdma(batch);
    read_net(batch);
    for (int i = 0; i < nics.n; i++) {
        struct row *row = batch_add(batch, ROW_nic);
        if (row)
            row->u.nic = nics.nic[i];
    }
}

void nics_describe(struct batch *batch, int64_t device, const struct pcie *gpu)
{
    if (!nics.read)
        read_all(batch);
    for (int i = 0; i < nics.n; i++) {
        const char *pci = nics.nic[i].pci;
        struct row *row = pci ? batch_add(batch, ROW_gpu_nic) : NULL;
        if (row)
            row->u.gpu_nic = (struct row_gpu_nic){device, nics.nic[i].id,
                                                  pcie_way(gpu, nics.place[i])};
    }
}
