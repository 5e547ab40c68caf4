#include "common/config.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_WORDS 16

/* One line of the file: keyword, then a value or KEY=VALUE settings. */
struct line {
    char *word[MAX_WORDS];
    int words;
    const char *reason; /* why the line is wrong */
    const char *about;  /* the word it is wrong about */
};

static int bad(struct line *line, const char *about, const char *reason)
{
    line->about = about;
    line->reason = reason;
    return -1;
}

static int parse_number(const char *text, double min, double max, double *out)
{
    char *end;
    double value;

    errno = 0;
    value = strtod(text, &end);
    if (end == text || *end || errno || !(value >= min && value <= max))
        return -1;
    *out = value;
    return 0;
}

static int parse_int(const char *text, long min, long max, int *out)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < min || value > max)
        return -1;
    *out = (int)value;
    return 0;
}

static int parse_bandwidth(const char *text, double *bytes_per_ns)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || !(value > 0 && value < 1e9))
        return -1;
    if (!strcmp(end, "MB/s"))
        *bytes_per_ns = value * 1e-3;
    else if (!strcmp(end, "GB/s"))
        *bytes_per_ns = value;
    else
        return -1;
    return 0;
}

/* The value of a line that has exactly one. */
static const char *only_value(struct line *line)
{
    if (line->words == 2)
        return line->word[1];
    bad(line, line->word[0], "takes exactly one value");
    return NULL;
}

static int set_int(struct line *line, long min, long max, int *out)
{
    const char *value = only_value(line);

    if (!value)
        return -1;
    if (parse_int(value, min, max, out))
        return bad(line, value, "is not a whole number in range");
    return 0;
}

static int set_name(struct line *line, char out[FABRIC_NAME])
{
    size_t used = 0;

    if (line->words < 2)
        return bad(line, line->word[0], "takes a name");
    for (int i = 1; i < line->words; i++) {
        size_t n = strlen(line->word[i]);

        if (used + n + 2 > FABRIC_NAME)
            return bad(line, line->word[0], "has too long a name");
        if (i > 1)
            out[used++] = ' ';
        memcpy(out + used, line->word[i], n);
        used += n;
    }
    out[used] = '\0';
    return 0;
}

static int set_hosts(struct fabric_config *c, struct line *line)
{
    return set_int(line, 1, 4096, &c->hosts);
}

static int set_ranks_per_host(struct fabric_config *c, struct line *line)
{
    return set_int(line, 1, 64, &c->ranks_per_host);
}

static int set_gpu(struct fabric_config *c, struct line *line)
{
    return set_name(line, c->gpu);
}

/* One of the names; the last has none. */
static int set_word(struct line *line, const char *const *names,
                    const char *reason, int *out)
{
    const char *value = only_value(line);

    if (!value)
        return -1;
    for (int i = 0; names[i]; i++) {
        if (!strcmp(value, names[i])) {
            *out = i;
            return 0;
        }
    }
    return bad(line, value, reason);
}

static int set_yes(struct line *line, int *out)
{
    static const char *const names[] = {"no", "yes", NULL};

    return set_word(line, names, "is neither yes nor no", out);
}

static int set_nvlink(struct fabric_config *c, struct line *line)
{
    static const char *const names[] = {"no", "yes", "direct", "switch", NULL};
    static const enum fabric_nvlink kinds[] = {
        FABRIC_NVLINK_NONE, FABRIC_NVLINK_SWITCH, FABRIC_NVLINK_DIRECT,
        FABRIC_NVLINK_SWITCH};
    int i;

    if (set_word(line, names, "is none of yes, no, switch, direct", &i))
        return -1;
    c->hardware.nvlink = kinds[i];
    return 0;
}

static int set_nvlink_version(struct fabric_config *c, struct line *line)
{
    return set_int(line, 1, 9, &c->hardware.nvlink_version);
}

static int set_nvlink_domain(struct fabric_config *c, struct line *line)
{
    c->hardware.nvlink = FABRIC_NVLINK_SWITCH;
    return set_name(line, c->hardware.nvlink_domain);
}

static int set_p2p(struct fabric_config *c, struct line *line)
{
    return set_yes(line, &c->hardware.p2p);
}

