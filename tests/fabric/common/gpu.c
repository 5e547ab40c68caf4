#include "common/gpu.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/config.h"
#include "common/hash.h"
#include "common/identity.h"

int gpu_count(void)
{
    return fabric_config()->ranks_per_host;
}

void gpu_uuid(int index, unsigned char uuid[16])
{
    uint64_t host = fabric_host_id(0);
    uint64_t half[2];

    half[0] = fabric_hash(host, &index, sizeof(index));
    half[1] = fabric_mix(half[0] + 1);
    memcpy(uuid, half, sizeof(half));
}

void gpu_bus_id(int index, char *text, int size)
{
    snprintf(text, (size_t)size, "0000:%02X:00.0", FABRIC_PCI_BUS(index));
}

int gpu_by_bus_id(const char *text)
{
    unsigned domain;
    unsigned bus;

    if (sscanf(text, "%x:%x:", &domain, &bus) != 2)
        return -1;
    for (int i = 0; i < gpu_count(); i++) {
        if (bus == FABRIC_PCI_BUS(i) && !domain)
            return i;
    }
    return -1;
}
