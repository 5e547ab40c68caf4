#include "nvml.h"

#include <dlfcn.h>
#include <string.h>

static struct nvml nvml;

static void load(void *library)
{
    void *found;
#define NVML(name_, symbol_, params_)                                          \
    found = dlsym(library, symbol_);                                           \
    memcpy(&nvml.name_, &found, sizeof(found));
#include "nvml.def"
}

const struct nvml *nvml_open(const char **why)
{
    static bool tried;
    static const char *trouble;
    *why = trouble;
    if (tried)
        return trouble ? NULL : &nvml;
    tried = true;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library)
        load(library);
    if (!library)
        trouble = "libnvidia-ml.so.1 is not there";
    else if (!nvml.init || !nvml.by_pci || nvml.init() != 0)
        trouble = "NVML does not start";
    *why = trouble;
    return trouble ? NULL : &nvml;
}
