#include "trace/via.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "trace/links.h"

static bool starts(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* "NAME/3(7)/GDRDMA/Shared", after "NET/". Plugins of the name IBext are
 * verbs, too. */
static void parse_network(struct ct_via *via, const char *name)
{
    const char *slash = strchr(name, '/'), *end;
    char *rest;

    if (starts(name, "IB/") || starts(name, "IBext") || starts(name, "SHARP/"))
        via->transport = CT_VIA_VERBS;
    else if (starts(name, "Socket/"))
        via->transport = CT_VIA_SOCKET;
    else
        via->transport = CT_VIA_PLUGIN;
    if (!slash || !isdigit((unsigned char)slash[1]))
        return;
    via->device = (int)(strtol(slash + 1, &rest, 10) & INT32_MAX);
    end = rest;
    via->proxy = *end == '(';
    via->gdr = strstr(end, "/GDRDMA") != NULL;
}

struct ct_via ct_via_parse(const char *text)
{
    struct ct_via via = {.device = CT_NONE};

    if (starts(text, "P2P/")) {
        via.transport = CT_VIA_P2P;
        via.indirect = starts(text, "P2P/indirect");
        via.mnnvl = starts(text, "P2P/MNNVL");
    } else if (starts(text, "SHM") || starts(text, "direct shared memory")) {
        via.transport = CT_VIA_SHM;
    } else if (starts(text, "NET/")) {
        parse_network(&via, text + strlen("NET/"));
    } else if (starts(text, "COLLNET/")) {
        parse_network(&via, text + strlen("COLLNET/"));
    }
    return via;
}

bool ct_nic_is_verbs(const struct ct_nic_row *nic)
{
    static const char *const software[] = {"rxe", "siw"};
    size_t i;

    for (i = 0; nic->driver && i < sizeof(software) / sizeof(*software); i++)
        if (strstr(nic->driver, software[i]))
            return false;
    return nic->rdma && !strcasecmp(nic->state, "ACTIVE") && nic->link_layer &&
           (!strcmp(nic->link_layer, "InfiniBand") ||
            !strcmp(nic->link_layer, "Ethernet"));
}

static bool is_list(const char *text, enum ct_transport transport)
{
    static const char *const heads[] = {[CT_VIA_VERBS] = "NET/IB : Using",
                                        [CT_VIA_SOCKET] = "NET/Socket : Using",
                                        [CT_VIA_PLUGIN] = "NET/"};

    if (!starts(text, heads[transport]))
        return false;
    return transport != CT_VIA_PLUGIN ||
           (strstr(text, ": Using ") && !starts(text, "NET/IB ") &&
            !starts(text, "NET/Socket "));
}

/* The entry "[3]mlx5_4:1/IB" of number device in the lists of the process;
 * NULL: none. */
static const char *listed(const struct ct_process *process,
                          enum ct_transport transport, int device)
{
    char number[32];
    int i;

    snprintf(number, sizeof(number), "[%d]", device);
    for (i = 0; i < process->nccl.nmessages; i++) {
        const char *text = process->nccl.messages[i].text, *at;

        if (is_list(text, transport) && (at = strstr(text, number)))
            return at + strlen(number);
    }
    return NULL;
}

static void read_entry(struct ct_via_port *port, const char *text)
{
    char entry[128];
    const char *colon;

    snprintf(entry, sizeof(entry), "%.*s", (int)(strcspn(text, " ") & 127),
             text);
    snprintf(port->name, sizeof(port->name), "%.*s",
             (int)(strcspn(entry, ":</") & 63), entry);
    colon = strchr(entry, ':');
    if (colon && !strchr(entry, '<'))
        port->port = (int)(strtol(colon + 1, NULL, 10) & 0xffff);
    if (strstr(entry, "/RoCE"))
        port->link_layer = "Ethernet";
    else if (strstr(entry, "/IB"))
        port->link_layer = "InfiniBand";
}

static void find_row(struct ct_via_port *port, const struct ct_process *process,
                     bool rdma)
{
    int i;

    for (i = 0; i < process->nnics; i++) {
        const struct ct_nic_row *nic = &process->nics[i];

        if (nic->rdma != rdma || strcmp(nic->name, port->name) != 0 ||
            (rdma && port->port > 0 && nic->port > 0 &&
             nic->port != port->port))
            continue;
        port->nic = nic;
        port->mbps = nic->mbps > 0 ? nic->mbps : CT_NONE;
        if (!port->link_layer)
            port->link_layer = nic->link_layer;
        return;
    }
}

/* What all ports that a transport may use agree on. */
static void agree(struct ct_via_port *port, const struct ct_process *process,
                  enum ct_transport transport)
{
    int i, n = 0;

    for (i = 0; i < process->nnics; i++) {
        const struct ct_nic_row *nic = &process->nics[i];
        const bool may = transport == CT_VIA_VERBS
                             ? ct_nic_is_verbs(nic)
                             : !nic->rdma && strcmp(nic->name, "lo") != 0 &&
                                   !strcasecmp(nic->state, "up");

        if (!may)
            continue;
        if (n++ == 0) {
            port->link_layer = nic->link_layer;
            port->mbps = nic->mbps > 0 ? nic->mbps : CT_NONE;
            port->nic = nic;
            continue;
        }
        port->nic = NULL;
        if (!ct_same_name(port->link_layer, nic->link_layer))
            port->link_layer = NULL;
        if (port->mbps != nic->mbps)
            port->mbps = CT_NONE;
    }
}

static void read_listed(struct ct_via_port *port,
                        const struct ct_process *process,
                        enum ct_transport transport, const char *entry)
{
    *port = (struct ct_via_port){.port = CT_NONE, .mbps = CT_NONE};
    read_entry(port, entry);
    find_row(port, process, transport != CT_VIA_SOCKET);
    if (!port->nic)
        find_row(port, process, false);
}

/* What all ports of NCCL's list agree on; false: it shows none. */
static bool agree_listed(struct ct_via_port *port,
                         const struct ct_process *process,
                         enum ct_transport transport)
{
    const char *entry = listed(process, transport, 0);

    if (!entry)
        return false;
    read_listed(port, process, transport, entry);
    for (int i = 1; (entry = listed(process, transport, i)); i++) {
        struct ct_via_port other;

        read_listed(&other, process, transport, entry);
        port->nic = NULL;
        *port->name = 0;
        port->port = CT_NONE;
        if (!ct_same_name(port->link_layer, other.link_layer))
            port->link_layer = NULL;
        if (port->mbps != other.mbps)
            port->mbps = CT_NONE;
    }
    return true;
}

void ct_via_port(const struct ct_process *process, const struct ct_via *via,
                 struct ct_via_port *port)
{
    const char *entry = via->device == CT_NONE
                            ? NULL
                            : listed(process, via->transport, via->device);

    *port = (struct ct_via_port){.port = CT_NONE, .mbps = CT_NONE};
    if (entry) {
        read_listed(port, process, via->transport, entry);
    } else if (via->device == CT_NONE &&
               agree_listed(port, process, via->transport)) {
        ;
    } else if (via->transport != CT_VIA_PLUGIN) {
        agree(port, process, via->transport);
    }
    if (port->nic && !*port->name) {
        snprintf(port->name, sizeof(port->name), "%.63s", port->nic->name);
        port->port = port->nic->port;
    }
}
