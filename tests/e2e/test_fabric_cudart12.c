/* A program of CUDA 12 on the fabric: the symbols that it names with a version,
 * their shape there, and nothing of the shapes that 13 gave old names. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int cudaRuntimeGetVersion(int *version);
extern int cudaGetDeviceProperties_v2(void *properties, int device);
extern int cudaStreamCreate(void **stream);
extern int cudaStreamGetCaptureInfo_v2(void *stream, int *status,
                                       unsigned long long *id, void **graph,
                                       const void ***dependencies,
                                       size_t *count);

static void check(int right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "error: %s\n", what);
    exit(1);
}

int main(void)
{
    union {
        char name[1032];
        int number[1032 / sizeof(int)];
    } properties;
    void *stream = NULL;
    int version = 0, status = -1;

    check(!cudaRuntimeGetVersion(&version) && version == 12090, "version");
    check(!cudaGetDeviceProperties_v2(&properties, 0), "properties");
    check(!strncmp(properties.name, "Fabric", 6), "name of the device");
    check(properties.number[360 / sizeof(int)] >= 7, "compute capability");
    check(!cudaStreamCreate(&stream) &&
              !cudaStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, NULL,
                                           NULL) &&
              status == 0,
          "state of capture");
    check(dlvsym(RTLD_DEFAULT, "cudaMalloc", "libcudart.so.12") != NULL,
          "cudaMalloc of libcudart.so.12");
    check(!dlvsym(RTLD_DEFAULT, "cudaMalloc", "libcudart.so.13"),
          "cudaMalloc of libcudart.so.13");
    check(!dlsym(RTLD_DEFAULT, "cudaStreamGetCaptureInfo"), "a shape of 13");
    return 0;
}
