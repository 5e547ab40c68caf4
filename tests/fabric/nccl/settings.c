#include "nccl/settings.h"

#include <stdlib.h>

#include "nccl/log.h"
#include "nccl/release.h"
#include "nccl/transport.h"

/* What the line looks like: "set by environment to 1.", "... to eth0". */
enum shape { NUMBER, TEXT };

static const struct setting {
    const char *name;
    enum shape shape;
    enum setting_stage stage;
} settings[] = {
    {"NCCL_SOCKET_IFNAME", TEXT, SETTING_LIBRARY},
    {"NCCL_SOCKET_FAMILY", TEXT, SETTING_LIBRARY},
    {"NCCL_COMM_ID", TEXT, SETTING_LIBRARY},
    {"NCCL_HOSTID", TEXT, SETTING_COMMUNICATOR},
    {"NCCL_NET_PLUGIN", TEXT, SETTING_COMMUNICATOR},
    {"NCCL_NET", TEXT, SETTING_COMMUNICATOR},
    {"NCCL_IB_HCA", TEXT, SETTING_COMMUNICATOR},
    {"NCCL_P2P_LEVEL", TEXT, SETTING_COMMUNICATOR},
    {"NCCL_P2P_DISABLE", TEXT, SETTING_COMMUNICATOR},
    {"NCCL_NET_GDR_LEVEL", TEXT, SETTING_COMMUNICATOR},
    {"NCCL_ALGO", TEXT, SETTING_COMMUNICATOR},
    {"NCCL_PROTO", TEXT, SETTING_COMMUNICATOR},
    {"NCCL_IB_DISABLE", NUMBER, SETTING_COMMUNICATOR},
    {"NCCL_SHM_DISABLE", NUMBER, SETTING_COMMUNICATOR},
    {"NCCL_P2P_DIRECT_DISABLE", NUMBER, SETTING_COMMUNICATOR},
    {"NCCL_PXN_DISABLE", NUMBER, SETTING_COMMUNICATOR},
    {"NCCL_NVLS_ENABLE", NUMBER, SETTING_COMMUNICATOR},
    {"NCCL_MNNVL_ENABLE", NUMBER, SETTING_COMMUNICATOR},
    {"NCCL_CUMEM_ENABLE", NUMBER, SETTING_COMMUNICATOR},
    {"NCCL_RUNTIME_CONNECT", NUMBER, SETTING_COMMUNICATOR},
    {"NCCL_CROSS_NIC", NUMBER, SETTING_COMMUNICATOR},
    {"NCCL_BUFFSIZE", NUMBER, SETTING_COMMUNICATOR},
    {"NCCL_NTHREADS", NUMBER, SETTING_COMMUNICATOR},
    {"NCCL_MIN_NCHANNELS", NUMBER, SETTING_COMMUNICATOR},
    {"NCCL_MAX_NCHANNELS", NUMBER, SETTING_COMMUNICATOR},
};

static void announce(const struct setting *s, const char *value)
{
    /* There was no subsystem for them before 2.8. */
    unsigned subsystems =
        nccl_release() >= 20803 ? (unsigned)LOG_ENV : (unsigned)LOG_ALL;

    if (s->shape == TEXT)
        log_info(subsystems, "%s set by environment to %s", s->name, value);
    else
        log_info(subsystems, "%s set by environment to %lld.", s->name,
                 (long long)transport_parameter(s->name, 0));
}

void settings_announce(enum setting_stage stage)
{
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        const char *value = getenv(settings[i].name);

        if (settings[i].stage == stage && value && *value)
            announce(&settings[i], value);
    }
}
