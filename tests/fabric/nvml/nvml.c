/* The stand-in NVML: the GPUs of this host. links.c tells how they are joined.
 */
#include <nvml.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/config.h"
#include "common/export.h"
#include "common/gpu.h"
#include "nvml/device.h"

#define MAX_DEVICES 64

struct nvmlDevice_st {
    char unused;
};

/* A handle is the address of the device's place here. */
static struct nvmlDevice_st device_at[MAX_DEVICES];
static _Atomic int users;

int device_index(nvmlDevice_t device)
{
    if (device < device_at || device >= device_at + gpu_count())
        return -1;
    return (int)(device - device_at);
}

nvmlReturn_t device_check(nvmlDevice_t device)
{
    if (atomic_load(&users) < 1)
        return NVML_ERROR_UNINITIALIZED;
    return device_index(device) < 0 ? NVML_ERROR_INVALID_ARGUMENT
                                    : NVML_SUCCESS;
}

static nvmlReturn_t put_text(char *out, unsigned int length, const char *text)
{
    if (!out)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(out, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

FABRIC_API nvmlReturn_t nvmlInit_v2(void)
{
    atomic_fetch_add(&users, 1);
    return NVML_SUCCESS;
}

FABRIC_API nvmlReturn_t nvmlInit(void)
{
    return nvmlInit_v2();
}

FABRIC_API nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return nvmlInit_v2();
}

FABRIC_API nvmlReturn_t nvmlShutdown(void)
{
    if (atomic_fetch_sub(&users, 1) > 0)
        return NVML_SUCCESS;
    atomic_fetch_add(&users, 1);
    return NVML_ERROR_UNINITIALIZED;
}

FABRIC_API const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
        return "Argument Version Mismatch";
    case NVML_ERROR_UNKNOWN:
        break;
    }
    return "Unknown Error";
}

FABRIC_API nvmlReturn_t nvmlSystemGetDriverVersion(char *version,
                                                   unsigned int length)
{
    return put_text(version, length, "580.65.06");
}

FABRIC_API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version,
                                                 unsigned int length)
{
    return put_text(version, length, "13.580.65.06");
}

FABRIC_API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 13000;
    return NVML_SUCCESS;
}

FABRIC_API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

FABRIC_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    if (atomic_load(&users) < 1)
        return NVML_ERROR_UNINITIALIZED;
    *count = (unsigned int)gpu_count();
    return NVML_SUCCESS;
}

FABRIC_API nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

FABRIC_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index,
                                                      nvmlDevice_t *device)
{
    if (atomic_load(&users) < 1)
        return NVML_ERROR_UNINITIALIZED;
    if (index >= (unsigned int)gpu_count())
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = &device_at[index];
    return NVML_SUCCESS;
}

FABRIC_API nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index,
                                                   nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

FABRIC_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *busId,
                                                         nvmlDevice_t *device)
{
    int index = gpu_by_bus_id(busId);

    if (index < 0)
        return NVML_ERROR_NOT_FOUND;
    return nvmlDeviceGetHandleByIndex_v2((unsigned int)index, device);
}

FABRIC_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *busId,
                                                      nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(busId, device);
}

static void uuid_text(int index, char text[48])
{
    unsigned char u[16];

    gpu_uuid(index, u);
    snprintf(text, 48,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
             "%02x%02x%02x%02x%02x%02x",
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10],
             u[11], u[12], u[13], u[14], u[15]);
}

FABRIC_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid,
                                                  nvmlDevice_t *device)
{
    for (int i = 0; i < gpu_count(); i++) {
        char text[48];

        uuid_text(i, text);
        if (!strcmp(text, uuid))
            return nvmlDeviceGetHandleByIndex_v2((unsigned int)i, device);
    }
    return NVML_ERROR_NOT_FOUND;
}

FABRIC_API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device,
                                           unsigned int *index)
{
    nvmlReturn_t rc = device_check(device);

    if (!rc)
        *index = (unsigned int)device_index(device);
    return rc;
}

FABRIC_API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name,
                                          unsigned int length)
{
    nvmlReturn_t rc = device_check(device);

    return rc ? rc : put_text(name, length, fabric_config()->gpu);
}

FABRIC_API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid,
                                          unsigned int length)
{
    nvmlReturn_t rc = device_check(device);
    char text[48];

    if (rc)
        return rc;
    uuid_text(device_index(device), text);
    return put_text(uuid, length, text);
}

void device_pci(nvmlPciInfo_t *pci, unsigned bus, unsigned id)
{
    *pci = (nvmlPciInfo_t){.bus = bus, .pciDeviceId = id};
    snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "0000:%02X:00.0",
             bus & 0xff);
    snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", bus & 0xff);
}

FABRIC_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device,
                                                nvmlPciInfo_t *pci)
{
    nvmlReturn_t rc = device_check(device);

    if (!rc)
        device_pci(pci, FABRIC_PCI_BUS(device_index(device)),
                   FABRIC_PCI_DEVICE_ID);
    return rc;
}

FABRIC_API nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device,
                                                nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetPciInfo_v3(device, pci);
}

FABRIC_API nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device,
                                             nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetPciInfo_v3(device, pci);
}

FABRIC_API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device,
                                                           int *major,
                                                           int *minor)
{
    nvmlReturn_t rc = device_check(device);

    if (rc)
        return rc;
    *major = 9;
    *minor = 0;
    return NVML_SUCCESS;
}

/* Who uses a device is not kept: nobody does. */
FABRIC_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(
    nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos)
{
    nvmlReturn_t rc = device_check(device);

    (void)infos;
    if (!rc)
        *count = 0;
    return rc;
}