static int set_pcie_switch(struct fabric_config *c, struct line *line)
{
    return set_int(line, 0, 64, &c->hardware.pcie_switch);
}

static int set_numa(struct fabric_config *c, struct line *line)
{
    return set_int(line, 0, 64, &c->hardware.numa);
}

static int set_c2c(struct fabric_config *c, struct line *line)
{
    return set_yes(line, &c->hardware.c2c);
}

static int set_network(struct fabric_config *c, struct line *line)
{
    static const char *const names[] = {
        [FABRIC_TCP] = "tcp",
        [FABRIC_IB] = "ib",
        [FABRIC_ROCE] = "roce",
        [FABRIC_PLUGIN] = NULL,
    };
    static const char plugin[] = "plugin:";
    int network;

    if (line->words > 1 && !strncmp(line->word[1], plugin, strlen(plugin))) {
        line->word[1] += strlen(plugin);
        c->hardware.network = FABRIC_PLUGIN;
        return *line->word[1] ? set_name(line, c->hardware.plugin)
                              : bad(line, plugin, "names no plugin");
    }
    if (set_word(line, names, "is none of ib, roce, tcp, plugin:NAME",
                 &network))
        return -1;
    c->hardware.network = (enum fabric_network)network;
    return 0;
}

static int set_nic_rate(struct fabric_config *c, struct line *line)
{
    const char *value = only_value(line);
    char *end;
    double gbps;

    if (!value)
        return -1;
    gbps = strtod(value, &end);
    if (end == value || strcmp(end, "G") != 0 || !(gbps >= 1 && gbps <= 10000))
        return bad(line, value, "is not a rate like 400G");
    c->hardware.nic_mbps = (int64_t)(gbps * 1000);
    return 0;
}

static int set_nics(struct fabric_config *c, struct line *line)
{
    return set_int(line, 0, FABRIC_MAX_NICS, &c->hardware.nics);
}

static int set_gdr(struct fabric_config *c, struct line *line)
{
    return set_yes(line, &c->hardware.gdr);
}

static int set_seed(struct fabric_config *c, struct line *line)
{
    int seed = 0;

    if (set_int(line, 0, 0x7fffffff, &seed))
        return -1;
    c->seed = (uint64_t)seed;
    return 0;
}

static int set_catch_up(struct fabric_config *c, struct line *line)
{
    const char *value = only_value(line);
    double ms;

    if (!value)
        return -1;
    if (parse_number(value, 0, 1e6, &ms))
        return bad(line, value, "is not a number of milliseconds");
    c->catch_up_ns = (int64_t)(ms * 1e6);
    return 0;
}

static const struct release {
    const char *name;
    int code;
} releases[] = {
#define RELEASE(name_, code_) {#name_, code_},
#include "nccl/releases.def"
};

#define RELEASES (sizeof(releases) / sizeof(releases[0]))

const char *fabric_nccl_release(const struct fabric_config *config)
{
    for (size_t i = 0; i < RELEASES; i++) {
        if (releases[i].code == config->nccl_version)
            return releases[i].name;
    }
    return NULL;
}

static int set_nccl_version(struct fabric_config *c, struct line *line)
{
    const char *value = only_value(line);
    int major;
    int minor;
    int patch;
    char end;

    if (!value)
        return -1;
    for (size_t i = 0; i < RELEASES; i++) {
        if (!strcmp(value, releases[i].name)) {
            c->nccl_version = releases[i].code;
            return 0;
        }
    }
    if (sscanf(value, "%d.%d.%d%c", &major, &minor, &patch, &end) != 3 ||
        major != 2 || minor < 4 || minor > 99 || patch < 0 || patch > 99)
        return bad(line, value, "is not an NCCL version like 2.28.9");
    c->nccl_version = minor <= 8 ? major * 1000 + minor * 100 + patch
                                 : major * 10000 + minor * 100 + patch;
    return 0;
}

/* Splits word i, KEY=VALUE; NULL when it is not of that form. */
static char *setting(struct line *line, int i)
{
    char *value = strchr(line->word[i], '=');

    if (!value) {
        bad(line, line->word[i], "is not of the form KEY=VALUE");
        return NULL;
    }
    *value = '\0';
    return value + 1;
}

