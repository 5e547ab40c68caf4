/*
 * What joins the GPUs of a host: NVLinks to NVSwitches or to each other, PCIe,
 * NVLink-C2C. With an nvlink_domain, the switches of all hosts are one NVLink
 * fabric.
 */
#include <nvml.h>

#include <stdint.h>
#include <string.h>

#include "common/export.h"
#include "common/gpu.h"
#include "common/hash.h"
#include "common/machine.h"
#include "nvml/device.h"

#define SWITCH_DEVICE_ID 0x22a310deu

static const struct fabric_hardware *hardware(void)
{
    return &fabric_config()->hardware;
}

/* Of a GPU: of A100 and of what came after. */
static int links_of_gpu(void)
{
    return hardware()->nvlink_version <= 3 ? 12 : NVML_NVLINK_MAX_LINKS;
}

/* The GPU at the other end of a link; -1: a switch, -2: nothing. */
static int peer_of(int gpu, unsigned link)
{
    int others = gpu_count() - 1;
    int each;

    if (hardware()->nvlink == FABRIC_NVLINK_SWITCH)
        return -1;
    each = others ? links_of_gpu() / others : 0;
    if (!each || (int)link >= each * others)
        return -2;
    return (int)link / each + ((int)link / each >= gpu);
}

static nvmlReturn_t check_pair(nvmlDevice_t a, nvmlDevice_t b)
{
    nvmlReturn_t rc = device_check(a);

    return rc ? rc : device_check(b);
}

FABRIC_API nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1,
                                               nvmlDevice_t device2,
                                               nvmlGpuP2PCapsIndex_t index,
                                               nvmlGpuP2PStatus_t *status)
{
    nvmlReturn_t rc = check_pair(device1, device2);
    int nvlink = hardware()->nvlink != FABRIC_NVLINK_NONE;
    int needs_nvlink = index == NVML_P2P_CAPS_INDEX_NVLINK ||
                       index == NVML_P2P_CAPS_INDEX_ATOMICS;

    if (rc)
        return rc;
    if (needs_nvlink && !nvlink)
        *status = NVML_P2P_STATUS_NOT_SUPPORTED;
    else if (!nvlink && !hardware()->p2p)
        *status = NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
    else
        *status = NVML_P2P_STATUS_OK;
    return NVML_SUCCESS;
}

FABRIC_API nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(
    nvmlDevice_t device1, nvmlDevice_t device2, nvmlGpuTopologyLevel_t *level)
{
    static const nvmlGpuTopologyLevel_t levels[] = {
        [FABRIC_PIX] = NVML_TOPOLOGY_SINGLE,
        [FABRIC_PHB] = NVML_TOPOLOGY_HOSTBRIDGE,
        [FABRIC_SYS] = NVML_TOPOLOGY_SYSTEM,
    };
    nvmlReturn_t rc = check_pair(device1, device2);

    if (!rc)
        *level = levels[fabric_gpu_gpu_path(
            fabric_config(), device_index(device1), device_index(device2))];
    return rc;
}

static nvmlReturn_t check_link(nvmlDevice_t device, unsigned int link)
{
    nvmlReturn_t rc = device_check(device);

    if (rc)
        return rc;
    if (link >= (unsigned)links_of_gpu())
        return NVML_ERROR_INVALID_ARGUMENT;
    return hardware()->nvlink ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

FABRIC_API nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device,
                                                 unsigned int link,
                                                 nvmlEnableState_t *state)
{
    nvmlReturn_t rc = check_link(device, link);

    if (!rc)
        *state = peer_of(device_index(device), link) == -2
                     ? NVML_FEATURE_DISABLED
                     : NVML_FEATURE_ENABLED;
    return rc;
}

FABRIC_API nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device,
                                                   unsigned int link,
                                                   unsigned int *version)
{
    nvmlReturn_t rc = check_link(device, link);

    if (!rc)
        *version = (unsigned)hardware()->nvlink_version;
    return rc;
}

FABRIC_API nvmlReturn_t nvmlDeviceGetNvLinkCapability(
    nvmlDevice_t device, unsigned int link, nvmlNvLinkCapability_t capability,
    unsigned int *result)
{
    nvmlReturn_t rc = check_link(device, link);

    (void)capability; /* NVLinks offer them all */
    if (!rc)
        *result = 1;
    return rc;
}

FABRIC_API nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device,
                                                            unsigned int link,
                                                            nvmlPciInfo_t *pci)
{
    nvmlReturn_t rc = check_link(device, link);
    int peer;

    if (rc)
        return rc;
    peer = peer_of(device_index(device), link);
    if (peer == -2)
        return NVML_ERROR_NOT_SUPPORTED;
    if (peer >= 0)
        device_pci(pci, FABRIC_PCI_BUS(peer), FABRIC_PCI_DEVICE_ID);
    else if (fabric_has_switches(fabric_config()))
        device_pci(pci, FABRIC_SWITCH_BUS(link % FABRIC_SWITCHES),
                   SWITCH_DEVICE_ID);
    else
        *pci = (nvmlPciInfo_t){.busId = "fffffff:ffff:ff"};
    return NVML_SUCCESS;
}

FABRIC_API nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device,
                                                         unsigned int link,
                                                         nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, pci);
}

FABRIC_API nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(
    nvmlDevice_t device, unsigned int link, nvmlIntNvLinkDeviceType_t *type)
{
    nvmlReturn_t rc = check_link(device, link);
    int peer;

    if (rc)
        return rc;
    peer = peer_of(device_index(device), link);
    *type = peer == -2 ? NVML_NVLINK_DEVICE_TYPE_UNKNOWN
            : peer < 0 ? NVML_NVLINK_DEVICE_TYPE_SWITCH
                       : NVML_NVLINK_DEVICE_TYPE_GPU;
    return NVML_SUCCESS;
}

FABRIC_API nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t device,
                                                  nvmlC2cModeInfo_v1_t *info)
{
    nvmlReturn_t rc = device_check(device);

    if (!rc)
        info->isC2cEnabled = (unsigned)hardware()->c2c;
    return rc;
}

/* A host's own NVSwitch is no fabric with a cluster id; a domain is. */
static nvmlGpuFabricState_t fabric_state(unsigned char uuid[16])
{
    const char *domain = hardware()->nvlink_domain;
    uint64_t half[2];

    memset(uuid, 0, 16);
    if (!*domain || hardware()->nvlink != FABRIC_NVLINK_SWITCH)
        return NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
    half[0] = fabric_hash(FABRIC_HASH_SEED, domain, strlen(domain));
    half[1] = fabric_mix(half[0]);
    memcpy(uuid, half, sizeof(half));
    return NVML_GPU_FABRIC_STATE_COMPLETED;
}

FABRIC_API nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device,
                                                   nvmlGpuFabricInfo_t *info)
{
    nvmlReturn_t rc = device_check(device);

    if (rc)
        return rc;
    *info = (nvmlGpuFabricInfo_t){.status = NVML_SUCCESS};
    info->state = fabric_state(info->clusterUuid);
    return NVML_SUCCESS;
}

/* Version 3 appends to version 2. */
FABRIC_API nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device,
                                                    nvmlGpuFabricInfoV_t *info)
{
    nvmlReturn_t rc = device_check(device);
    unsigned int version = info->version;

    if (rc)
        return rc;
    if (version != nvmlGpuFabricInfo_v2 && version != nvmlGpuFabricInfo_v3)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memset(info, 0, version & 0xffffff);
    info->version = version;
    info->state = fabric_state(info->clusterUuid);
    return NVML_SUCCESS;
}
