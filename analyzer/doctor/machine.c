#include "doctor/machine.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commtrace/unwind_abi.h"
#include "doctor/child.h"
#include "doctor/facts.h"

#define NVML "libnvidia-ml.so.1"

/* As the recorder looks for it: by name, else beside the driver. */
static bool has_nvml(const char *driver)
{
    const char *slash = strrchr(driver, '/');
    char beside[PATH_MAX];
    struct answer answer;

    child_ask(NVML, NULL, &answer);
    if (answer.loaded || !slash)
        return answer.loaded;
    snprintf(beside, sizeof beside, "%.*s/" NVML, (int)(slash - driver),
             driver);
    child_ask(beside, NULL, &answer);
    return answer.loaded;
}

static void check_driver(struct machine *m, const char *driver,
                         struct facts *facts)
{
    struct answer answer;

    child_ask_driver(*driver ? driver : "libcuda.so.1", &answer);
    m->gpus = answer.devices;
    m->has_nvml = has_nvml(answer.loaded ? answer.path : "");
    if (!answer.loaded) {
        facts_add(facts, "CUDA driver", FACT_NOTE,
                  "no libcuda.so.1 here: no GPU, so no GPU times");
        return;
    }
    if (answer.has_symbol && answer.status == 0)
        m->driver = answer.value;
    if (answer.devices < 0)
        facts_add(facts, "CUDA driver", FACT_NOTE, "%d.%d, %s; it finds no GPU",
                  m->driver / 1000, m->driver % 1000 / 10, answer.path);
    else
        facts_add(facts, "CUDA driver", FACT_GOOD, "%d.%d, %d GPU%s, %s",
                  m->driver / 1000, m->driver % 1000 / 10, answer.devices,
                  answer.devices == 1 ? "" : "s", answer.path);
}

void machine_check(struct machine *m, const char *driver, struct facts *facts)
{
    struct answer answer;

    *m = (struct machine){.gpus = -1};
    check_driver(m, driver, facts);
    child_ask(UNW_LIBRARY, NULL, &answer);
    m->has_unwind = answer.loaded;
}

int machine_check_recorder(const char *library, bool found, struct facts *facts)
{
    struct answer answer;

    if (!found) {
        facts_add(facts, "recorder", FACT_BAD, "%s: not there", library);
        return -1;
    }
    if (strpbrk(library, " \t\n:")) {
        facts_add(facts, "recorder", FACT_BAD,
                  "%s: a path with blanks or colons cannot be preloaded",
                  library);
        return -1;
    }
    child_ask(library, NULL, &answer);
    if (!answer.loaded) {
        facts_add(facts, "recorder", FACT_BAD, "%s", answer.error);
        return -1;
    }
    facts_add(facts, "recorder", FACT_GOOD, "%s", library);
    return 0;
}

static void check_preload(const char *library, struct facts *facts)
{
    const char *preload = getenv("LD_PRELOAD");
    const char *base = strrchr(library, '/');

    base = base ? base + 1 : library;
    if (!preload || !*preload)
        return;
    if (strstr(preload, base) && !strstr(preload, library))
        facts_add(facts, "environment", FACT_NOTE,
                  "LD_PRELOAD has another %s: %s", base, preload);
    else
        facts_add(facts, "environment", FACT_GOOD, "LD_PRELOAD=%s", preload);
}

void machine_check_environment(const char *library, struct facts *facts)
{
    static const char *const ours_too[] = {"NCCL_DEBUG", "NCCL_DEBUG_FILE",
                                           "NCCL_COMM_ID", "NCCL_HOSTID"};

    check_preload(library, facts);
    if (getenv("LD_AUDIT"))
        facts_add(facts, "environment", FACT_NOTE,
                  "LD_AUDIT is set: its library may keep calls from the "
                  "recorder");
    for (size_t i = 0; i < sizeof ours_too / sizeof *ours_too; i++) {
        const char *value = getenv(ours_too[i]);

        if (value)
            facts_add(facts, "environment", FACT_GOOD, "%s=%.200s stays yours",
                      ours_too[i], value);
    }
    if (access("/.dockerenv", F_OK) == 0 ||
        access("/run/.containerenv", F_OK) == 0 || getenv("container"))
        facts_add(facts, "environment", FACT_GOOD,
                  "in a container: COMMTRACE_DIR should be a folder that "
                  "outlives it");
}
