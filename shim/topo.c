#include "topo.h"

#include "driver.h"
#include "nvml.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The texts of one device's rows. Rows point to them, so they stay. */
struct facts {
    struct facts *next;
    char uuid[96];
    char pci[32];
    char name[96];
    char cluster[40];
    char source[128];
};

static struct row *add_device(struct batch *batch, int64_t device,
                              const struct facts *facts)
{
    struct row *row = batch_add(batch, ROW_device);
    if (!row)
        return NULL;
    row->u.device = (struct row_device){
        .id = device,
        .uuid = *facts->uuid ? facts->uuid : NULL,
        .pci = *facts->pci ? facts->pci : NULL,
        .name = *facts->name ? facts->name : NULL,
        .cluster = *facts->cluster ? facts->cluster : NULL,
        .clique = CT_NULL,
        .source = facts->source,
    };
    return row;
}

static struct row_gpu_link *add_link(struct batch *batch, int64_t device,
                                     const char *kind, const char *source)
{
    struct row *row = batch_add(batch, ROW_gpu_link);
    if (!row)
        return NULL;
    row->u.gpu_link = (struct row_gpu_link){.device = device,
                                            .kind = kind,
                                            .links = CT_NULL,
                                            .version = CT_NULL,
                                            .source = source};
    return &row->u.gpu_link;
}

/* The driver prints four digits of domain, NVML eight; sysfs has four. */
static void tidy_pci(const char *from, char *to, size_t size)
{
    size_t length = strlen(from);
    if (length > 12)
        from += length - 12;
    snprintf(to, size, "%s", from);
    for (; *to; to++)
        *to = (char)tolower((unsigned char)*to);
}

static const char *keep_pci(const char *pci)
{
    struct kept {
        struct kept *next;
        char text[32];
    };
    static struct kept *all;
    struct kept *kept = malloc(sizeof(*kept));
    if (!kept)
        return NULL;
    tidy_pci(pci, kept->text, sizeof(kept->text));
    kept->next = all;
    all = kept;
    return kept->text;
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
        tidy_pci(pci, facts->pci, sizeof(facts->pci));
    unsigned char uuid[16];
    if (driver.device_get_uuid &&
        driver.device_get_uuid(uuid, handle) == DRIVER_OK) {
        memcpy(facts->uuid, "GPU-", 5);
        format_uuid(uuid, facts->uuid + 4, sizeof(facts->uuid) - 4);
    }
    return 0;
}

static void driver_links(int64_t device, struct batch *batch)
{
    int n = 0, self, peer, can;
    if (!driver.device_get_count || !driver.device_can_access_peer ||
        !driver.device_get_pci || driver.device_get_count(&n) != DRIVER_OK ||
        driver.device_get(&self, (int)device) != DRIVER_OK)
        return;
    for (int i = 0; i < n; i++) {
        char pci[32];
        if (i == device || driver.device_get(&peer, i) != DRIVER_OK ||
            driver.device_can_access_peer(&can, self, peer) != DRIVER_OK ||
            driver.device_get_pci(pci, sizeof(pci), peer) != DRIVER_OK)
            continue;
        /* Peer access says nothing of the wire. */
        struct row_gpu_link *link =
            add_link(batch, device, can ? "pcie" : "none", "driver");
        if (link)
            link->peer_pci = keep_pci(pci);
    }
}

static void nvml_fabric(const struct nvml *nvml, void *handle,
                        struct facts *facts, int64_t *clique)
{
    static const unsigned char none[16];
    struct nvml_fabric fabric = {.state = 0};
    *clique = CT_NULL;
    if (!nvml->fabric || nvml->fabric(handle, &fabric) != 0 ||
        fabric.state != NVML_FABRIC_COMPLETED || fabric.status != 0 ||
        !memcmp(fabric.cluster, none, sizeof(none)))
        return;
    format_uuid(fabric.cluster, facts->cluster, sizeof(facts->cluster));
    *clique = fabric.clique;
}

struct nvlinks {
    int switches;
    int version;
    int peers; /* entries in use below */
    struct {
        char pci[32];
        int links;
    } peer[NVML_LINKS];
};

static void count_peer(struct nvlinks *found, const char *pci)
{
    char tidy[32];
    int i = 0;
    tidy_pci(pci, tidy, sizeof(tidy));
    while (i < found->peers && strcmp(found->peer[i].pci, tidy) != 0)
        i++;
    if (i == found->peers)
        memcpy(found->peer[found->peers++].pci, tidy, sizeof(tidy));
    found->peer[i].links++;
}

