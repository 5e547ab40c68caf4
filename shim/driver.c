#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct driver driver;

static bool load(void *library, struct driver *loaded)
{
    bool complete = true;
    void *found;
#define DRIVER(name_, symbol_, need_, params_)     \
    found = dlsym(library, symbol_);               \
    memcpy(&loaded->name_, &found, sizeof(found)); \
    complete = complete && (found || !(need_));
#include "driver.def"
    return complete;
}

bool driver_open(void)
{
    if (driver.event_record)
        return true;
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return false;
    struct driver loaded;
    if (!load(library, &loaded)) {
        dlclose(library);
        return false;
    }
    driver = loaded;
    return true;
}

bool driver_path(char *path, size_t size)
{
    Dl_info info;
    void *address;
    memcpy(&address, &driver.event_record, sizeof(address));
    if (!address || !dladdr(address, &info))
        return false;
    return snprintf(path, size, "%s", info.dli_fname) < (int)size;
}
