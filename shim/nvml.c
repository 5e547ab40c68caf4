#include "nvml.h"

#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static struct nvml nvml;

static void load(void *library)
{
    void *found;
#define NVML(name_, symbol_, params_) \
    found = dlsym(library, symbol_);  \
    memcpy(&nvml.name_, &found, sizeof(found));
#include "nvml.def"
}

/* By name, else where the driver in use came from: both are installed as one.
 */
static void *find_library(void)
{
    char path[1024];
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library || !driver_path(path, sizeof(path)) || !strrchr(path, '/'))
        return library;
    *strrchr(path, '/') = 0;
    strncat(path, "/libnvidia-ml.so.1", sizeof(path) - strlen(path) - 1);
    return dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

const struct nvml *nvml_open(const char **why)
{
    static bool tried;
    static const char *trouble;
    *why = trouble;
    if (tried)
        return trouble ? NULL : &nvml;
    tried = true;
    void *library = find_library();
    if (library)
        load(library);
    if (!library)
        trouble = "libnvidia-ml.so.1 is not there";
    else if (!nvml.init || !nvml.by_pci || nvml.init() != 0)
        trouble = "NVML does not start";
    *why = trouble;
    return trouble ? NULL : &nvml;
}
