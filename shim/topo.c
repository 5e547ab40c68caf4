#include "topo.h"

#include "absence.h"
#include "driver.h"
#include "nics.h"
#include "nvlinks.h"
#include "nvml.h"
#include "pcie.h"
#include "sysfs.h"
#include "texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct facts {
    char uuid[96];
    char pci[PCIE_ADDRESS];
    char name[96];
    char cluster[40];
    int64_t clique;
    int64_t c2c;
    char source[128];
};

static void add_device(struct batch *batch, int64_t device,
                       const struct facts *facts)
{
    struct row *row = batch_add(batch, ROW_device);
    int64_t numa = pcie_find(facts->pci)->numa;
    if (!row)
        return;
    row->u.device = (struct row_device){
        .id = device,
        .uuid = text_keep(facts->uuid),
        .pci = text_keep(facts->pci),
        .name = text_keep(facts->name),
        .cluster = text_keep(facts->cluster),
        .clique = facts->clique,
        .numa = numa >= 0 ? numa : CT_NULL,
        .c2c = facts->c2c,
        .source = text_keep(facts->source),
    };
}

static void format_uuid(const unsigned char *uuid, char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        used += (size_t)snprintf(text + used, size - used, "%s%02x",
                                 dash ? "-" : "", uuid[i]);
    }
}

static int driver_facts(int64_t device, struct facts *facts)
{
    int handle;
    char pci[32];
    if (!driver.event_record ||
        driver.device_get(&handle, (int)device) != DRIVER_OK)
        return -1;
    if (driver.device_get_name &&
        driver.device_get_name(facts->name, sizeof(facts->name), handle) != 0)
        *facts->name = 0;
    if (driver.device_get_pci &&
        driver.device_get_pci(pci, sizeof(pci), handle) == DRIVER_OK)
        pcie_address(pci, facts->pci);
    unsigned char uuid[16];
    if (driver.device_get_uuid &&
        driver.device_get_uuid(uuid, handle) == DRIVER_OK) {
        memcpy(facts->uuid, "GPU-", 5);
        format_uuid(uuid, facts->uuid + 4, sizeof(facts->uuid) - 4);
    }
    return 0;
}

static void driver_links(int64_t device, const char *own, struct batch *batch)
{
    int n = 0, self, other, can;
    if (!driver.device_get_count || !driver.device_can_access_peer ||
        !driver.device_get_pci || driver.device_get_count(&n) != DRIVER_OK ||
        driver.device_get(&self, (int)device) != DRIVER_OK)
        return;
    for (int i = 0; i < n; i++) {
        char pci[32], peer[PCIE_ADDRESS];
        /* Peer access says nothing of the wire. */
        if (i != device && driver.device_get(&other, i) == DRIVER_OK &&
            driver.device_can_access_peer(&can, self, other) == DRIVER_OK &&
            driver.device_get_pci(pci, sizeof(pci), other) == DRIVER_OK &&
            pcie_address(pci, peer))
            gpu_link_add(batch, device, own, peer, can ? "pcie" : "none",
                         "driver");
    }
}

/* The call with a version replaces one that drivers may drop. */
static bool ask_fabric(const struct nvml *nvml, void *handle,
                       struct nvml_fabric *fabric)
{
    struct nvml_fabric_2 versioned = {.version = NVML_FABRIC_2};
    if (nvml->fabric_v && nvml->fabric_v(handle, &versioned) == 0) {
        *fabric = versioned.fabric;
        return true;
    }
    return nvml->fabric && nvml->fabric(handle, fabric) == 0;
}

static void nvml_fabric(const struct nvml *nvml, void *handle,
                        struct facts *facts)
{
    static const unsigned char none[16];
    struct nvml_fabric fabric = {.state = 0};
    if (!ask_fabric(nvml, handle, &fabric) ||
        fabric.state != NVML_FABRIC_COMPLETED || fabric.status != 0 ||
        !memcmp(fabric.cluster, none, sizeof(none)))
        return;
    format_uuid(fabric.cluster, facts->cluster, sizeof(facts->cluster));
    facts->clique = fabric.clique;
}

/* Drivers that do not know the question cannot know of the link either way. */
static void nvml_c2c(const struct nvml *nvml, void *handle, struct facts *facts)
{
    unsigned enabled = 0;
    int rc = nvml->c2c ? nvml->c2c(handle, &enabled) : -1;
    if (rc == 0 || rc == NVML_NOT_SUPPORTED)
        facts->c2c = rc == 0 && enabled;
}

/* NULL and why not. */
static void *nvml_facts(const struct nvml *nvml, struct facts *facts,
                        const char **why)
{
    void *handle;
    *why = "NVML does not know the device";
    if (!*facts->pci || nvml->by_pci(facts->pci, &handle) != 0)
        return NULL;
    if (nvml->uuid && nvml->uuid(handle, facts->uuid, sizeof(facts->uuid)))
        *facts->uuid = 0;
    if (nvml->name && nvml->name(handle, facts->name, sizeof(facts->name)))
        *facts->name = 0;
    nvml_fabric(nvml, handle, facts);
    nvml_c2c(nvml, handle, facts);
    snprintf(facts->source, sizeof(facts->source), "nvml");
    return handle;
}

static void describe_known(int64_t device, struct facts *facts,
                           struct batch *batch)
{
    const char *why;
    const struct nvml *nvml = nvml_open(&why);
    void *handle = nvml ? nvml_facts(nvml, facts, &why) : NULL;
    if (!handle) {
        absence_add(batch, "nvml", why);
        snprintf(facts->source, sizeof(facts->source), "driver; %s", why);
    }
    add_device(batch, device, facts);
    if (handle)
        nvlinks_describe(nvml, handle, device, facts->pci, batch);
    else
        driver_links(device, facts->pci, batch);
}

/* Of a virtual machine, which shows PCIe as it is not, NCCL has a file that
 * describes it. */
static char told[256]; /* the program's choice */
static const char usual[] = "/var/run/nvidia-topologyd/virtualTopology.xml";

void topo_begin(const char *sysfs)
{
    const char *file = getenv("NCCL_TOPO_FILE");
    snprintf(told, sizeof(told), "%s", file ? file : "");
    sysfs_set_root(sysfs);
}

static void tell_place(const struct facts *facts, struct batch *batch)
{
    char why[320];
    if (*told || access(usual, F_OK) == 0)
        snprintf(why, sizeof(why), "NCCL follows %s", *told ? told : usual);
    else if (!*facts->pci)
        snprintf(why, sizeof(why), "nobody tells the GPU's address");
    else if (!pcie_find(facts->pci)->depth)
        snprintf(why, sizeof(why), "/sys/bus/pci/devices has no %s",
                 facts->pci);
    else
        return;
    sysfs_printable(why);
    absence_add(batch, "pcie", why);
}

void topo_describe(int64_t device, struct batch *batch)
{
    struct facts facts = {.clique = CT_NULL, .c2c = CT_NULL};
    if (driver_facts(device, &facts) != 0) {
        snprintf(facts.source, sizeof(facts.source), "no CUDA driver");
        add_device(batch, device, &facts);
    } else {
        describe_known(device, &facts, batch);
    }
    tell_place(&facts, batch);
    nics_describe(batch, device, pcie_find(facts.pci));
}