static int set_link_key(struct fabric_link *link, struct line *line,
                        const char *key, const char *value)
{
    double number;

    if (!strcmp(key, "bandwidth")) {
        if (parse_bandwidth(value, &link->bytes_per_ns))
            return bad(line, value, "is not a bandwidth in MB/s or GB/s");
    } else if (!strcmp(key, "alpha_us")) {
        if (parse_number(value, 0, 1e7, &number))
            return bad(line, value, "is not a number of microseconds");
        link->alpha_ns = (int64_t)(number * 1e3);
    } else if (!strcmp(key, "jitter")) {
        if (parse_number(value, 0, 0.9, &link->jitter))
            return bad(line, value, "is not a share between 0 and 0.9");
    } else {
        return bad(line, key, "is no key of link");
    }
    return 0;
}

static int set_link(struct fabric_config *c, struct line *line)
{
    struct fabric_link *link;

    if (line->words < 3)
        return bad(line, line->word[0], "takes a class and its settings");
    if (!strcmp(line->word[1], "intra"))
        link = &c->link[FABRIC_INTRA];
    else if (!strcmp(line->word[1], "inter"))
        link = &c->link[FABRIC_INTER];
    else
        return bad(line, line->word[1], "is neither intra nor inter");
    for (int i = 2; i < line->words; i++) {
        char *value = setting(line, i);

        if (!value || set_link_key(link, line, line->word[i], value))
            return -1;
    }
    return 0;
}

static int set_straggler(struct fabric_config *c, struct line *line)
{
    struct fabric_straggler s = {-1, 0};

    if (c->stragglers == FABRIC_MAX_RULES)
        return bad(line, line->word[0], "is given too often");
    for (int i = 1; i < line->words; i++) {
        char *value = setting(line, i);

        if (!value)
            return -1;
        if (!strcmp(line->word[i], "rank")) {
            if (parse_int(value, 0, 1 << 20, &s.rank))
                return bad(line, value, "is not a rank");
        } else if (!strcmp(line->word[i], "compute")) {
            if (parse_number(value, 1, 1000, &s.compute))
                return bad(line, value, "is not a factor between 1 and 1000");
        } else {
            return bad(line, line->word[i], "is no key of straggler");
        }
    }
    if (s.rank < 0 || s.compute < 1)
        return bad(line, line->word[0], "needs rank= and compute=");
    c->straggler[c->stragglers++] = s;
    return 0;
}

static int parse_action(const char *text, enum fabric_fault_action *out)
{
    static const char *const name[] = {
        [FABRIC_DIE] = "die",
        [FABRIC_STOP] = "stop",
        [FABRIC_ERROR] = "error",
        [FABRIC_ASYNC] = "async",
    };

    for (int i = 0; i < (int)(sizeof(name) / sizeof(name[0])); i++) {
        if (!strcmp(text, name[i])) {
            *out = (enum fabric_fault_action)i;
            return 0;
        }
    }
    return -1;
}

static int set_fault(struct fabric_config *c, struct line *line)
{
    struct fabric_fault f = {-1, 0, FABRIC_DIE};
    int op = 0;
    int has_action = 0;

    if (c->faults == FABRIC_MAX_RULES)
        return bad(line, line->word[0], "is given too often");
    for (int i = 1; i < line->words; i++) {
        char *value = setting(line, i);

        if (!value)
            return -1;
        if (!strcmp(line->word[i], "rank")) {
            if (parse_int(value, 0, 1 << 20, &f.rank))
                return bad(line, value, "is not a rank");
        } else if (!strcmp(line->word[i], "op")) {
            if (parse_int(value, 1, 0x7fffffff, &op))
                return bad(line, value, "is not the number of an op");
        } else if (!strcmp(line->word[i], "action")) {
            if (parse_action(value, &f.action))
                return bad(line, value, "is none of die, stop, error, async");
            has_action = 1;
        } else {
            return bad(line, line->word[i], "is no key of fault");
        }
    }
    if (f.rank < 0 || !op || !has_action)
        return bad(line, line->word[0], "needs rank=, op= and action=");
    f.op = (uint64_t)op;
    c->fault[c->faults++] = f;
    return 0;
}

