#include "nccl/settings.h"

#include <stdlib.h>

#include "nccl/log.h"
#include "nccl/release.h"
#include "nccl/transport.h"

/* "set by environment to 1.", "... to eth0", the name of a level that may be a
 * number, and of one variable "set to mlx5". */
enum shape { NUMBER, TEXT, LEVEL, SET };

static const struct setting {
    const char *name;
    enum shape shape;
    enum setting_stage stage;
    int since;
} settings[] = {
    {"NCCL_SOCKET_IFNAME", TEXT, SETTING_LIBRARY, 0},
    {"NCCL_SOCKET_FAMILY", TEXT, SETTING_LIBRARY, 0},
    {"NCCL_COMM_ID", TEXT, SETTING_LIBRARY, 0},
    {"NCCL_HOSTID", TEXT, SETTING_COMMUNICATOR, 0},
    {"NCCL_NET_PLUGIN", TEXT, SETTING_COMMUNICATOR, 22803},
    {"NCCL_IB_HCA", SET, SETTING_COMMUNICATOR, 0},
    {"NCCL_P2P_DISABLE", TEXT, SETTING_COMMUNICATOR, 22203},
    {"NCCL_P2P_LEVEL", LEVEL, SETTING_COMMUNICATOR, 0},
    {"NCCL_NET_GDR_LEVEL", LEVEL, SETTING_COMMUNICATOR, 0},
    {"NCCL_ALGO", TEXT, SETTING_COMMUNICATOR, 0},
    {"NCCL_PROTO", TEXT, SETTING_COMMUNICATOR, 0},
    {"NCCL_PROFILER_PLUGIN", TEXT, SETTING_COMMUNICATOR, 22803},
    {"NCCL_IB_DISABLE", NUMBER, SETTING_COMMUNICATOR, 0},
    {"NCCL_SHM_DISABLE", NUMBER, SETTING_COMMUNICATOR, 0},
    {"NCCL_P2P_DIRECT_DISABLE", NUMBER, SETTING_COMMUNICATOR, 0},
    {"NCCL_PXN_DISABLE", NUMBER, SETTING_COMMUNICATOR, 21207},
    {"NCCL_NVLS_ENABLE", NUMBER, SETTING_COMMUNICATOR, 21701},
    {"NCCL_MNNVL_ENABLE", NUMBER, SETTING_COMMUNICATOR, 22105},
    {"NCCL_CUMEM_ENABLE", NUMBER, SETTING_COMMUNICATOR, 21801},
    {"NCCL_RUNTIME_CONNECT", NUMBER, SETTING_COMMUNICATOR, 22203},
    {"NCCL_CROSS_NIC", NUMBER, SETTING_COMMUNICATOR, 0},
    {"NCCL_BUFFSIZE", NUMBER, SETTING_COMMUNICATOR, 0},
    {"NCCL_NTHREADS", NUMBER, SETTING_COMMUNICATOR, 0},
    {"NCCL_MIN_NCHANNELS", NUMBER, SETTING_COMMUNICATOR, 0},
    {"NCCL_MAX_NCHANNELS", NUMBER, SETTING_COMMUNICATOR, 0},
};

/* There was no subsystem for them before 2.8. */
static unsigned environment(void)
{
    return nccl_release() >= 20803 ? (unsigned)LOG_ENV : (unsigned)LOG_ALL;
}

static void announce(const struct setting *s, const char *value)
{
    switch (s->shape) {
    case SET:
        log_info(LOG_NET | environment(), "%s set to %s", s->name, value);
        break;
    case LEVEL:
        value = path_name(transport_level(s->name, PATH_LOC));
        log_info((unsigned)LOG_ALL, "%s set by environment to %s", s->name,
                 value);
        break;
    case TEXT:
        log_info(environment(), "%s set by environment to %s", s->name, value);
        break;
    case NUMBER:
        log_info(environment(), "%s set by environment to %lld.", s->name,
                 (long long)transport_parameter(s->name, 0));
        break;
    }
}

void settings_announce(enum setting_stage stage)
{
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        const char *value = getenv(settings[i].name);

        if (settings[i].stage == stage && value && *value &&
            nccl_release() >= settings[i].since)
            announce(&settings[i], value);
    }
}
