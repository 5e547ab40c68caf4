/* What the driver and NVML both say about the GPUs of this host. */
#ifndef FABRIC_GPU_H
#define FABRIC_GPU_H

#define FABRIC_PCI_BUS(index_) (0x10u + (unsigned)(index_))
#define FABRIC_PCI_DEVICE_ID 0x233010deu

/* GPUs of the host, whatever CUDA_VISIBLE_DEVICES says. */
int gpu_count(void);
void gpu_uuid(int index, unsigned char uuid[16]);
void gpu_bus_id(int index, char *text, int size);
/* -1 when no GPU of the host is there. */
int gpu_by_bus_id(const char *text);

#endif