static const struct keyword {
    const char *name;
    int (*set)(struct fabric_config *config, struct line *line);
    int repeats;
} keywords[] = {
    {"hosts", set_hosts, 0},
    {"ranks_per_host", set_ranks_per_host, 0},
    {"link", set_link, 1},
    {"seed", set_seed, 0},
    {"catch_up_ms", set_catch_up, 0},
    {"nvlink", set_nvlink, 0},
    {"nvlink_version", set_nvlink_version, 0},
    {"nvlink_domain", set_nvlink_domain, 0},
    {"p2p", set_p2p, 0},
    {"pcie_switch", set_pcie_switch, 0},
    {"numa", set_numa, 0},
    {"c2c", set_c2c, 0},
    {"network", set_network, 0},
    {"nic_rate", set_nic_rate, 0},
    {"nics", set_nics, 0},
    {"gdr", set_gdr, 0},
    {"gpu", set_gpu, 0},
    {"nccl_version", set_nccl_version, 0},
    {"straggler", set_straggler, 1},
    {"fault", set_fault, 1},
};

#define KEYWORDS (sizeof(keywords) / sizeof(keywords[0]))

static int split_words(struct line *line, char *text)
{
    char *save = NULL;

    text[strcspn(text, "#\n")] = '\0';
    line->words = 0;
    for (char *w = strtok_r(text, " \t\r", &save); w;
         w = strtok_r(NULL, " \t\r", &save)) {
        if (line->words == MAX_WORDS)
            return bad(line, line->word[0], "is followed by too many words");
        line->word[line->words++] = w;
    }
    return 0;
}

static int apply_line(struct fabric_config *config, struct line *line,
                      unsigned *seen)
{
    for (size_t i = 0; i < KEYWORDS; i++) {
        if (strcmp(line->word[0], keywords[i].name) != 0)
            continue;
        if (!keywords[i].repeats && *seen & (1u << i))
            return bad(line, line->word[0], "is given twice");
        *seen |= 1u << i;
        return keywords[i].set(config, line);
    }
    return bad(line, line->word[0], "is no key");
}

static int read_lines(struct fabric_config *config, FILE *file,
                      const char *path, char *error, int error_size)
{
    char text[512];
    unsigned seen = 0;

    for (int number = 1; fgets(text, sizeof(text), file); number++) {
        struct line line = {.words = 0};
        int rc = split_words(&line, text);

        if (!rc && line.words)
            rc = apply_line(config, &line, &seen);
        if (rc) {
            snprintf(error, (size_t)error_size, "%s:%d: '%s' %s", path, number,
                     line.about, line.reason);
            return -1;
        }
    }
    return 0;
}

/* A machine of today, for programs that are not given a file. */
static void set_defaults(struct fabric_config *config)
{
    *config = (struct fabric_config){
        .hosts = 1,
        .ranks_per_host = 8,
        .link =
            {
                [FABRIC_INTRA] = {.alpha_ns = 20000, .bytes_per_ns = 10},
                [FABRIC_INTER] = {.alpha_ns = 50000, .bytes_per_ns = 2},
            },
        .seed = 1,
        .catch_up_ns = 100000000,
        .hardware =
            {
                .nvlink = FABRIC_NVLINK_SWITCH,
                .nvlink_version = 4,
                .p2p = 1,
                .pcie_switch = 1,
                .network = FABRIC_IB,
                .nic_mbps = 400000,
                .nics = -1,
                .gdr = 1,
            },
        .gpu = "Fabric GPU",
        .nccl_version = releases[RELEASES - 1].code,
    };
}

int fabric_config_read(struct fabric_config *config, const char *path,
                       char *error, int error_size)
{
    FILE *file = fopen(path, "re");
    int rc;

    set_defaults(config);
    if (!file) {
        snprintf(error, (size_t)error_size, "%s:0: %s", path, strerror(errno));
        return -1;
    }
    rc = read_lines(config, file, path, error, error_size);
    fclose(file);
    config->from_file = !rc;
    return rc;
}

static struct fabric_config loaded;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;

static void load(void)
{
    const char *path = getenv("FABRIC");
    char error[1024];

    if (!path || !*path) {
        set_defaults(&loaded);
        return;
    }
    if (fabric_config_read(&loaded, path, error, sizeof(error))) {
        fprintf(stderr, "%s\n", error);
        _exit(2);
    }
}

const struct fabric_config *fabric_config(void)
{
    pthread_once(&load_once, load);
    return &loaded;
}
