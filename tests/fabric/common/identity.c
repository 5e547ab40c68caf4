#include "common/identity.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/config.h"
#include "common/hash.h"

static int env_rank(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long value;

    if (!text)
        return -1;
    value = strtol(text, &end, 10);
    return end == text || *end || value < 0 || value > 1 << 20 ? -1
                                                               : (int)value;
}

int fabric_rank(void)
{
    static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK",
                                        "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int rank = env_rank(names[i]);

        if (rank >= 0)
            return rank;
    }
    return -1;
}

uint64_t fabric_host_id(int rank)
{
    const struct fabric_config *config = fabric_config();
    const char *name = getenv("NCCL_HOSTID");
    int env = fabric_rank();
    char host[256] = "";

    if (name && *name)
        return fabric_hash(FABRIC_HASH_SEED, name, strlen(name));
    if (env >= 0)
        rank = env;
    if (config->from_file && rank >= 0) {
        int index = rank / config->ranks_per_host;

        return fabric_hash(FABRIC_HASH_SEED + 1, &index, sizeof(index));
    }
    gethostname(host, sizeof(host) - 1);
    return fabric_hash(FABRIC_HASH_SEED, host, strlen(host));
}
