#include "nvlinks.h"

#include "pcie.h"
#include "sysfs.h"
#include "texts.h"

#include <string.h>

struct row_gpu_link *gpu_link_add(struct batch *batch, int64_t device,
                                  const char *pci, const char *peer,
                                  const char *kind, const char *source)
{
    struct row *row = batch_add(batch, ROW_gpu_link);
    if (!row)
        return NULL;
    row->u.gpu_link = (struct row_gpu_link){
        .device = device,
        .peer_pci = text_keep(peer),
        .kind = kind,
        .links = CT_NULL,
        .version = CT_NULL,
        .path = peer ? pcie_way(pcie_find(pci), pcie_find(peer)) : NULL,
        .source = source};
    return &row->u.gpu_link;
}

struct nvlinks {
    int switches;
    int version;
    int peers; /* entries in use below */
    struct {
        char pci[PCIE_ADDRESS];
        int links;
    } peer[NVML_LINKS];
};

static void count_peer(struct nvlinks *found, const char *pci)
{
    char address[PCIE_ADDRESS];
    int i = 0;
    if (!pcie_address(pci, address))
        return;
    while (i < found->peers && strcmp(found->peer[i].pci, address) != 0)
        i++;
    if (i == found->peers)
        memcpy(found->peer[found->peers++].pci, address, sizeof(address));
    found->peer[i].links++;
}

/* Where NVML has no word for what is at the other end, as NCCL does: by its
 * class, and what shows no address is a switch that is not this machine's to
 * see. */
static bool looks_like_switch(const char *pci)
{
    char address[PCIE_ADDRESS], class[SYSFS_LINE];
    return !pcie_address(pci, address) || !strncmp(address, "ffff", 4) ||
           (sysfs_line(class, "bus/pci/devices/%s/class", address) &&
            !strncmp(class, "0x0680", 6));
}

static void count_end(const struct nvml *nvml, void *handle, unsigned link,
                      struct nvlinks *found)
{
    int type;
    bool told = nvml->link_remote_type &&
                nvml->link_remote_type(handle, link, &type) == 0;
    struct nvml_pci pci = {.bus_id = ""};
    if (told && type == NVML_REMOTE_SWITCH) {
        found->switches++;
        return;
    }
    if (!nvml->link_remote || nvml->link_remote(handle, link, &pci) != 0)
        return;
    pci.bus_id[sizeof(pci.bus_id) - 1] = 0;
    if (!told && looks_like_switch(pci.bus_id))
        found->switches++;
    else
        count_peer(found, pci.bus_id);
}

/* False: there are no more. */
static bool read_link(const struct nvml *nvml, void *handle, unsigned link,
                      struct nvlinks *found)
{
    int active = 0;
    unsigned version = 0;
    int rc = nvml->link_state(handle, link, &active);
    if (rc != 0 || !active)
        return rc == 0 ||
               (rc != NVML_INVALID_ARGUMENT && link + 1 < NVML_LINKS_ONCE);
    if (nvml->link_version && nvml->link_version(handle, link, &version) == 0)
        found->version = (int)version;
    count_end(nvml, handle, link, found);
    return true;
}

static void add_nvlinks(int64_t device, const char *own,
                        const struct nvlinks *found, struct batch *batch)
{
    struct row_gpu_link *link;
    int64_t version = found->version ? found->version : CT_NULL;
    if (found->switches &&
        (link = gpu_link_add(batch, device, own, NULL, "nvswitch", "nvml"))) {
        link->links = found->switches;
        link->version = version;
    }
    for (int i = 0; i < found->peers; i++) {
        link = gpu_link_add(batch, device, own, found->peer[i].pci, "nvlink",
                            "nvml");
        if (!link)
            return;
        link->links = found->peer[i].links;
        link->version = version;
    }
}

static bool has_nvlink(const struct nvlinks *found, const char *pci)
{
    bool has = found->switches > 0;
    for (int i = 0; i < found->peers && !has; i++)
        has = !strcmp(found->peer[i].pci, pci);
    return has;
}

/* For where sysfs says nothing. */
static const char *ancestor_way(const struct nvml *nvml, void *a, void *b)
{
    int level;
    if (!nvml->ancestor || nvml->ancestor(a, b, &level) != 0)
        return NULL;
    switch (level) {
    case NVML_ANCESTOR_INTERNAL:
    case NVML_ANCESTOR_SINGLE:
        return "PIX";
    case NVML_ANCESTOR_MULTIPLE:
        return "PXB";
    case NVML_ANCESTOR_HOSTBRIDGE:
    case NVML_ANCESTOR_NODE:
        return "PHB";
    case NVML_ANCESTOR_SYSTEM:
        return "SYS";
    default:
        return NULL;
    }
}

static void add_other(const struct nvml *nvml, void *handle, void *other,
                      int64_t device, const char *own, const char *peer,
                      struct batch *batch)
{
    int status = -1;
    if (nvml->p2p_status &&
        nvml->p2p_status(handle, other, NVML_P2P_READ, &status) != 0)
        status = -1;
    struct row_gpu_link *link = gpu_link_add(
        batch, device, own, peer, status == 0 ? "pcie" : "none", "nvml");
    if (link && !link->path)
        link->path = ancestor_way(nvml, handle, other);
}

/* GPUs of this host that no NVLink reaches. */
static void add_others(const struct nvml *nvml, void *handle, int64_t device,
                       const char *own, const struct nvlinks *found,
                       struct batch *batch)
{
    unsigned n = 0;
    if (found->switches || !nvml->count || !nvml->by_index || !nvml->pci_info ||
        nvml->count(&n) != 0)
        return;
    for (unsigned i = 0; i < n; i++) {
        void *other;
        struct nvml_pci pci;
        char peer[PCIE_ADDRESS];
        if (nvml->by_index(i, &other) == 0 &&
            nvml->pci_info(other, &pci) == 0 &&
            pcie_address(pci.bus_id, peer) && strcmp(peer, own) != 0 &&
            !has_nvlink(found, peer))
            add_other(nvml, handle, other, device, own, peer, batch);
    }
}

void nvlinks_describe(const struct nvml *nvml, void *handle, int64_t device,
                      const char *pci, struct batch *batch)
{
    struct nvlinks found = {.peers = 0};
    unsigned i = 0;
    while (nvml->link_state && i < NVML_LINKS &&
           read_link(nvml, handle, i, &found))
        i++;
    add_nvlinks(device, pci, &found, batch);
    add_others(nvml, handle, device, pci, &found, batch);
}