static void read_link(const struct nvml *nvml, void *handle, unsigned link,
                      struct nvlinks *found)
{
    int active = 0, type = NVML_REMOTE_GPU;
    unsigned version = 0;
    struct nvml_pci pci;
    if (nvml->link_state(handle, link, &active) != 0 || !active)
        return;
    if (nvml->link_version && nvml->link_version(handle, link, &version) == 0)
        found->version = (int)version;
    if (nvml->link_remote_type &&
        nvml->link_remote_type(handle, link, &type) != 0)
        type = NVML_REMOTE_GPU;
    if (type == NVML_REMOTE_SWITCH)
        found->switches++;
    else if (nvml->link_remote && nvml->link_remote(handle, link, &pci) == 0)
        count_peer(found, pci.bus_id);
}

static void add_nvlinks(int64_t device, const struct nvlinks *found,
                        struct batch *batch)
{
    struct row_gpu_link *link;
    int64_t version = found->version ? found->version : CT_NULL;
    if (found->switches &&
        (link = add_link(batch, device, "nvswitch", "nvml"))) {
        link->links = found->switches;
        link->version = version;
    }
    for (int i = 0; i < found->peers; i++) {
        link = add_link(batch, device, "nvlink", "nvml");
        if (!link)
            return;
        link->peer_pci = keep_pci(found->peer[i].pci);
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

/* GPUs of this host that no NVLink reaches. */
static void add_others(const struct nvml *nvml, void *handle, int64_t device,
                       const char *own, const struct nvlinks *found,
                       struct batch *batch)
{
    unsigned n = 0;
    if (!nvml->count || !nvml->by_index || !nvml->pci_info ||
        nvml->count(&n) != 0)
        return;
    for (unsigned i = 0; i < n; i++) {
        void *other;
        struct nvml_pci pci;
        char tidy[32];
        int status = -1;
        if (nvml->by_index(i, &other) != 0 || nvml->pci_info(other, &pci) != 0)
            continue;
        tidy_pci(pci.bus_id, tidy, sizeof(tidy));
        if (!strcmp(tidy, own) || has_nvlink(found, tidy))
            continue;
        if (nvml->p2p_status &&
            nvml->p2p_status(handle, other, NVML_P2P_READ, &status) != 0)
            status = -1;
        struct row_gpu_link *link =
            add_link(batch, device, status == 0 ? "pcie" : "none", "nvml");
        if (link)
            link->peer_pci = keep_pci(tidy);
    }
}

static int nvml_describe(const struct nvml *nvml, int64_t device,
                         struct facts *facts, struct batch *batch)
{
    void *handle;
    int64_t clique;
    if (!*facts->pci || nvml->by_pci(facts->pci, &handle) != 0)
        return -1;
    if (nvml->uuid && nvml->uuid(handle, facts->uuid, sizeof(facts->uuid)))
        *facts->uuid = 0;
    if (nvml->name && nvml->name(handle, facts->name, sizeof(facts->name)))
        *facts->name = 0;
    nvml_fabric(nvml, handle, facts, &clique);
    snprintf(facts->source, sizeof(facts->source), "nvml");
    struct row *row = add_device(batch, device, facts);
    if (row)
        row->u.device.clique = clique;
    struct nvlinks found = {.peers = 0};
    for (unsigned i = 0; nvml->link_state && i < NVML_LINKS; i++)
        read_link(nvml, handle, i, &found);
    add_nvlinks(device, &found, batch);
    add_others(nvml, handle, device, facts->pci, &found, batch);
    return 0;
}

void topo_describe(int64_t device, struct batch *batch)
{
    static struct facts *all;
    struct facts *facts = calloc(1, sizeof(*facts));
    if (!facts)
        return;
    facts->next = all;
    all = facts;
    if (driver_facts(device, facts) != 0) {
        snprintf(facts->source, sizeof(facts->source), "no CUDA driver");
        add_device(batch, device, facts);
        return;
    }
    const char *why;
    const struct nvml *nvml = nvml_open(&why);
    if (nvml && nvml_describe(nvml, device, facts, batch) == 0)
        return;
    snprintf(facts->source, sizeof(facts->source), "driver; %s",
             nvml ? "NVML does not know the device" : why);
    add_device(batch, device, facts);
    driver_links(device, batch);
}
