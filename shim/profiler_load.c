/*
 * How NCCL comes to load our plugin: by the variable that says which, published
 * while a communicator is made. Another plugin of the user's, however it is
 * said or found, wins: then NCCL is left alone.
 */
#include "commtrace/nccl_settings.h"
#include "lock.h"
#include "nccl_settings.h"
#include "profiler.h"
#include "publish.h"
#include "scope.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#define VARIABLE CT_NCCL_PROFILER_VARIABLE

static struct {
    struct lock lock;
    struct publication publication;
    struct nccl_setting setting;
    _Atomic uint64_t loaded; /* a bit per copy of NCCL */
    char why[400];
    _Atomic bool has_why;
} load = {
    .lock = LOCK_INITIALIZER,
    .publication = {.texts = {VARIABLE "=STATIC_PLUGIN"}},
};

enum { VERSIONS = 9 }; /* a few more than there are */

static const struct link_map *owner_of(const void *symbol)
{
    const struct link_map *object = symbol ? scope_object(symbol) : NULL;
    return object && !scope_is_us(object) ? object : NULL;
}

/* An object that is not ours and has a plugin by NCCL's names. */
static const struct link_map *find_other(void)
{
    const struct link_map *other = NULL;
    char name[24];
    for (int v = 1; v <= VERSIONS && !other; v++) {
        snprintf(name, sizeof(name), "ncclProfiler_v%d", v);
        other = owner_of(scope_next()(RTLD_DEFAULT, name));
        if (!other)
            other = owner_of(scope_next()(RTLD_NEXT, name));
    }
    /* dlerror() has no error of ours to tell. */
    scope_next()(RTLD_DEFAULT, "dlsym");
    return other;
}

static bool has_plugin(void *library)
{
    char name[24];
    bool has = false;
    for (int v = 1; v <= VERSIONS && !has; v++) {
        snprintf(name, sizeof(name), "ncclProfiler_v%d", v);
        has = scope_next()(library, name) != NULL;
    }
    return has;
}

/* NCCL would open it as well. */
static bool is_installed(void)
{
    void *library = dlopen(CT_NCCL_PROFILER_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    bool is = library && has_plugin(library);
    if (library)
        dlclose(library);
    scope_next()(RTLD_DEFAULT, "dlsym");
    return is;
}

static void say_why(const char *format, const char *a, const char *b)
{
    if (atomic_load_explicit(&load.has_why, memory_order_relaxed))
        return;
    snprintf(load.why, sizeof(load.why), format, a, b);
    /* Release: with the text. */
    atomic_store_explicit(&load.has_why, true, memory_order_release);
}

static const char *name_of(const struct link_map *object)
{
    return *object->l_name ? object->l_name : "the program";
}

static void look_up_setting(struct nccl_copy *copy)
{
    char path[8];
    int version;
    real_library(copy, path, sizeof(path), &version);
    nccl_setting(VARIABLE, version, &load.setting);
}

/* Whether the variable is to be published. With the lock. */
static bool is_wanted(struct nccl_copy *copy)
{
    const struct nccl_setting *setting = &load.setting;
    look_up_setting(copy);
    bool is_set = setting->from != SETTING_NOWHERE;
    const struct link_map *other = find_other();
    if (setting->from == SETTING_SECRET)
        say_why("%.350s can be read but once, by NCCL%s", setting->file, "");
    else if (is_set && !ct_nccl_is_static_plugin(setting->value))
        say_why("%.150s says " VARIABLE "=%.150s",
                setting->from == SETTING_FILE ? setting->file
                                              : "the environment",
                setting->value);
    else if (other)
        say_why("%.350s has a plugin of its own%s", name_of(other), "");
    else if (!is_set && is_installed())
        say_why("%s is installed%s", CT_NCCL_PROFILER_LIBRARY, "");
    else
        return !is_set;
    return false;
}

static uint64_t bit_of(const struct nccl_copy *copy)
{
    return UINT64_C(1) << copy_number(copy);
}

static bool is_loaded(const struct nccl_copy *copy)
{
    return (atomic_load_explicit(&load.loaded, memory_order_relaxed) &
            bit_of(copy)) != 0;
}

void profiler_before(struct nccl_copy *copy)
{
    if (!profiler_is_on() || is_loaded(copy) || profiler_absence())
        return;
    int saved = errno;
    lock_take(&load.lock);
    if (is_wanted(copy) && !publish(&load.publication))
        say_why("%s could not be published%s", VARIABLE, "");
    lock_give(&load.lock);
    errno = saved;
}

void profiler_after(const struct nccl_copy *copy)
{
    if (!profiler_is_on())
        return;
    publish_end(&load.publication);
    if (copy && profiler_is_told())
        atomic_fetch_or_explicit(&load.loaded, bit_of(copy),
                                 memory_order_relaxed);
}

void profiler_unloaded(void)
{
    atomic_store_explicit(&load.loaded, 0, memory_order_relaxed);
}

bool profiler_is_hidden(const void *symbol)
{
    const struct link_map *object = scope_object(symbol);
    return object && scope_is_us(object) &&
           (!profiler_is_wanted() || find_other());
}

const char *profiler_absence(void)
{
    /* Acquire: the text. */
    return atomic_load_explicit(&load.has_why, memory_order_acquire) ? load.why
                                                                     : NULL;
}
